"""Selections among kept scores, a few of which change, against Gumbel noise on all of them."""

from __future__ import annotations

import numpy as np
from timing import report, side_by_side

from dpglm.mechanisms import Exponential, Randomness

CANDIDATES, CHANGED, ROUNDS = 1_360_000, 3_000, 100


def measure(spread: float) -> None:
    """Measure a build, a draw and an update with scores of a standard deviation of so many scales."""
    mechanism, randomness, rng = Exponential(3.0), Randomness(), np.random.default_rng(0)
    scores = 3.0 * spread * rng.standard_normal(CANDIDATES)
    kept = mechanism.keep(scores, 1.0)
    assert kept is not None
    index = [rng.integers(CANDIDATES, size=CHANGED).astype(np.int32) for _ in range(ROUNDS)]
    # Some 0.3 scales: about a quarter of the candidates change their bin.
    sides = [[scores[i] + 0.9 * rng.standard_normal(CHANGED) for i in index] for _ in range(2)]

    def updates() -> None:
        sides.reverse()
        for i, new in zip(index, sides[0], strict=True):
            kept.update(i, new)

    def draws() -> None:
        for _ in range(ROUNDS):
            kept.draw(randomness)

    draw, update = (seconds / ROUNDS for seconds in side_by_side(draws, updates, rounds=10))
    scan, build = side_by_side(
        lambda: mechanism.release(scores, 1.0, randomness), lambda: mechanism.keep(scores, 1.0), rounds=5
    )
    report(f"update and draw, scores of {spread:g} scales / Gumbel noise", update + draw, scan, goal=0.01)
    print(f"    build {build * 1e3:.1f} ms, update {update * 1e6:.0f} and draw {draw * 1e6:.1f} microseconds")


if __name__ == "__main__":
    measure(1.0)
    measure(20.0)
