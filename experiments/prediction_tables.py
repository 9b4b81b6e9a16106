"""Real tables for prediction: what is declared of them, and which rows are held out.

Dense columns are scaled by their declared ranges to [-1, 1]; marks (one-hot columns) stay 0 and 1. Rows of
text and of tables that are all marks have norm 1 at most. Ranges of mtp, spambase and the tables of
uci_regression are the 1 and 99 % quantiles, rounded outward to 0 or to 1, 2 or 5 times a power of ten: a look
at the records that is not paid for, the same for all solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from inference_tables import Table as Declared
from inference_tables import Vector, draw
from sklearn.datasets import load_digits

from dpglm import Bounds
from dpglm.datasets import load_adult

REGRESSIONS = ("protein", "pol", "elevators", "bike", "keggundirected")
COVTYPE = ((1500, 4000), (0, 360), (0, 90), (0, 1500), (-200, 700), (0, 7500), *[(0, 255)] * 3, (0, 7500))
RCV1_DOCUMENTS = 23_149
"""Documents that the frequencies of RCV1 were counted in; the table holds 20,242 of them."""


@dataclass(frozen=True, eq=False)
class Table:
    """Records, and what is declared of them: the range of an entry, and bounds.

    ``target`` is the declared range of targets of a regression, None for labels; ``test`` are rows that are
    held out, if the table has some of its own.
    """

    X: Any
    y: Vector
    ranges: tuple[float, float]
    bounds: Bounds
    target: tuple[float, float] | None = None
    test: tuple[Any, Vector] | None = None


def dense(table: Declared) -> Table:
    """A table scaled by its declared ranges."""
    X, y, target = table.scaled()[:, :-1], table.y, table.target
    if target is None:
        return Table(X, np.where(y > 0, 1.0, -1.0), (-1.0, 1.0), Bounds(feature=1.0))
    return Table(X, np.clip(y, *target), (-1.0, 1.0), Bounds(feature=1.0, target=target), target)


def declared(X: Vector, y: Vector, low: Vector, high: Vector, target: tuple[float, float] | None) -> Table:
    """A table in its own units, scaled by the ranges that are declared."""
    return dense(Declared(X, y, low, high, target, np.zeros(0)))


def _rounded_up(values: Vector) -> Vector:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(values))
    return power * np.select([values <= power, values <= 2 * power, values <= 5 * power], [1, 2, 5], 10)


def ranges(X: Vector) -> tuple[Vector, Vector]:
    """Declared range of each column: it contains 0."""
    low, high = np.quantile(X, [0.01, 0.99], axis=0)
    below, above = (np.where(end > 0, _rounded_up(np.maximum(end, 1e-3)), 0.0) for end in (-low, high))
    return -below, np.where(below + above > 0, above, 1e-3)


def cover_types(data: Path) -> Table:
    """The seven cover types of 581,012 places."""
    with np.load(data / "covtype" / "data.npz", allow_pickle=False) as stored:
        marks = [np.eye(4)[stored["wilderness"]], np.eye(40)[stored["soil"]]]
        X, y = np.hstack([stored["numeric"], *marks]), stored["cover_type"].astype(float)
    low, high = np.array([*COVTYPE, *[(-1, 1)] * 44], dtype=float).T  # marks stay 0 and 1
    return replace(declared(X, y, low, high, None), y=y)


def covtype(data: Path) -> Table:
    """The second cover type against the others."""
    table = cover_types(data)
    return replace(table, y=np.where(table.y == 2, 1.0, -1.0))


def digits(data: Path) -> Table:
    """1,797 handwritten digits of 8 x 8 pixels, which come with scikit-learn."""
    X, y = load_digits(return_X_y=True)
    return replace(declared(X, y, np.zeros(64), np.full(64, 16.0), None), y=y.astype(float))


def spambase(data: Path) -> Table:
    """Junk mail, 4,601 letters."""
    with np.load(data / "spambase" / "data.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(float), stored["y"]
    return declared(X, y.astype(float), *ranges(X), None)


def madelon(data: Path) -> Table:
    """500 features, of which 20 say something of the label."""
    with np.load(data / "madelon" / "data.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(float), stored["y"].astype(float)
    return declared(X, y, np.full(X.shape[1], 400.0), np.full(X.shape[1], 560.0), None)


def phishing(data: Path) -> Table:
    """Phishing sites: 30 marks a row, of norm 1."""
    X = sp.csr_array(sp.load_npz(data / "phishing" / "X.npz")).toarray().astype(float)
    y = np.load(data / "phishing" / "y.npy", allow_pickle=False).astype(float)
    return Table(X, y, (0.0, 0.1826), Bounds(row_norm=1.0))


def marked_adult(data: Path) -> Table:
    """Adult in 123 marks, as it comes with dpglm; rows are clipped to norm 1."""
    stored = load_adult()
    largest = float(abs(stored.X).max())
    test = stored.X_test.toarray(), stored.y_test
    return Table(stored.X.toarray(), stored.y, (0.0, largest), Bounds(row_norm=1.0), test=test)


def regression(name: str) -> Callable[[Path], Table]:
    """One of the tables of uci_regression."""

    def load(data: Path) -> Table:
        with np.load(data / "uci_regression" / f"{name}.npz", allow_pickle=False) as stored:
            X, y = stored["X"].astype(float), stored["y"].astype(float)
        (bottom,), (top,) = ranges(y[:, None])
        return declared(X, y, *ranges(X), (float(bottom), float(top)))

    return load


def districts(data: Path) -> Table:
    """The eight features of California housing that scikit-learn has."""
    with np.load(data / "california_housing" / "data.npz", allow_pickle=False) as stored:
        (east, north, age, rooms, bedrooms, people, households, income), y = stored["X"].T, stored["y"]
    a_household = rooms / households, bedrooms / households, people, people / households
    X = np.column_stack([income, age, *a_household, north, east])
    low = np.array([0.0, 0, 0, 0, 0, 0, 32, -125])
    high = np.array([15.0, 52, 15, 5, 10_000, 10, 42, -114])
    return declared(X, y.astype(float), low, high, (0.0, 500_000.0))


def melting_points(random: bool) -> Callable[[Path], Table]:
    """Melting points; test rows are from another source, or drawn from the rows for training."""

    def load(data: Path) -> Table:
        with np.load(data / "mtp_melting_point" / "data.npz", allow_pickle=False) as stored:
            X, y, first = (
                stored["X"].astype(float),
                stored["y"].astype(float),
                stored["is_train"].astype(bool),
            )
        table = declared(X, y, *ranges(X), (0.0, 500.0))
        test = None if random else (table.X[~first], table.y[~first])
        return replace(table, X=table.X[first], y=table.y[first], test=test)

    return load


def mushrooms(data: Path) -> Table:
    """Edible mushrooms: 21 marks a row, scaled to norm 1."""
    X = sp.csr_array(sp.load_npz(data / "mushrooms" / "X.npz")).toarray() / np.sqrt(21)
    y = np.load(data / "mushrooms" / "y.npy", allow_pickle=False).astype(float)
    return Table(X, y, (0.0, 0.2183), Bounds(row_norm=1.0))


def _text(folder: Path, part: str) -> tuple[sp.csr_array, Vector]:
    """Entries and labels of a text table."""
    path = next(folder.glob(f"[Xc]*{part}.npz"), folder / f"X{part}.npz")
    X = sp.csr_array(sp.load_npz(path)).astype(float)
    return X, np.load(folder / f"y{part}.npy", allow_pickle=False).astype(float)


def _unit_rows(X: sp.csr_array, entries: Vector) -> sp.csr_array:
    """Other entries at the same places, scaled to rows of norm 1."""
    X = sp.csr_array((entries, X.indices, X.indptr), shape=X.shape)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data = X.data / np.repeat(np.maximum(norms, 1e-12), np.diff(X.indptr))
    return X


def rcv1(data: Path) -> Table:
    """RCV1 without the weights by document frequency, which are not private."""
    X, y = _text(data / "rcv1_binary", "_train")
    X_test, y_test = _text(data / "rcv1_binary", "_test")
    held = np.bincount(X.indices, minlength=X.shape[1])
    weights = np.log(X.shape[0] / np.maximum(held, X.shape[0] / RCV1_DOCUMENTS))
    weights[weights <= 0] = 1.0
    rows, test = (_unit_rows(A, A.data / weights[A.indices]) for A in (X, X_test))
    return Table(rows, y, (0.0, 1.0), Bounds(row_norm=1.0), test=(test, y_test))


def imdb(data: Path) -> Table:
    """Reviews of films: log(1 + count), rows of norm 1."""
    (X, y), (X_test, y_test) = (_text(data / "imdb_unigrams", part) for part in ("_train", "_test"))
    rows, test = (_unit_rows(A, np.log1p(A.data)) for A in (X, X_test))
    return Table(rows, y, (0.0, 1.0), Bounds(row_norm=1.0), test=(test, y_test))


def news20(data: Path) -> Table:
    """Letters to newsgroups: log(1 + count), rows of norm 1."""
    X, y = _text(data / "news20_binary", "")
    return Table(_unit_rows(X, np.log1p(X.data)), y, (0.0, 1.0), Bounds(row_norm=1.0))


def dorothea(data: Path) -> Table:
    """Compounds that bind to thrombin: 100,000 marks, of which rows are scaled to norm 1."""
    (X, y), (X_test, y_test) = (_text(data / "dorothea", part) for part in ("_train", "_valid"))
    y, y_test = (np.where(labels > 0, 1.0, -1.0) for labels in (y, y_test))
    rows, test = (_unit_rows(A, A.data) for A in (X, X_test))
    return Table(rows, y, (0.0, 1.0), Bounds(row_norm=1.0), test=(test, y_test))


def small(kind: str) -> Callable[[Path], Table]:
    """2,000 drawn records of five features."""
    return lambda data: dense(draw(kind, "mixed", 2_000, 5, np.random.default_rng(0)))


def few_of_many(kind: str, n: int, p: int) -> Callable[[Path], Table]:
    """Drawn records of p features, of which five count."""

    def load(data: Path) -> Table:
        rng = np.random.default_rng(0)
        X = np.clip(rng.normal(0, 0.4, (n, p)), -1, 1)
        z = X[:, :5] @ np.array([2.0, -1.5, 1.0, 2.0, -1.5])
        if kind == "linear":
            y = np.clip(z / 4 + 0.2 * rng.normal(size=n), -1, 1)
            return Table(X, y, (-1.0, 1.0), Bounds(feature=1.0, target=(-1, 1)), (-1.0, 1.0))
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * z)), 1.0, -1.0)
        return Table(X, y, (-1.0, 1.0), Bounds(feature=1.0))

    return load


def with_noise(load: Callable[[Path], Table], rows: int, columns: int) -> Callable[[Path], Table]:
    """The first rows for fits of a dense table, beside columns of uniform noise; all its test rows."""

    def noisy(data: Path) -> Table:
        table = load(data)
        X, y, X_test, y_test = split(table)
        rng, (low, high) = np.random.default_rng(5), table.ranges
        X, X_test = (np.hstack([A, rng.uniform(low, high, (len(A), columns))]) for A in (X, X_test))
        return replace(table, X=X[:rows], y=y[:rows], test=(X_test, y_test))

    return noisy


def score(model: Any, table: Table, X: Any, y: Vector) -> float:
    """Accuracy, or R² of predictions cut to the declared range."""
    if table.target is None:
        return float(np.mean(model.predict(X) == y))
    left = y - np.clip(model.predict(X), *table.target)
    return float(1 - left @ left / np.sum((y - y.mean()) ** 2))


def split(table: Table, first: bool = False) -> tuple[Any, Vector, Any, Vector]:
    """Rows for fits, and rows that are held out: the last fifth of a random order, or the first."""
    if table.test is not None:
        return table.X, table.y, *table.test
    order = np.random.default_rng(0).permutation(len(table.y))
    size = round(0.8 * len(order))
    kept, held = np.split(np.roll(order, size) if first else order, [size])
    return table.X[kept], table.y[kept], table.X[held], table.y[held]
