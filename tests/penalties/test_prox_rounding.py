"""How far computed proximal steps are from those of exact arithmetic."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpglm.penalties import (
    L1,
    L2,
    Box,
    ElasticNet,
    Fused,
    GraphFused,
    GroupL2,
    Hierarchy,
    L1Ball,
    Lovasz,
    Submodular,
    TotalVariation,
    Zero,
)
from dpglm.penalties.set_functions import AnyFeature, Cardinality, Custom, GroupCover, Ordered, Range

P = 6
UNIT = 2.0**-53
SETS = {
    "any feature": AnyFeature(),
    "cardinality": Cardinality(),
    "ordered": Ordered([1.0, 0.75, 0.5, 0.5, 0.25, 0.0]),
    "overlapping groups": GroupCover(
        [[0, 1, 2], [2, 3, 4], [4, 5, 0], [1, 3], [5]], [0.3, 0.7, 1.1, 0.2, 0.1]
    ),
    "nested groups": GroupCover([[0], [1], [0, 1, 2], [3, 4], [5], list(range(P))]),
    "range": Range(P),
    "custom": Custom(lambda features: min(len(features), 3), P),
}
GROUPS = [
    GroupL2(0.3, [[0, 1], [2, 3, 4], [5]], l1=0.1, l2=0.7),
    GroupL2(0.3, [[0, 1], [0, 1, 2], [3, 4, 5], range(P)]),
    Hierarchy(0.2, [-1, 0, 1, 2, 3, 4], l2=0.5),
]
EDGES = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (0, 3), (2, 5)]
PRICES = [0.3, 0.7, 1.1, 0.2, 0.1, 0.5, 2.0]
PLATEAUS = [
    TotalVariation(1.0),
    GraphFused(1.0, EDGES, PRICES),
    Fused(1.0, 0.5, EDGES, PRICES),
    Lovasz(1.0, lambda features: min(len(features), P - len(features)), P),
]
SEPARABLE = [Zero(), L1(0.3), L2(0.7), ElasticNet(0.2, 0.9), Box(-0.5, 0.25), Box(0.1, 0.2)]


def distance(computed, exact):
    return float(
        np.linalg.norm([float(Fraction(float(a)) - b) for a, b in zip(computed, exact, strict=True)])
    )


def exact_separable(penalty, w, step):
    l1, l2, low, high = penalty.coordinate_form()
    low, high = (Fraction(edge) if np.isfinite(edge) else None for edge in (low, high))
    for entry in w:
        left = max(abs(Fraction(entry)) - Fraction(step) * Fraction(l1), 0) / (
            1 + Fraction(step) * Fraction(l2)
        )
        signed = left if entry > 0 else -left
        yield min(max(signed, signed if low is None else low), signed if high is None else high)


def exact_norm_step(function, size, step):
    """The proximal step of a norm: split the features where a part of a block is above its mean level."""
    prices = {
        frozenset(chosen): Fraction(step) * Fraction(function.value(np.array(chosen, dtype=np.intp)))
        for count in range(P + 1)
        for chosen in combinations(range(P), count)
    }
    result, blocks = [Fraction(0)] * P, [(frozenset(), frozenset(range(P)))]
    while blocks:
        above, block = blocks.pop()
        sums = {part: sum(Fraction(size[j]) for j in part) for part in prices if part <= block}
        level = (sums[block] - prices[above | block] + prices[above]) / len(block)
        upper = min(sums, key=lambda part: prices[above | part] - sums[part] + level * len(part))
        if prices[above | upper] - prices[above] < sums[upper] - level * len(upper):
            blocks += [(above, upper), (above | upper, block - upper)]
        else:
            for j in block:
                result[j] = max(level, Fraction(0))
    return result


def extension_prices(penalty, step):
    """Exact prices of all sets by the function whose extension the penalty is."""
    edges = getattr(penalty, "edges", None) or [(k, k + 1) for k in range(P - 1)]
    weights = getattr(penalty, "weights", None) or [1.0] * len(edges)
    found = {}
    for members in (frozenset(chosen) for count in range(P + 1) for chosen in combinations(range(P), count)):
        crossing = (
            Fraction(c) for (i, j), c in zip(edges, weights, strict=True) if (i in members) != (j in members)
        )
        price = (
            Fraction(min(len(members), P - len(members))) if isinstance(penalty, Lovasz) else sum(crossing)
        )
        found[members] = Fraction(step) * price
    return found


def exact_level_step(penalty, w, step):
    """The proximal step of an extension: split the features where a part of a block is above its mean."""
    prices = extension_prices(penalty, step)
    result, blocks = [Fraction(0)] * P, [(frozenset(), frozenset(range(P)))]
    while blocks:
        above, block = blocks.pop()
        sums = {part: sum(Fraction(w[j]) for j in part) for part in prices if part <= block}
        level = (sums[block] - prices[above | block] + prices[above]) / len(block)
        upper = min(sums, key=lambda part: prices[above | part] - sums[part] + level * len(part))
        if prices[above | upper] - prices[above] < sums[upper] - level * len(upper):
            blocks += [(above, upper), (above | upper, block - upper)]
        else:
            for j in block:
                result[j] = level
    l1 = Fraction(step) * Fraction(penalty.l1_part)
    return [max(abs(u) - l1, 0) * (1 if u > 0 else -1) for u in result]


def exact_chain(w, price):
    """The step of total variation in exact arithmetic: a block is split where that pays, by running sums."""
    worth, result = list(map(Fraction, w)), [Fraction(0)] * len(w)
    blocks = [(0, len(w))]
    while blocks:
        begin, end = blocks.pop()
        level = sum(worth[begin:end]) / (end - begin)
        inside, outside, path = worth[begin] - level, Fraction(0), []
        for k in range(begin + 1, end):
            path.append((inside >= outside - price, outside >= inside - price))
            stay, leave = max(inside, outside - price), max(outside, inside - price)
            inside, outside = stay + worth[k] - level, leave
        if max(inside, outside) <= 0:
            result[begin:end] = [level] * (end - begin)
            continue
        state, upper = inside >= outside, [False] * (end - begin)
        for k in range(end - begin - 1, -1, -1):
            upper[k] = state
            if k:
                kept = path[k - 1][0 if state else 1]
                state = state if kept else not state
        cuts = [begin, *(begin + k for k in range(1, end - begin) if upper[k] != upper[k - 1]), end]
        for first, last in zip(cuts[:-1], cuts[1:], strict=True):
            blocks.append((first, last))
        for k in cuts[1:-1]:
            sign = 1 if upper[k - begin] else -1
            worth[k] -= sign * price
            worth[k - 1] += sign * price
    return result


def exact_projection(size, radius):
    """Onto the L1 ball, of numbers that are at least 0."""
    left, threshold = Fraction(0), Fraction(0)
    for count, entry in enumerate(sorted(map(Fraction, size), reverse=True), 1):
        left += entry
        threshold = max(threshold, (left - Fraction(radius)) / count)
    return [max(Fraction(entry) - threshold, 0) for entry in size]


def points(count, seed, function=None):
    """Points of all sizes, and for a norm those at which sets of features are as good as tied."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        w = np.abs(rng.standard_normal(P)) * np.exp(rng.choice([0.0, 3.0]) * rng.standard_normal(P))
        step = float(10 ** rng.uniform(-3, 0))
        if function is not None and k % 2:
            w, orders = np.full(P, 10 ** rng.uniform(-2, 1)), rng.integers(1, 4)
            for _ in range(orders):
                order = rng.permutation(P)
                w[order] += step * function.gains(order) / orders
            w *= 1 + 2.0**-51 * rng.integers(-4, 5, P)
        yield w, step


