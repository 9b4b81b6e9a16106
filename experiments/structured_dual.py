"""What the paper on structured norms states of the dual problem and of new data, and whether it holds.

Kumar and Deisenroth, "Differentially Private Empirical Risk Minimization with Sparsity-Inducing Norms", with
an L2 part beside the norm, without which the minimiser may move any distance (docs/proofs/minimiser.md).
Squared loss, for which the gradient theta(s) of the dual has a closed form.

    python experiments/structured_dual.py           # 2 minutes
    python experiments/structured_dual.py --quick   # seconds, too small to mean anything

- *Gaussian widths* (section 4.1): of the order of p for the ball of L1's dual norm, and of sqrt(log p) for
  that of the largest coefficient.
- *Proposition 1*: the excess on new data is at most that on the table plus the order of
  B R L sqrt(log(1 / alpha) / n), with probability 1 - alpha = 0.95. Output perturbation with L1 at epsilon 1,
  20 tables for each n; new data are 200,000 other rows, B is the longer of the two vectors of coefficients,
  R = 1, L = 2.
- *Proposition 2*: objective perturbation is output perturbation of the dual. The dual is solved by itself, by
  projected gradients. With the noise b in the argument of the conjugate it is an identity. Adding b to the
  dual solution without noise, which is what output perturbation does, is another mechanism.
- *Theorem 2*: Algorithm 1 comes within diameter² / (Delta T) of the least dual value after T steps, up to a
  constant. Its step sizes are printed as 1 / (t + 2), and proven for 2 / (t + 2): both are run.
- *Theorem 4*: Algorithm 2 with T = diameter^(4/3) (n epsilon)^(2/3) / (L width)^(2/3) steps comes within the
  order of (n epsilon)^(-2/3), up to logarithms. Vertices of the largest coefficient's dual ball are selected
  with the noise of dpglm's plan, epsilon 1, delta 1/n².
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpglm import Bounds, GLMRegressor
from dpglm.penalties import AnyFeature, Cardinality, GroupCover, Range, SetFunction, Submodular
from dpglm.penalties import gaussian_width as width_of
from dpglm.solvers import DualFrankWolfe, OutputPerturbation

P, ACTIVE, L2, STRENGTH, CLIP = 20, 4, 0.05, 0.02, 2.0
BOUNDS = Bounds(row_norm=1.0, target=(-1.0, 1.0))
NORMS: dict[str, SetFunction] = {
    "L1": Cardinality(),
    "any feature": AnyFeature(),
    "groups of 5": GroupCover(np.arange(P).reshape(-1, 5).tolist()),
    "range": Range(P),
}
STEPS: dict[str, Callable[[int], float]] = {
    "1 / (t + 2)": lambda t: 1 / (t + 2),
    "2 / (t + 2)": lambda t: 2 / (t + 2),
}

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """f(theta) = mean of (x · theta - y)² / 2 + L2 / 2 norm(theta)², and the dual of f + strength * norm."""

    hessian: Vector
    slope: Vector  # of f at 0
    function: SetFunction
    strength: float

    def theta(self, s: Vector) -> Vector:
        """The minimiser of f + s · theta."""
        return np.linalg.solve(self.hessian, -(self.slope + s))

    def dual(self, s: Vector) -> float:
        """What the dual problem minimises: f*(-s), without the constant of f."""
        return float(-(self.slope + s) @ self.theta(s) / 2)

    def value(self, theta: Vector) -> float:
        """The objective of the primal problem, without the constant of f."""
        smooth = theta @ self.hessian @ theta / 2 + self.slope @ theta
        return float(smooth + self.strength * self.function.norm(theta))

    def project(self, s: Vector) -> Vector:
        """The point of the dual ball that is nearest to s."""
        return s - self.function.prox(s, self.strength)

    def vertex(self, theta: Vector) -> Vector:
        """A vertex of the dual ball at which the inner product with theta is largest."""
        return -self.strength * self.function.linear_minimiser(theta)

    def primal_solution(self, linear: Vector, steps: int) -> Vector:
        """The minimiser of f + strength * norm + linear · theta, by proximal steps with momentum."""
        length = 1 / np.linalg.eigvalsh(self.hessian)[-1]
        return accelerated(
            lambda w: self.function.prox(
                w - length * (self.hessian @ w + self.slope + linear), self.strength * length
            ),
            self.slope, steps,
        )  # fmt: skip

    def dual_solution(self, shift: Vector, steps: int) -> Vector:
        """The s of the dual ball that minimises f*(-(s + shift)), by projected steps with momentum."""
        length = np.linalg.eigvalsh(self.hessian)[0]
        return accelerated(lambda s: self.project(s + length * self.theta(s + shift)), self.slope, steps)


def accelerated(step: Callable[[Vector], Vector], like: Vector, steps: int) -> Vector:
    """Steps with momentum that restarts every hundred."""
    x = before = np.zeros_like(like)
    for t in range(steps):
        x, before = step(x + t % 100 / (t % 100 + 3) * (x - before)), x
    return x


def draw(n: int, seed: int = 0) -> tuple[Vector, Vector]:
    """Rows of norm 1 and targets that follow some neighbouring features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, np.clip(X[:, :ACTIVE].sum(axis=1) / 2 + 0.1 * rng.standard_normal(n), -1, 1)


