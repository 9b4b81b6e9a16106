"""Selections among kept scores, a few of which change, against a look at all of them.

That is Gumbel noise on all scores.
"""

from __future__ import annotations

import numpy as np
from timing import report, side_by_side

from dpglm.mechanisms import Exponential, Randomness

CANDIDATES, ROUNDS = 1_000_000, 50
GOALS = {"binned": 0.01, "grouped": 0.1}


def measure(structure: str, spread: float, changed: int) -> None:
    """Measure a build, a draw, and updates with a draw, scores having a deviation of so many scales."""
    rng, mechanism, randomness = np.random.default_rng(0), Exponential(3.0), Randomness()
    scores = 3.0 * spread * rng.standard_normal(CANDIDATES)
    kept = mechanism.keep(scores, 1.0, structure)
    assert kept is not None
    index = [rng.integers(CANDIDATES, size=changed).astype(np.int32) for _ in range(ROUNDS)]
    # Some 0.3 scales: about a quarter of the candidates change their bin.
    sides = [[scores[i] + 0.9 * rng.standard_normal(changed) for i in index] for _ in range(2)]

    def steps() -> None:
        sides.reverse()
        for i, new in zip(index, sides[0], strict=True):
            kept.update(i, new)
            kept.draw(randomness)

    def draws() -> None:
        for _ in range(ROUNDS):
            kept.draw(randomness)

    step, draw = (seconds / ROUNDS for seconds in side_by_side(steps, draws, rounds=5))
    scan, build = side_by_side(
        lambda: mechanism.release(scores, 1.0, randomness),
        lambda: mechanism.keep(scores, 1.0, structure),
        rounds=3,
    )
    what = f"{structure}: {changed} updates and a draw, scores of {spread:g} scales / scan"
    report(what, step, scan, GOALS[structure])
    print(
        f"    a scan takes as long as {scan / step:,.0f} steps; "
        f"build {build * 1e3:.1f} ms, step {step * 1e6:.0f} and draw {draw * 1e6:.1f} microseconds"
    )


if __name__ == "__main__":
    for name in GOALS:
        for scales, many in ((1.0, 3_000), (20.0, 3_000), (1.0, 30)):
            measure(name, scales, many)