@pytest.mark.parametrize("penalty", SEPARABLE, ids=str)
def test_separable_steps_round_as_often_as_they_say(penalty):
    for w, step in points(100, 0):
        w = w * np.where(np.arange(P) % 2, -1.0, 1.0)
        shrunk = np.linalg.norm(w) / (1 + step * penalty.strong_convexity)
        off = distance(penalty.prox(w, step), exact_separable(penalty, w, step))
        assert off <= penalty.prox_rounding(P) * UNIT * shrunk * (1 + 1e-9)


@pytest.mark.parametrize("name", SETS)
def test_steps_of_structured_norms_are_a_third_as_far_off_as_they_say(name):
    penalty = Submodular(1.0, SETS[name])
    for w, step in points(40, 1, SETS[name]):
        off = distance(penalty.prox(w, step), exact_norm_step(SETS[name], w, step))
        assert off <= penalty.prox_rounding(P) / 3 * UNIT * np.linalg.norm(w)


@pytest.mark.parametrize("penalty", PLATEAUS, ids=lambda penalty: type(penalty).__name__)
def test_steps_to_plateaus_are_a_third_as_far_off_as_they_say(penalty):
    for w, step in points(40, 6):
        w = w * np.where(np.arange(P) % 3, 1.0, -1.0)
        off = distance(penalty.prox(w, step), exact_level_step(penalty, w, step))
        assert off <= penalty.prox_rounding(P) / 3 * UNIT * np.linalg.norm(w)