def problem(function: SetFunction, X: Vector, y: Vector, strength: float | None = None) -> Quadratic:
    """By default the norm is three tenths as strong as it must be for all coefficients to be 0."""
    n, slope = len(y), -X.T @ y / len(y)
    strength = strength or 0.3 * function.dual_norm(slope)
    return Quadratic(X.T @ X / n + L2 * np.eye(P), slope, function, strength)


def widths(sizes: tuple[int, ...]) -> None:
    print("\nGaussian widths\n\n| p | L1 | over p sqrt(2 / pi) | any feature | over sqrt(2 log p) |")
    print("|---|---|---|---|---|")
    for p in sizes:
        one, largest = width_of(Cardinality(), p), width_of(AnyFeature(), p)
        ratios = one / (p * math.sqrt(2 / math.pi)), largest / math.sqrt(2 * math.log(p))
        print(f"| {p:,} | {one:.1f} | {ratios[0]:.4f} | {largest:.3f} | {ratios[1]:.3f} |")


def proposition_1(sizes: tuple[int, ...], tables: int, fresh: int, steps: int) -> None:
    print("\nProposition 1, mean excess\n\n| n | new data | the table | difference, most | bound | within |")
    print("|---|---|---|---|---|---|")
    function = Cardinality()
    new = problem(function, *draw(fresh, 10**6), STRENGTH)
    best = new.primal_solution(np.zeros(P), steps)
    for n in sizes:
        plan = GLMRegressor(
            epsilon=1.0, penalty=Submodular(STRENGTH, function, L2), bounds=BOUNDS, fit_intercept=False,
            solver=OutputPerturbation(clip=CLIP),
        ).plan(n, P)  # fmt: skip
        (release,) = plan.releases
        noise = release.mechanism.noise * float(release.sensitivity)
        found = []
        for seed in range(tables):
            table = problem(function, *draw(n, seed), STRENGTH)
            exact = table.primal_solution(np.zeros(P), steps)
            private = exact + noise * np.random.default_rng(seed).standard_normal(P)
            longest = max(np.linalg.norm(private), np.linalg.norm(best))
            bound = longest * CLIP * math.sqrt(math.log(20) / n)
            found.append(
                (new.value(private) - new.value(best), table.value(private) - table.value(exact), bound)
            )
        beyond, inside, bounds = np.array(found).T
        within = int(np.sum(beyond - inside <= bounds))
        cells = (
            f"{beyond.mean():.2e} | {inside.mean():.2e} | {(beyond - inside).max():.1e} | {bounds.mean():.1e}"
        )
        print(f"| {n:,} | {cells} | {within} of {tables} |")


def proposition_2(n: int, steps: int) -> None:
    """Distances in units of the coefficients of objective perturbation, for b of a tenth of the slope."""
    print("\nProposition 2\n\n| norm | b in the conjugate | b added to the solution | zeros | zeros then |")
    print("|---|---|---|---|---|")
    X, y = draw(n)
    for name, function in NORMS.items():
        f = problem(function, X, y)
        b = np.random.default_rng(1).standard_normal(P)
        b *= 0.1 * np.linalg.norm(f.slope) / np.linalg.norm(b)
        theta = f.primal_solution(b, steps)
        inside = f.theta(f.dual_solution(b, steps) + b)
        added = f.theta(f.dual_solution(np.zeros(P), steps) + b)
        far = [np.linalg.norm(other - theta) / np.linalg.norm(theta) for other in (inside, added)]
        zeros = [int(np.sum(np.abs(w) < 1e-9)) for w in (theta, added)]
        print(f"| {name} | {far[0]:.1e} | {far[1]:.2f} | {zeros[0]} | {zeros[1]} |")


