"""Noise drawn exactly on a grid against NumPy's double-precision noise from the same generator."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from randomgen import AESCounter
from timing import report, side_by_side

from dpglm.mechanisms import Randomness
from dpglm.threads import PROCESSORS, limit_threads

DRAWS = 1_000_000


def _alone(draw: Callable[[], object]) -> None:
    with limit_threads(1):
        draw()


def main() -> None:
    """Measure blocks of each kind of noise, and single draws."""
    ours, theirs = Randomness(), np.random.Generator(AESCounter())
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object], float]] = {
        "Gaussian": (lambda: ours.gaussian(2**30, DRAWS), lambda: theirs.standard_normal(DRAWS), 8.0),
        "Laplace": (lambda: ours.laplace(2**30, DRAWS), lambda: theirs.laplace(size=DRAWS), 4.0),
        "Gumbel": (lambda: ours.gumbel(DRAWS), lambda: theirs.gumbel(size=DRAWS), 4.0),
    }
    for name, (grid, numpy, goal) in pairs.items():
        seconds = side_by_side(grid, numpy, rounds=8)
        report(f"a million {name} draws / NumPy's, same generator", *seconds, goal=goal)
        print(f"    {DRAWS / seconds[0] / 1e6:.1f} and {DRAWS / seconds[1] / 1e6:.1f} million draws a second")
    for kind in ("gaussian", "laplace"):
        draw = partial(getattr(ours, kind), 2**30, DRAWS)
        many, one = side_by_side(draw, partial(_alone, draw), rounds=8)
        print(f"a million {kind} draws by {PROCESSORS} threads: {one / many:.2f} times as fast as by one")
    start = time.perf_counter()
    for _ in range(10_000):
        ours.gaussian(2**30)
    print(f"a single Gaussian draw: {(time.perf_counter() - start) * 100:.1f} microseconds")


if __name__ == "__main__":
    main()