@pytest.mark.parametrize("p", [2, 10, 150])
def test_steps_along_chains_and_paths_are_a_third_as_far_off_as_they_say(p):
    """A path whose nodes are in another order is a graph, and served by flows."""
    rng = np.random.default_rng(p)
    order = np.concatenate([np.arange(0, p, 2), np.arange(1, p, 2)])
    path = GraphFused(1.0, np.stack([order[:-1], order[1:]], axis=1))
    for k in range(12):
        w = np.cumsum(rng.standard_normal(p)) + 10.0 * (k % 3) + 1e6 * (k == 5)
        step = float(10 ** rng.uniform(-2, 1))
        expected = exact_chain(w, Fraction(step))
        size = UNIT * np.linalg.norm(w)
        assert (
            distance(TotalVariation(1.0).prox(w, step), expected)
            <= TotalVariation(1.0).prox_rounding(p) / 3 * size
        )
        moved = np.empty(p)
        moved[order] = w
        assert distance(path.prox(moved, step)[order], expected) <= path.prox_rounding(p) / 3 * size


@pytest.mark.parametrize("p", [2, 30, 1000])
def test_projections_on_the_l1_ball_are_a_tenth_as_far_off_as_they_say(p):
    """One long entry before many that hardly differ: most of them are added to be cut away."""
    rng = np.random.default_rng(2)
    for radius in (1.0, 0.9, 0.01):
        w = np.append(1.0, rng.uniform(0.1, 0.1001, p - 1))
        off = distance(L1Ball(radius).prox(w, 1.0), exact_projection(w, radius))
        assert off <= L1Ball(radius).prox_rounding(p) / 10 * UNIT * np.linalg.norm(w)


@pytest.mark.parametrize(
    "penalty",
    [
        *SEPARABLE,
        *GROUPS,
        *(Submodular(1.0, function, l2=0.5) for function in SETS.values()),
        *PLATEAUS,
    ],
    ids=str,
)
def test_an_argument_and_a_step_that_are_off_move_the_result_no_farther_than_is_said(penalty):
    """With errors of 1e-6 in place of roundings, which are too small to be seen here."""
    rng = np.random.default_rng(3)
    given, most = 1e-6 / UNIT, 0.0
    for w, step in points(40, 4):
        moved = penalty.prox(w * (1 + 1e-6 * rng.choice([-1, 1], P)), step * (1 + 1e-6 * rng.choice([-1, 1])))
        allowed = penalty.prox_rounding(P, given) * UNIT * np.linalg.norm(w)
        allowed /= 1 + step * penalty.strong_convexity
        most = max(most, np.linalg.norm(moved - penalty.prox(w, step)) / allowed)
    assert most <= 1 + 1e-6
    assert most > 0.1 or isinstance(penalty, Box)
