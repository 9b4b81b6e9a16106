"""How much noise ends in the model: secret dual variables against the published DP-SCD, at the same promise.

For each budget the table has the noise of one release of v, in units of the clip C:

- *published*: deviation sqrt(2) sigma, because alpha is released beside v and the pair moves by sqrt(2) C,
  with sigma from the moments accountant (Abadi and others, 2016), as in the paper. Its price counts on a
  secret batch, which a released alpha shows: the promise does not hold.
- *published, honest*: the same with a price that holds when batches are seen: shuffled epochs, in which each
  record takes part once, as Gaussian releases composed exactly.
- *dpglm*: alpha stays secret and v alone gets noise, from the Poisson-sampled Gaussian, zero-out as above.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from dp_accounting import DpEvent, GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq

from dpglm.accounting import PoissonGaussian, Repeated, calibrate, gaussian_mu

DELTA = 1e-6
GOAL = 1.7
SETTINGS = [(1000, 100, 200), (20_000, 200, 1000), (20_000, 200, 5000), (20_000, 2000, 500)]
ORDERS = [*range(2, 65), *range(68, 257, 4), *range(272, 1025, 16)]


def by_moments(epsilon: float, rate: float, steps: int, orders: Sequence[int]) -> float:
    """The least noise that the moments accountant allows: whole moments, and Markov's bound for delta."""

    def spent(noise: float) -> float:
        accountant = RdpAccountant(orders, NeighboringRelation.ADD_OR_REMOVE_ONE)
        event: DpEvent = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
        accountant.compose(event, steps)
        losses = zip(orders, accountant._rdp, strict=True)
        return min(loss + math.log(1 / DELTA) / (order - 1) for order, loss in losses)

    return float(brentq(lambda noise: spent(noise) - epsilon, 0.4, 2000.0, xtol=1e-4))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one line, of few moments: it means nothing")
    parser.add_argument("--strict", action="store_true", help=f"exit code 1 if a factor is below {GOAL}")
    arguments = parser.parse_args()
    print(f"delta {DELTA:g}, zero-out, noise of a release in units of C")
    print("| epsilon | records | batch | steps | published | honest | dpglm | factor | honest factor |")
    print("|---|---|---|---|---|---|---|---|---|")
    missed, orders = False, ORDERS[:20] if arguments.quick else ORDERS
    for epsilon in (1.0,) if arguments.quick else (0.1, 1.0, 4.0):
        for n, batch, steps in SETTINGS[:1] if arguments.quick else SETTINGS:
            rate = batch / n
            published = math.sqrt(2) * by_moments(epsilon, rate, steps, orders)
            honest = math.sqrt(2 * steps * rate) / gaussian_mu(epsilon, DELTA)
            ours = calibrate(Repeated(PoissonGaussian(1.0, rate, "zero-out"), steps), epsilon, DELTA)
            factor = published / ours
            missed |= factor < GOAL
            print(
                f"| {epsilon:g} | {n:,} | {batch:,} | {steps:,} | {published:.3f} | {honest:.3f} "
                f"| {ours:.3f} | {factor:.2f}{'' if factor >= GOAL else ' MISSED'} | {honest / ours:.2f} |"
            )
    if arguments.strict and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
