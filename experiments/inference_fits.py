"""Fits of many tables in parallel, and what each says of its coefficients."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from inference_tables import Table, Vector, adult, california, draw, plain, resampled
from scipy.special import expit
from threadpoolctl import threadpool_limits

from dpglm import LinearRegression, LogisticRegression
from dpglm.accounting import gaussian_mu
from dpglm.curator import Curator
from dpglm.errors import PrivacyWarning
from dpglm.solvers import Newton

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Goal:
    """What a cell should reach; None where nothing is demanded."""

    coverage: tuple[float, float] = (0.0, 1.0)
    least: float = 0.0
    length: float | None = None
    undetermined: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Cell:
    """One case: how its tables are made, how they are fitted, and what is demanded."""

    name: str
    kind: str
    design: str
    n: int
    p: int
    epsilon: float
    law: str = "normal"
    rounds: int | None = None
    slopes_only: bool = False
    tables: float = 1.0
    goal: Goal | None = None

    @property
    def enough(self) -> float:
        """The ratio n mu / d^1.5: a fit should be determined if it is at least 25."""
        return self.n * gaussian_mu(self.epsilon, 1 / self.n**2) / (self.p + 1) ** 1.5


def table_of(cell: Cell, rng: np.random.Generator, data: Path) -> Table:
    """One table of a cell."""
    if cell.design == "adult":
        return resampled(adult(data), cell.n, rng)
    if cell.design == "california":
        return resampled(california(data), cell.n, rng)
    return draw(cell.kind, cell.design, cell.n, cell.p, rng, cell.law)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What one fit says of each coefficient: whether its interval covers, and its relative length.

    Attributes
    ----------
    error : array
        Distance of the estimate from the truth, in standard errors without privacy.
    """

    determined: bool
    covers: Vector
    length: Vector
    error: Vector


def fit_one(cell: Cell, seed: int, k: int, data: Path) -> Fitted:
    """The fit of the k-th table of a cell."""
    warnings.simplefilter("ignore", PrivacyWarning)
    rng = np.random.default_rng([seed, k, cell.n, cell.p, *cell.kind.encode(), *cell.design.encode()])
    table = table_of(cell, rng, data)
    model = model_for(table, cell.epsilon, int(rng.integers(2**31)), cell.rounds).fit(table.X, table.y)
    truth = weighted_fit(california(data), model) if cell.design == "california" else table.truth
    usual = plain(table).errors
    values = np.append(np.ravel(model.coef_), model.intercept_)
    half = Z95 * np.sqrt(np.diagonal(model.covariance_))
    kept = slice(0, cell.p) if cell.slopes_only else slice(None)
    return Fitted(
        bool(model.determined_), (np.abs(values - truth) <= half)[kept], (half / usual / Z95)[kept],
        ((values - truth) / usual)[kept],
    )  # fmt: skip


class _Watched(Curator):
    """A curator that remembers the public part of the last question."""

    def release(self, query: Any, mechanism: Any, *public: Vector, **others: Any) -> Vector:
        self.asked = query, public
        return super().release(query, mechanism, *public, **others)


class _Remembers:
    def _curator(self, *arguments: Any) -> Curator:
        self.watched = _Watched(*arguments)
        return self.watched


class WatchedLogistic(_Remembers, LogisticRegression):
    """`LogisticRegression` whose last release can be looked at."""


class WatchedLinear(_Remembers, LinearRegression):
    """`LinearRegression` whose last release can be looked at."""


def model_for(table: Table, epsilon: float, seed: int | None = None, rounds: int | None = None) -> Any:
    """The public estimator with default settings: replace-one, delta = 1/n²."""
    common: dict[str, Any] = {
        "epsilon": epsilon, "bounds": table.bounds(), "solver": Newton(rounds=rounds), "random_state": seed
    }  # fmt: skip
    if table.target is None:
        return WatchedLogistic(C=math.inf, classes=[0.0, 1.0], **common)
    return WatchedLinear(**common)


def weighted_fit(table: Table, model: Any) -> Vector:
    """The fit of a whole table with the weights and the clip of a model's last release: what it estimates.

    The metric, the limit of the leverage and the clip are public once they are released; the fit with them is
    not private.
    """
    query, (metric, _) = model.watched.asked
    rows = table.scaled()
    weights = np.minimum(1.0, query.leverage**2 / np.maximum(((rows @ metric) ** 2).sum(axis=1), 1e-300))
    w, most = np.zeros(rows.shape[1]), 1.0
    if table.target is not None:
        y, clip = np.clip(table.y, *table.target), query.loss.lipschitz()
        w, most = np.linalg.solve((rows * weights[:, None]).T @ rows, rows.T @ (weights * y)), 0.5 * clip
    for _ in range(100):
        if table.target is None:
            chance = expit(rows @ w)
            slope, curvature = table.y - chance, chance * (1 - chance)
        else:
            bent = np.tanh((y - rows @ w) / clip)
            slope, curvature = clip * bent, 1 - bent**2
        step = np.linalg.solve((rows * (weights * curvature)[:, None]).T @ rows, rows.T @ (weights * slope))
        w += step * min(1.0, most / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-8 * np.abs(w).max():
            break
    return table.units @ w


class Workers:
    """Fits in parallel processes, with a bar that says how many are done."""

    def __init__(self, processes: int, total: int) -> None:
        self._pool = (
            ProcessPoolExecutor(processes, initializer=threadpool_limits, initargs=(1,))
            if processes > 1
            else None
        )
        self._done, self._bar = 0, _bar(total)

    def run(self, cell: Cell, seed: int, tables: int, data: Path) -> list[Fitted]:
        """Fits of so many tables."""
        arguments = repeat(cell), repeat(seed), range(tables), repeat(data)
        found: Iterable[Fitted]
        if self._pool is None:
            found = map(fit_one, *arguments)
        else:
            found = self._pool.map(fit_one, *arguments, chunksize=5)
        return list(self._counted(found, cell.name))

    def _counted(self, found: Iterable[Fitted], name: str) -> Iterator[Fitted]:
        for fit in found:
            self._done += 1
            self._bar(self._done, name)
            yield fit


def _bar(total: int):  # type: ignore[no-untyped-def]
    """What shows progress: a bar of rich in a terminal, else a line for each tenth."""
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        Progress = None
    if Progress is not None and sys.stderr.isatty():
        from rich.console import Console

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        progress.start()
        task = progress.add_task("fits", total=total)

        def show(done: int, name: str) -> None:
            progress.update(task, completed=done, description=name)
            if done == total:
                progress.stop()

        return show

    def line(done: int, name: str) -> None:
        if done == total or done % max(total // 10, 1) == 0:
            print(f"{done:,} of {total:,} fits: {name}", file=sys.stderr, flush=True)

    return line
