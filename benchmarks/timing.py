"""Interleaved timing: two things measured in turn, so that a busy machine is busy for both."""

from __future__ import annotations

import time
from collections.abc import Callable


def side_by_side(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    rounds: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Least seconds of each over alternating rounds, after one round to warm up."""
    best = [float("inf"), float("inf")]
    for repeat in range(rounds + 1):
        for which, run in enumerate((ours, theirs)):
            start = clock()
            run()
            if repeat:
                best[which] = min(best[which], clock() - start)
    return best[0], best[1]


def report(name: str, ours: float, theirs: float, goal: float) -> None:
    """Print one line with the ratio and whether it meets the goal."""
    ratio = ours / theirs
    verdict = "ok" if ratio <= goal else "MISSED"
    times = f"{ours * 1e3:9.2f} ms {theirs * 1e3:9.2f} ms"
    print(f"{name:<66} {times}  ratio {ratio:5.2f}  goal {goal:4.2f}  {verdict}")
