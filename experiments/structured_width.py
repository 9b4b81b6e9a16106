"""Excess risk of output perturbation against the Gaussian width of the dual ball of its norm.

The risk is mean loss + strength * norm(w) + mu / 2 norm(w)², its excess that of the released coefficients
over the exact minimiser: logistic loss (L = 1), rows of norm R = 1, epsilon 1. Kumar and Deisenroth,
"Differentially Private Empirical Risk Minimization with Sparsity-Inducing Norms", Theorem 1, have
strength = L R / (width sqrt(n)) and an excess of at most the order of L R width / (epsilon sqrt(n)): slopes
-1/2 in n and 1 in the width.

    python experiments/structured_width.py           # 3 minutes
    python experiments/structured_width.py --quick   # seconds, too small to mean anything

Its noise takes the strength of the norm for strong convexity. A norm has none, and without an L2 part one
record may move the minimiser any distance, so it is mu that decides how much noise there is:

- *mu = strength*: the noise is then that of the theorem, sigma = 2 width / (mu_G sqrt(n)) for the Gaussian
  parameter mu_G of the budget.
- *mu = 1 / sqrt(n)*: the noise is the same for all norms, and it falls as 1 / sqrt(n), too.

The proof bounds the excess by sqrt(2/pi) L R sigma + strength sigma width + mu p sigma² / 2, the last term
being that of the L2 part, which falls as n^(-3/2). The first term is for a loss with kinks. The logistic one
rises in the mean by at most what it rises from margin 0, E log(cosh(R sigma g / 2)) for a normal g. That is
half of the first term where noise in margins is large, and (R sigma)² / 8 where it is small: slopes then are
-1 in n and, in the first rule, 2 in the width. *Predicted* is the sum with that in place of the first term.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpglm import Bounds, GLMClassifier
from dpglm.errors import PrivacyWarning
from dpglm.penalties import AnyFeature, Cardinality, GroupCover, Range, SetFunction, Submodular
from dpglm.penalties import gaussian_width as width_of
from dpglm.solvers import OutputPerturbation

P, ACTIVE, MARGIN, EPSILON, DELTA = 60, 12, 1.5, 1.0, 1e-6
SIZES = (500, 2_000, 8_000, 32_000, 128_000)
NORMS: dict[str, SetFunction] = {
    "any feature": AnyFeature(),
    "groups of 20": GroupCover(np.arange(P).reshape(-1, 20).tolist()),
    "groups of 10": GroupCover(np.arange(P).reshape(-1, 10).tolist()),
    "groups of 3": GroupCover(np.arange(P).reshape(-1, 3).tolist()),
    "L1": Cardinality(),
    "range": Range(P),
}
RULES: dict[str, Callable[[float, int], float]] = {
    "mu = strength": lambda strength, n: strength,
    "mu = 1 / sqrt(n)": lambda strength, n: 1 / math.sqrt(n),
}
NEAR = 0.1

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Excess:
    """What one norm gave for one n, and what was to be expected."""

    measured: float
    predicted: float
    bound: float


def draw(n: int) -> tuple[Vector, Vector]:
    """Rows of norm 1 and labels of a logistic model in which some features matter."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, P))
    X /= np.linalg.norm(X, axis=1)[:, None]
    w = np.zeros(P)
    w[:ACTIVE] = MARGIN * math.sqrt(P / ACTIVE) * rng.choice([-1.0, 1.0], ACTIVE)
    return X, np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-X @ w)), 1.0, -1.0)


