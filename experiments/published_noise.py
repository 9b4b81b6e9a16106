"""Noise that the papers' privacy theorems ask for, beside dpglm's for the same promise and number of steps.

Noise is in units of how far one record moves what is released, zero-out, so that neither clips nor Lipschitz
constants matter. Deviations are compared for releases, scales for selections: of Laplace noise in a noisy
maximum, of Gumbel noise in an exponential mechanism. A noisy maximum of scale z is 2/z-DP, as an exponential
mechanism is (docs/proofs/noisy_max.md); Theorem 4.2 counts 1/z.

- DP-CD, Theorem 1 (Mangold, Bellet, Salmon and Tommasi): sigma = sqrt(3 T log(1/delta)) / epsilon.
- DP-GCD, Theorem 4.2 (the same authors): Laplace noise of scale 4 sqrt(T log(1/delta)) / epsilon, twice a
  step.
- Frank-Wolfe (Raff, Khanna and Lu, appendix): scale 2 sqrt(8 T log(1/delta)) / epsilon, once a step.

    python experiments/published_noise.py           # seconds
    python experiments/published_noise.py --quick   # fewer lines
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from dpglm import Bounds, LogisticRegression
from dpglm.mechanisms import Round
from dpglm.penalties import L1, L1Ball, Penalty
from dpglm.solvers import CoordinateDescent, FrankWolfe, GreedyCoordinateDescent, Solver

N, P, DELTA = 10_000, 100, 1e-6
EPSILONS, STEPS = (0.1, 1.0), (10, 100, 1_000)


def descent(root: float) -> list[tuple[str, float]]:
    return [("release", math.sqrt(3) * root)]


def greedy(root: float) -> list[tuple[str, float]]:
    return [("selection", 4 * root), ("release", 4 * root * math.sqrt(2))]


def frank_wolfe(root: float) -> list[tuple[str, float]]:
    return [("selection", 2 * math.sqrt(8) * root)]


THEOREMS: dict[str, tuple[Callable[[int], Solver], Penalty, Callable[[float], list[tuple[str, float]]]]] = {
    "DP-CD, Theorem 1": (lambda steps: CoordinateDescent(steps=steps, clip=1.0), L1(0.1), descent),
    "DP-GCD, Theorem 4.2": (lambda steps: GreedyCoordinateDescent(steps=steps, clip=1.0), L1(0.1), greedy),
    "Frank-Wolfe, appendix": (lambda steps: FrankWolfe(steps=steps), L1Ball(1.0), frank_wolfe),
}


def noises(solver: Solver, penalty: Penalty, epsilon: float) -> list[float]:
    """The noise of the releases of a step, by the plan of a fit."""
    model = LogisticRegression(
        epsilon, delta=DELTA, neighbours="zero-out", penalty=penalty, solver=solver,
        bounds=Bounds(feature=1.0), classes=[0, 1], fit_intercept=False,
    )  # fmt: skip
    mechanism = model.plan(N, P).releases[-1].mechanism
    parts = (mechanism.selection, mechanism.additive) if isinstance(mechanism, Round) else (mechanism,)
    return [part.noise for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one budget and number of steps")
    options = parser.parse_args()
    epsilons, steps = (EPSILONS[1:], STEPS[:1]) if options.quick else (EPSILONS, STEPS)
    print("| theorem | what | epsilon | steps | published | dpglm | times less |\n" + "|---" * 7 + "|")
    for name, (solver, penalty, theorem) in THEOREMS.items():
        for epsilon in epsilons:
            for count in steps:
                published = theorem(math.sqrt(count * math.log(1 / DELTA)) / epsilon)
                for (what, theirs), ours in zip(
                    published, noises(solver(count), penalty, epsilon), strict=True
                ):
                    line = [name, what, f"{epsilon:g}", f"{count:,}", f"{theirs:.1f}", f"{ours:.1f}"]
                    print("| " + " | ".join([*line, f"{theirs / ours:.2f}"]) + " |")


if __name__ == "__main__":
    main()
