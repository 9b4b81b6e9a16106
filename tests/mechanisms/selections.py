"""Weights that a sampler could get wrong, their law, and words made by hand."""

import math
from fractions import Fraction

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from dpglm.mechanisms import Randomness
from dpglm.mechanisms.grid import on_grid

LARGEST = 2**64 - 1
GRID, SCALE, P, DRAWS = 2.0**-20, 1.7, 5_000, 30_000


def spread(name, rng, p=P):
    """Log-weights of a kind that a sampler could get wrong."""
    return {
        "near uniform": lambda: 0.1 * rng.standard_normal(p),
        "one spike": lambda: np.where(np.arange(p) == 77, math.log(p), 0.0) + 0.01 * rng.standard_normal(p),
        "300 orders of magnitude": lambda: rng.permutation(np.linspace(-700, 0, p)),
        "many equal": lambda: np.repeat([0.0, -1.0, -3.0, -3.5, -9.0], p // 5),
        "negative": lambda: -5_000 - 3 * rng.exponential(size=p),
        "large": lambda: 1e7 + 4 * rng.standard_normal(p),
        "many far below": lambda: np.where(np.arange(p) < 20, 0.3 * (np.arange(p) % 7), -1e4),
        "whole numbers": lambda: rng.integers(-8, 1, p).astype(float),
    }[name]()


SPREADS = [
    "near uniform", "one spike", "300 orders of magnitude", "many equal", "negative", "large",
    "many far below", "whole numbers",
]  # fmt: skip


def law(scores, grid=GRID, scale=SCALE):
    weights = on_grid(scores, grid) / scale
    return np.exp(weights - logsumexp(weights))


def fits(draws, expected):
    """p-value of the chi-square test; the rarest outcomes are joined until 20 of them are expected."""
    order, group, held = np.argsort(expected), [], 0.0
    for size in len(draws) * expected[order]:
        group.append(group[-1] + (held >= 20) if group else 0)
        held = size + (held if held < 20 else 0.0)
    found = np.bincount(draws, minlength=len(expected))[order]
    observed, wanted = np.bincount(group, found), len(draws) * np.bincount(group, expected[order])
    assert len(wanted) > 1, "one outcome only: nothing is tested"
    return stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue


def drawn(kept, count=DRAWS, seed=1):
    source = Randomness(seed)
    return np.array([kept.draw(source) for _ in range(count)])


def update_often(kept, now, scores, rng, check):
    """A hundred thousand updates, a thousand at once, and one of all to the scores; checked in between."""
    now = now.copy()
    for step in range(100):
        index = rng.integers(P, size=1_000)
        new = scores[index] + rng.choice([0.0, 1.0, 30.0]) * SCALE * rng.standard_normal(1_000)
        kept.update(index, new)
        now[index] = new
        if step % 20 == 0:
            check(kept, now)
    check(kept, now)
    order = rng.permutation(P)
    kept.update(order, scores[order])
    check(kept, scores)


def digits(chance):
    """A double as words of 64 binary digits, the last of them not 0."""
    rest, words = Fraction(chance), []
    while rest:
        words.append(math.floor(rest * 2**64))
        rest = rest * 2**64 - words[-1]
    return words or [0]


def one_less(words):
    """The largest number of that many digits below a positive one."""
    number = sum(word << 64 * i for i, word in enumerate(reversed(words))) - 1
    return [number >> 64 * i & LARGEST for i in reversed(range(len(words)))]


def drawn_from(kept, words):
    """A draw from these words and then others, and how many it took."""
    source = Randomness(0)
    source._words = np.array([*words, *[0] * 60], dtype=np.uint64)
    return kept.draw(source), source._at