def excess(function: SetFunction, rule: str, X: Vector, y: Vector, seeds: int) -> Excess:
    """The mean excess over several releases, its prediction and its bound."""
    n, width = len(y), width_of(function, P)
    strength = 1 / (width * math.sqrt(n))
    mu = RULES[rule](strength, n)
    penalty = Submodular(strength, function, mu)

    def fit(epsilon: float, seed: int) -> GLMClassifier:
        # The clip is the largest gradient norm of all, so that nothing is clipped.
        return GLMClassifier(
            epsilon=epsilon,
            delta=DELTA,
            penalty=penalty,
            solver=OutputPerturbation(clip=1.0, sparse=False),
            bounds=Bounds(row_norm=1.0),
            fit_intercept=False,
            classes=[-1, 1],
            random_state=seed,
        ).fit(X, y)

    def risk(model: GLMClassifier) -> float:
        w = model.coef_.ravel()
        return float(np.mean(np.logaddexp(0, -y * (X @ w)))) + penalty.value(w)

    private = [fit(EPSILON, seed) for seed in range(seeds)]
    least = risk(fit(math.inf, 0))
    (release,) = private[0].plan_.releases
    sigma = release.mechanism.noise * float(release.sensitivity)
    rest = strength * sigma * width + mu * P * sigma**2 / 2
    kinks = math.sqrt(2 / math.pi) * sigma
    return Excess(
        float(np.mean([risk(model) - least for model in private])),
        rise(sigma) + rest,
        kinks + rest,
    )


def rise(sigma: float) -> float:
    """How much noise of that deviation in a margin of 0 adds to the logistic loss, on average."""
    g = np.linspace(-9, 9, 9001)
    weights = np.exp(-(g**2) / 2)
    return float(weights @ (np.logaddexp(0, sigma * g) - math.log(2)) / np.sum(weights))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of the line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def show(rule: str, found: dict[str, list[Excess]], sizes: Sequence[int]) -> list[float]:
    """Print the table of one rule; the slopes in n that were measured."""
    print(f"\n{rule}\n\n| norm | width | {' | '.join(f'{n:,}' for n in sizes)} | slope | predicted | bound |")
    print("|---" * (5 + len(sizes)) + "|")
    slopes = []
    for name, line in found.items():
        kinds = [[one.measured for one in line], [one.predicted for one in line], [one.bound for one in line]]
        measured, predicted, bound = (slope(sizes, kind) for kind in kinds)
        slopes.append(measured)
        cells = " | ".join(f"{one.measured:.3g}" for one in line)
        mark = "" if abs(measured - predicted) <= NEAR else " MISSED"
        print(
            f"| {name} | {width_of(NORMS[name], P):.1f} | {cells} "
            f"| {measured:.2f}{mark} | {predicted:.2f} | {bound:.2f} |"
        )
    widths = [width_of(NORMS[name], P) for name in found]
    for kind in ("measured", "predicted", "bound"):
        by_width = [
            slope(widths, [getattr(line[k], kind) for line in found.values()]) for k in range(len(sizes))
        ]
        cells = " | ".join(f"{value:.2f}" for value in by_width)
        print(f"| *slope in the width, {kind}* | | {cells} | | | |")
    return slopes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--seeds", type=int, default=5, help="releases for each figure")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)  # fixed seeds: a study, not a private fit
    sizes, seeds = (SIZES[:2], 1) if options.quick else (SIZES, options.seeds)
    print(f"{P} features, epsilon {EPSILON:g}, delta {DELTA:g}, mean excess of {seeds} releases")
    tables = [draw(n) for n in sizes]
    slopes, within, near, cells = [], 0, 0, 0
    for rule in RULES:
        found = {
            name: [excess(function, rule, X, y, seeds) for X, y in tables] for name, function in NORMS.items()
        }
        slopes += show(rule, found, sizes)
        every = [one for line in found.values() for one in line]
        within += sum(one.measured <= one.bound for one in every)
        near += sum(0.75 <= one.measured / one.predicted <= 1.25 for one in every)
        cells += len(every)
    fast = sum(value <= -0.5 + NEAR for value in slopes)
    same = sum(abs(value + 0.5) <= NEAR for value in slopes)
    print(
        f"\nThe excess is within the bound in {within} of {cells} cells, "
        f"and within a quarter of the prediction in {near}.\n"
        f"It falls at least as fast as 1 / sqrt(n) in {fast} of {len(slopes)} lines, "
        f"and just as fast (slope within {NEAR:g} of -1/2) in {same}."
    )


if __name__ == "__main__":
    main()
