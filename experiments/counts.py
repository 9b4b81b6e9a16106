"""Counts and amounts on drawn tables: a default fit beside a constant rate.

    python experiments/counts.py                 # the seeds of the report, a quarter of an hour
    python experiments/counts.py --seeds tune    # those that constants were chosen on
    python experiments/counts.py --quick         # seconds, to see that it runs

Mean deviance on fresh records of a constant rate (that of the records of the fit, without noise), of `auto`,
of each other solver, and of the fit without noise, at epsilon 0.3, 1 and 4, replace-one, delta = 1/n². Each
cell has a table and a fit for every seed; the last column is the deviance of the worst fit of `auto` above
that of the constant.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpglm import Bounds, GammaRegressor, PoissonRegressor, TweedieRegressor
from dpglm.errors import PrivacyWarning
from dpglm.solvers import GradientDescent, Newton

EPSILONS = (0.3, 1.0, 4.0)
TUNING, REPORT = range(3), range(100, 105)
SOLVERS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "Newton": lambda: Newton(intervals=False),
    "gradient descent": GradientDescent,
}
FRESH = 20_000
Model = PoissonRegressor | GammaRegressor | TweedieRegressor


@dataclass(frozen=True)
class Design:
    """A law that tables are drawn from, and what is declared of them.

    ``power`` is that of the law, as for `TweedieRegressor`; ``exposed`` says whether exposures from 0.05 to 1
    multiply means, ``persons`` whether records are those of persons with one to five each, and ``strength``
    is the deviation of the linear predictor.
    """

    name: str
    units: int
    features: int
    rate: float
    most: float
    power: float = 1.0
    exposed: bool = False
    persons: bool = False
    strength: float = 0.5
    alpha: float = 1e-4

    def model(self, epsilon: float, solver: object, seed: int = 0) -> Model:
        """The estimator of the design."""
        bounds = Bounds(
            feature=1.0, target=(0.0, self.most), offset=(math.log(0.05), 0.0) if self.exposed else None,
            rows_per_unit=5 if self.persons else None,
        )  # fmt: skip
        facts: dict[str, Any] = {
            "alpha": self.alpha,
            "solver": solver,
            "bounds": bounds,
            "random_state": seed,
        }
        if self.power == 1:
            return PoissonRegressor(epsilon, **facts)
        if self.power == 2:
            return GammaRegressor(epsilon, **facts)
        return TweedieRegressor(epsilon, power=self.power, **facts)


@dataclass(frozen=True)
class Table:
    """Records of a design; exposures are 1 and persons None if there are none."""

    X: np.ndarray
    y: np.ndarray
    exposure: np.ndarray
    persons: np.ndarray | None

    def beside(self, design: Design) -> dict[str, Any]:
        """What a fit is given besides rows and targets."""
        given: dict[str, Any] = {"exposure": self.exposure} if design.exposed else {}
        return given if self.persons is None else given | {"units": self.persons}


DESIGNS = (
    Design("claims, rare", 20_000, 10, 0.05, 3.0, exposed=True),
    Design("visits of persons", 9_000, 8, 0.4, 8.0, exposed=True, persons=True, strength=0.3, alpha=0.0),
    Design("few records", 2_000, 8, 0.5, 5.0),
    Design("counts of 1", 8_000, 5, 1.0, 8.0),
    Design("counts of 5", 20_000, 20, 5.0, 25.0),
    Design("many records", 100_000, 30, 0.3, 5.0, exposed=True),
    Design("wide", 20_000, 100, 1.0, 8.0),
    Design("wide range", 10_000, 6, 0.5, 50.0),
    Design("amounts, gamma", 10_000, 8, 1.0, 20.0, power=2.0),
    Design("amounts, Tweedie", 20_000, 10, 0.5, 20.0, power=1.5, exposed=True),
    Design("amounts of persons", 5_000, 6, 1.0, 20.0, power=2.0, persons=True),
)  # fmt: skip


def drawn(design: Design, units: int, rng: np.random.Generator, effects: np.ndarray) -> Table:
    """A table of so many records, or persons; columns are uniform, marks, rare marks and skewed in turn."""
    persons = np.repeat(np.arange(units), rng.integers(1, 6, units)) if design.persons else None
    n = units if persons is None else len(persons)
    kinds = (
        lambda: rng.uniform(-1, 1, n), lambda: (rng.random(n) < 0.3) * 1.0,
        lambda: (rng.random(n) < 0.05) * 1.0, lambda: np.minimum(rng.exponential(0.15, n), 1.0),
    )  # fmt: skip
    X = np.column_stack([kinds[j % len(kinds)]() for j in range(design.features)])
    exposure = np.where(rng.random(n) < 0.4, 1.0, rng.uniform(0.05, 1, n)) if design.exposed else np.ones(n)
    spread = np.sqrt(np.tile([1 / 3, 0.21, 0.0475, 0.02], design.features)[: design.features])
    scale = design.strength / np.linalg.norm(effects * spread)
    margin = (X - X.mean(axis=0)) @ (scale * effects)
    mean = design.rate * exposure * np.exp(margin - design.strength**2 / 2)
    if design.power == 1:
        y = rng.poisson(mean * rng.gamma(4.0, 0.25, n))
    elif design.power == 2:
        y = rng.gamma(0.8, 1 / 0.8, n) * np.exp(rng.normal(0, 0.7, n) - 0.245) * mean
    else:
        claims = rng.poisson(mean)
        y = np.where(claims > 0, rng.gamma(np.maximum(claims, 1) * 1.0, 1.0), 0.0)
    return Table(X, np.minimum(y, design.most), exposure, persons)


def deviance(power: float, y: np.ndarray, mean: np.ndarray) -> float:
    """The mean deviance of a Tweedie law."""
    if power == 1:
        part = np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / mean), 0) - (y - mean)
    elif power == 2:
        y = np.maximum(y, 1e-12)
        part = y / mean - 1 - np.log(y / mean)
    else:
        a, b = 1 - power, 2 - power
        part = y**b / (a * b) - y * mean**a / a + mean**b / b
    return 2 * float(np.mean(part))


def constant_rate(power: float, table: Table) -> float:
    """The constant rate that fits a table best."""
    y, e = table.y, table.exposure
    return float((y * e ** (1 - power)).sum() / (e ** (2 - power)).sum())


def cell(design: Design, seed: int, epsilons: tuple[float, ...], names: list[str]) -> dict[Any, float]:
    """The deviance on fresh records of each fit to one table."""
    rng = np.random.default_rng([seed, *map(ord, design.name)])
    effects = rng.normal(size=design.features)
    train, fresh = (drawn(design, units, rng, effects) for units in (design.units, FRESH))
    least = 1e-6 * design.most
    told = {"exposure": fresh.exposure} if design.exposed else {}

    def scored(model: Model) -> float:
        model.fit(train.X, train.y, **train.beside(design))
        return deviance(design.power, fresh.y, np.maximum(model.predict(fresh.X, **told), least))

    found: dict[Any, float] = {
        "constant": deviance(design.power, fresh.y, constant_rate(design.power, train) * fresh.exposure),
        "no noise": scored(replace_alpha(design).model(math.inf, "auto")),
    }
    for epsilon in epsilons:
        for name in names:
            found[epsilon, name] = scored(design.model(epsilon, SOLVERS[name](), seed))
    return found


def replace_alpha(design: Design) -> Design:
    """The design for a fit without noise, which needs a minimum."""
    return replace(design, alpha=max(design.alpha, 1e-6))


def main(seeds: range, epsilons: tuple[float, ...], designs: tuple[Design, ...], names: list[str]) -> None:
    """Print a line for each design and epsilon."""
    print(f"| table | epsilon | constant | {' | '.join(names)} | no noise | worst |")
    print("|" + "---|" * (len(names) + 5))
    for design in designs:
        cells = [cell(design, seed, epsilons, names) for seed in seeds]
        for epsilon in epsilons:
            keys: list[Any] = ["constant", *((epsilon, name) for name in names), "no noise"]
            means = [f"{np.mean([found[key] for found in cells]):.4f}" for key in keys]
            worst = max(found[epsilon, names[0]] - found["constant"] for found in cells)
            print(f"| {design.name} | {epsilon:g} | {' | '.join(means)} | {worst:+.4f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", choices=("tune", "report"), default="report")
    parser.add_argument("--designs", default="", help="names that contain this")
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    chosen = tuple(design for design in DESIGNS if given.designs in design.name)
    if given.quick:
        FRESH = 500
        chosen = (replace(DESIGNS[2], units=400, features=3),)
    main(
        range(1) if given.quick else TUNING if given.seeds == "tune" else REPORT,
        EPSILONS[1:2] if given.quick else EPSILONS,
        chosen,
        given.solvers.split(","),
    )
