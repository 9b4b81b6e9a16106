"""Tables whose small groups are known: what `groups.py` measures, for other experiments and tests, too.

The logistic model holds in all drawn tables, so that the fit without noise and penalty has no gap in any
group that is a column. Ranges of columns are declared; groups are columns of 0 and 1.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from dpglm import Bounds
from dpglm.datasets import write_adult
from dpglm.schema import Schema

Vector = NDArray[np.float64]
Draw = Callable[[np.random.Generator], "GroupTable"]

SHARES = (0.01, 0.03, 0.1)
RARE = 0.03
"""Levels of Adult with a smaller share of the records are measured."""


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Records with labels 0 and 1, what is declared of them, and the records of each group by its name."""

    X: Vector
    y: Vector
    groups: dict[str, NDArray[np.bool_]]
    bounds: Bounds


def marks(rng: np.random.Generator, n: int, shares: tuple[float, ...]) -> Vector:
    """A column of 0 and 1 for each share."""
    return (rng.random((n, len(shares))) < shares).astype(float)


def labels(rng: np.random.Generator, margins: Vector, base_rate: float) -> Vector:
    """Labels of the logistic model, with the intercept that gives the base rate."""
    intercept = brentq(lambda b: float(np.mean(expit(margins + b))) - base_rate, -30, 30)
    return (rng.random(len(margins)) < expit(margins + intercept)).astype(float)


def with_groups(
    rng: np.random.Generator, numbers: Vector, effect: Vector, ends: tuple[float, float],
    shares: tuple[float, ...] = SHARES, base_rate: float = 0.15,
    more: dict[str, NDArray[np.bool_]] | None = None,
) -> GroupTable:  # fmt: skip
    """Numbers within one declared range, and groups with effects of 0.5 and -0.5 in turn."""
    n, count = numbers.shape
    members = marks(rng, n, shares)
    X = np.hstack([np.clip(numbers, *ends), members])
    effects = np.resize([0.5, -0.5], len(shares))
    y = labels(rng, X @ np.concatenate([effect, effects]), base_rate)
    groups = {f"{share:.2g}": members[:, k] > 0 for k, share in enumerate(shares)}
    bounds = Bounds(feature=[ends] * count + [(0.0, 1.0)] * len(shares))
    return GroupTable(X, y, groups | (more or {}), bounds)


def two_features(share: float, n: int = 15_000) -> Draw:
    """A number and a group of this share; base rate 0.2."""

    def draw(rng: np.random.Generator) -> GroupTable:
        return with_groups(rng, rng.uniform(-1, 1, (n, 1)), np.ones(1), (-1.0, 1.0), (share,), 0.2)

    return draw


def twelve_features(rng: np.random.Generator, n: int = 20_000) -> GroupTable:
    """Eight numbers of unequal effect and four groups; base rate 0.15."""
    effect = rng.permutation([1.0, -0.8, 0.6, -0.4, 0.3, -0.2, 0.1, 0.0])
    return with_groups(rng, rng.uniform(-1, 1, (n, 8)), effect, (-1.0, 1.0), (0.015, 0.03, 0.06, 0.2))


def skewed_columns(rng: np.random.Generator, n: int = 20_000) -> GroupTable:
    """Five log-normal columns, most of whose entries are far below the end of the declared range."""
    numbers = rng.lognormal(0.0, 1.0, (n, 5))
    return with_groups(rng, numbers, np.array([0.3, -0.3, 0.15, -0.15, 0.0]), (0.0, 50.0))


def long_rows(rng: np.random.Generator, n: int = 20_000) -> GroupTable:
    """Six numbers; 3 % of the rows have numbers five times as large, and are a group of their own."""
    long = rng.random(n) < 0.03
    numbers = rng.normal(0.0, 1.0, (n, 6)) * np.where(long, 5.0, 1.0)[:, None]
    effect = rng.permutation([0.6, -0.5, 0.4, -0.3, 0.2, 0.0])
    return with_groups(rng, numbers, effect, (-15.0, 15.0), more={"long": long})


def adult() -> GroupTable:
    """Adult by the schema that comes with dpglm; its groups are the rare levels of all columns."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_adult(folder)
        schema, frame = Schema.load(files.schema), pd.read_csv(files.train)
    X = schema.encode(frame).toarray()
    y = (frame[schema.target].str.strip() == ">50K").to_numpy(float)
    groups = {
        name: column > 0
        for name, column in zip(schema.features, X.T, strict=True)
        if "=" in name and 20 <= np.count_nonzero(column) < RARE * len(X)
    }
    return GroupTable(X, y, groups, schema.bounds())


DRAWN: dict[str, Draw] = {
    **{f"two features, {share:.0%}": two_features(share) for share in (*SHARES, 0.3)},
    "twelve features": twelve_features,
    "skewed columns": skewed_columns,
    "long rows": long_rows,
}


def tables(names: list[str], count: int) -> Iterator[tuple[str, GroupTable]]:
    """The tables of these designs, each drawn so many times; Adult is one table."""
    for name in names:
        for seed in range(1 if name == "adult" else count):
            yield name, adult() if name == "adult" else DRAWN[name](np.random.default_rng(seed))
