"""Time to find the least noise for a budget, against dp-accounting where it can price the event.

The plans are those of the reference tables of the tests: selections alone and with a release, and
Poisson-sampled Gaussians for both relations. Every calibration is made afresh, nothing is remembered. Times
are CPU seconds, the least of seven.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import dp_accounting
from dp_accounting import pld

from dpglm.accounting import (
    Composed,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    PoissonGaussian,
    Repeated,
    calibrate,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "accounting"))
from tables import POISSON, SELECT, SELECT_AND_RELEASE  # noqa: E402

GOALS = {"Gaussian releases": 0.010, "selection": 0.010, "Poisson": 0.2}
ROUNDS = 7
_CALLS = count(1)


def plans() -> Iterator[tuple[str, Event, float, float]]:
    """Every plan with its family and budget."""
    for epsilon, delta, rounds, *_ in SELECT_AND_RELEASE:
        for name, release in (("Laplace", Laplace(1.0)), ("Gaussian", Gaussian(math.sqrt(2)))):
            yield (
                f"selection + {name}",
                Repeated(Composed((Exponential(1.0), release)), rounds),
                epsilon,
                delta,
            )
            yield "Gaussian releases", Repeated(Gaussian(1.0), rounds), epsilon, delta
    for epsilon, delta, rounds, _ in SELECT:
        yield "selection alone", Repeated(Exponential(1.0), rounds), epsilon, delta
    for epsilon, records, batch, steps, *_ in POISSON:
        for neighbours in ("zero-out", "replace-one"):
            event = Repeated(PoissonGaussian(1.0, batch / records, neighbours), steps)
            yield f"Poisson, {neighbours}", event, epsilon, 1e-6


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def afresh(event: Event, epsilon: float, delta: float) -> float:
    """Calibrate for a budget that no call has had before."""
    return calibrate(event, epsilon * (1 + 1e-9 * next(_CALLS)), delta)


def dp_accounting_seconds(epsilon: float, rate: float, steps: int) -> float:
    """Seconds that dp-accounting takes for the Poisson-sampled Gaussian under add or remove one."""

    def event(noise: float) -> dp_accounting.DpEvent:
        sampled = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
        return dp_accounting.SelfComposedDpEvent(sampled, steps)

    bracket = dp_accounting.LowerEndpointAndGuess(0.3, 10.0)
    return seconds(
        lambda: dp_accounting.calibrate_dp_mechanism(
            pld.PLDAccountant, event, epsilon, 1e-6, bracket, tol=1e-3
        )
    )


def main() -> None:
    """Print the slowest and the mean calibration of each family."""
    calibrate(Repeated(PoissonGaussian(1.0, 0.5, "zero-out"), 3), 1.0, 1e-5)
    times: dict[str, list[float]] = {}
    for family, event, epsilon, delta in plans():
        least = min(seconds(partial(afresh, event, epsilon, delta)) for _ in range(ROUNDS))
        times.setdefault(family, []).append(least)
    for family, taken in times.items():
        goal = next(goal for kind, goal in GOALS.items() if family.startswith(kind))
        verdict = "ok" if max(taken) <= goal else "MISSED"
        mean = sum(taken) / len(taken)
        print(f"{family:<24} slowest {max(taken):.4f} s, mean {mean:.4f} s, goal {goal} s  {verdict}")
    theirs = [
        dp_accounting_seconds(epsilon, batch / records, steps)
        for epsilon, records, batch, steps, *_ in POISSON
        if batch < records
    ]
    ratio = sum(theirs) / sum(times["Poisson, zero-out"])
    print(f"dp-accounting on the Poisson plans: slowest {max(theirs):.2f} s, in all {ratio:.0f} times ours")


if __name__ == "__main__":
    main()