def theorem_2(n: int, most: int, steps: int) -> None:
    shown = [t for t in (10, 100, 1_000, 10_000) if t <= most]
    print("\nTheorem 2, excess of the dual value after T steps\n")
    print(f"| norm | step | {' | '.join(map(str, shown))} | slope in T | T Delta / diameter² of it, most |")
    print("|---" * (4 + len(shown)) + "|")
    X, y = draw(n)
    for name, function in NORMS.items():
        f = problem(function, X, y)
        least = f.dual(f.dual_solution(np.zeros(P), steps))
        delta = float(np.linalg.eigvalsh(f.hessian)[0])
        rng = np.random.default_rng(0)
        # The longest vertex: all orders of features give one, and signs change no length.
        longest = max(np.linalg.norm(f.vertex(rng.standard_normal(P))) for _ in range(1_000))
        for rule, size in STEPS.items():
            s, excess = np.zeros(P), {}
            for t in range(1, most + 1):
                s = s + size(t) * (f.vertex(f.theta(s)) - s)
                if t in shown:
                    excess[t] = f.dual(s) - least
            slope = np.polyfit(np.log(shown), np.log(np.maximum(list(excess.values()), 1e-18)), 1)[0]
            constant = max(value * t for t, value in excess.items()) * delta / (2 * longest) ** 2
            cells = " | ".join(f"{value:.1e}" for value in excess.values())
            print(f"| {name} | {rule} | {cells} | {slope:.2f} | {constant:.2f} |")


def theorem_4(sizes: tuple[int, ...], seeds: int, solution_steps: int) -> None:
    print("\nTheorem 4, excess of the dual value\n\n| n | steps | excess | deviation | order of the bound |")
    print("|---|---|---|---|---|")
    found, orders = [], []
    for n in sizes:
        X, y = draw(n, n)
        f = problem(AnyFeature(), X, y, STRENGTH)
        least = f.dual(f.dual_solution(np.zeros(P), solution_steps))
        # The dual value changes by at most the largest coefficient of theta(s) for a change of s in L1.
        lipschitz, diameter = (1 + STRENGTH) / L2, 2 * STRENGTH
        width = STRENGTH * width_of(AnyFeature(), P)
        steps = math.ceil(diameter ** (4 / 3) * n ** (2 / 3) / (lipschitz * width) ** (2 / 3))
        plan = GLMRegressor(
            epsilon=1.0, penalty=Submodular(STRENGTH, AnyFeature(), L2), bounds=BOUNDS, fit_intercept=False,
            solver=DualFrankWolfe(steps=steps, clip=CLIP, share=0.999),
        ).plan(n, P)  # fmt: skip
        choice = plan.releases[0]
        noise = choice.mechanism.noise * float(choice.sensitivity)
        runs = []
        for seed in range(seeds):
            rng, s = np.random.default_rng(seed), np.zeros(P)
            for t in range(1, steps + 1):
                scores = STRENGTH * f.theta(s)
                chosen = int(np.argmax(np.concatenate([scores, -scores]) + noise * rng.gumbel(size=2 * P)))
                s *= 1 - 2 / (t + 2)
                s[chosen % P] += 2 / (t + 2) * STRENGTH * (1 if chosen < P else -1)
            runs.append(f.dual(s) - least)
        logarithms = math.log(n * 2 * P) * math.sqrt(2 * math.log(n))
        orders.append(diameter ** (2 / 3) * (lipschitz * width) ** (2 / 3) * logarithms / n ** (2 / 3))
        found.append(float(np.mean(runs)))
        print(f"| {n:,} | {steps:,} | {found[-1]:.2e} | {np.std(runs):.0e} | {orders[-1]:.2e} |", flush=True)
    slopes = [np.polyfit(np.log(sizes), np.log(values), 1)[0] for values in (found, orders)]
    print(f"| *slope in n* | | {slopes[0]:.2f} | | {slopes[1]:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    quick = parser.parse_args().quick
    widths((10, 100) if quick else (10, 100, 1_000, 10_000))
    proposition_1(
        (500,) if quick else (500, 2_000, 8_000, 32_000),
        2 if quick else 20,
        1_000 if quick else 200_000,
        200 if quick else 1_000,
    )
    proposition_2(200 if quick else 5_000, 200 if quick else 5_000)
    theorem_2(200 if quick else 5_000, 100 if quick else 10_000, 200 if quick else 5_000)
    theorem_4(
        (500, 1_000) if quick else (10_000, 40_000, 160_000, 640_000),
        1 if quick else 5,
        200 if quick else 5_000,
    )


if __name__ == "__main__":
    sys.exit(main())
