"""Random tables in every container, benign and hostile: does an error, a warning or a model tell of a record?

Each case makes two tables of one container, type and shape that differ in the values of one record, fits
both, and compares what can be seen from outside. Entries have the digits of `MARK`, so that a message that
quotes one is noticed. ``python tests/estimators/fuzzing.py 100000`` runs so many cases.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

from dpglm import Bounds, BoundsScaler, GLMClassifier, GLMRegressor, LinearSVC, LogisticRegression, Ridge
from dpglm.penalties import L2, L1Ball
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
)

MARK = "8675309"
BENIGN = (0.8675309, -0.8675309, 0.08675309, 0.0, 1.0)


class Rude:
    """An object that raises, with the marked text, whatever is asked of it."""

    def _raise(self, *_, **__):
        raise RuntimeError(f"secret {MARK}")

    __float__ = __eq__ = __hash__ = __repr__ = __str__ = __len__ = __array__ = __bool__ = _raise


HOSTILE_NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, -1e-310, 8675309.5, 1e99, -0.0)
IMPOSSIBLE = (
    None, pd.NA, pd.NaT, f"secret {MARK}", "", b"secret", 8675309 * 10**400, 8675309 + 1j, {MARK: 1},
    type("Odd", (), {"__class__": property(Rude._raise), "__getattr__": Rude._raise})(),
    [8675309.0], [[1.0], 2.0], (1, 2), {1}, object(), Rude(), np.array([8675309.0]), datetime(2020, 1, 1),
    timedelta(1), np.datetime64("2020"), slice(None), ..., np.array([MARK]), lambda: None,
)  # fmt: skip
ODD_NUMBERS = (
    "8675309", "0.5", b"0.5", Decimal("0.8675309"), Fraction(1, 3), True, np.float32(0.5), np.int8(3),
    np.array(0.5), np.longdouble("1e4000"),
)  # fmt: skip

CONTAINERS: dict = {
    "list": lambda rows: rows,
    "tuple": lambda rows: tuple(map(tuple, rows)),
    "objects": lambda rows: _objects(rows),
    "frame of objects": lambda rows: pd.DataFrame(_objects(rows), dtype=object),
    "mixed frame": lambda rows: _mixed(rows),
}
TYPED: dict = {
    "float64": np.array,
    "float32": lambda rows: np.nan_to_num(np.array(rows), nan=np.nan, posinf=1e38, neginf=-1e38)
    .clip(-1e38, 1e38).astype(np.float32),
    "longdouble": lambda rows: np.array(rows, dtype=np.longdouble),
    "Fortran": np.asfortranarray,
    "strided": lambda rows: np.repeat(np.array(rows), 2, axis=0)[::2],
    "reversed": lambda rows: np.array(rows)[:, ::-1],
    "list of arrays": lambda rows: [np.array(row) for row in rows],
    "matrix": np.asmatrix,
    "masked": lambda rows: np.ma.masked_invalid(np.array(rows)),
    "frame": pd.DataFrame,
    "nullable frame": lambda rows: pd.DataFrame(rows).astype("Float64"),
    "named frame": lambda rows: pd.DataFrame(rows, columns=[f"c{j}" for j in range(len(rows[0]))]),
    "polars": lambda rows: pl.DataFrame(np.array(rows)),
    "arrow": lambda rows: pa.table({f"c{j}": np.array(rows)[:, j] for j in range(len(rows[0]))}),
    "record batch": lambda rows: pa.record_batch(
        {f"c{j}": np.array(rows)[:, j] for j in range(len(rows[0]))}),
    "masked long": lambda rows: np.ma.array(1e300 * np.array(rows, dtype=np.longdouble) ** 2),
    "masked rows": lambda rows: [np.ma.masked_invalid(np.array(row)) for row in rows],
    "foreign bytes": lambda rows: np.array(rows).astype(">f8"),
    "series of arrays": lambda rows: pl.Series(np.array(rows)),
    "csr matrix": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc array": sp.csc_array,
    "coo array": sp.coo_array,
    "bsr array": sp.bsr_array,
    "lil array": sp.lil_array,
    "dok array": sp.dok_array,
    "dia array": sp.dia_array,
    "one dimension": lambda rows: np.array(rows)[:, 0],
    "three dimensions": lambda rows: np.array(rows)[None],
    "text": lambda rows: np.array(rows).astype(str),
    "bytes": lambda rows: np.array(rows).astype("S"),
    "complex": lambda rows: np.array(rows) + 0j,
    "text frame": lambda rows: pd.DataFrame(np.array(rows).astype(str)).astype("string"),
    "structured": lambda rows: np.array([tuple(row) for row in rows], dtype=[
        (f"c{j}", float) for j in range(len(rows[0]))]),
    "flat list": lambda rows: [row[0] for row in rows],
    "scalar": lambda rows: rows[0][0],
    "generator": lambda rows: (row for row in rows),
    "column outside": lambda rows: _broken(rows, "indices", -1, lambda p, nnz: p),
    "negative column": lambda rows: _broken(rows, "indices", 0, lambda p, nnz: -1),
    "rows that end late": lambda rows: _broken(rows, "indptr", -1, lambda p, nnz: nnz + 7),
    "list outside": lambda rows: _outside(sp.lil_array(np.array(rows)), lambda t: t.rows[0].append(99)),
    "key outside": lambda rows: _outside(
        sp.dok_array(np.array(rows)), lambda t: t._dict.update({(99, 0): 1.0})),
    "rows that go back": lambda rows: _broken(rows, "indptr", 1, lambda p, nnz: nnz + 1),
}  # fmt: skip


def _objects(rows):
    table = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            table[i, j] = entry
    return table


def _mixed(rows):
    """A frame whose first column is one of objects."""
    first = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        first[i] = row[0]
    rest = [[0.5 if not isinstance(entry, float) else entry for entry in row[1:]] for row in rows]
    return pd.concat([pd.Series(first, name="x", dtype=object), pd.DataFrame(rest)], axis=1)


def _broken(rows, part, place, value):
    table = sp.csr_array(np.ones((len(rows), len(rows[0]))))
    index = getattr(table, part)
    index[place] = value(table.shape[1], table.nnz)
    return table


def _outside(table, spoil):
    spoil(table)
    return table


LABEL_CONTAINERS: dict = {
    "list": list,
    "tuple": tuple,
    "column of lists": lambda labels: [[label] for label in labels],
    "objects": lambda labels: _objects([[label] for label in labels])[:, 0],
    "series of objects": lambda labels: pd.Series(
        _objects([[label] for label in labels])[:, 0], dtype=object
    ),
    "array of objects": lambda labels: pd.array(_objects([[label] for label in labels])[:, 0], dtype=object),
    "polars objects": lambda labels: pl.Series(labels, dtype=pl.Object),
}
NULLABLE: dict = {
    "nullable": lambda y: pd.Series(y, dtype="Int64" if _whole(y) else "Float64"),
    "polars": lambda y: pl.Series(y, dtype=pl.Int64 if _whole(y) else pl.Float64),
    "arrow": lambda y: pa.array(y, pa.int64() if _whole(y) else pa.float64()),
    "chunks": lambda y: pa.chunked_array([pa.array(y, pa.int64() if _whole(y) else pa.float64())]),
    "masked": lambda y: np.ma.array(
        [0 if one is None else one for one in y], mask=[one is None for one in y]
    ),
    "arrow-backed": lambda y: pd.Series(y, dtype="int64[pyarrow]" if _whole(y) else "double[pyarrow]"),
}
"""Containers with a type of their own in which one target may be missing."""


def _whole(y):
    return all(one is None or isinstance(one, int) for one in y)


TWO, UNIT, STEPS = {"classes": [0, 1]}, Bounds(row_norm=1.0, target=(-1, 1)), GradientDescent(steps=2)
MODELS: dict = {
    "logistic": (LogisticRegression(solver=STEPS, **TWO), "labels"),
    "batches": (LogisticRegression(solver=GradientDescent(steps=2, batch_size=2), **TWO), "labels"),
    "classes read off y": (LogisticRegression(solver=STEPS), "labels"),
    "three classes": (LogisticRegression(classes=[0, 1, 2], solver=STEPS), "labels"),
    "svm": (LinearSVC(solver=DualCoordinateDescent(steps=2, clip=0.1), **TWO), "labels"),
    "frank-wolfe": (
        LogisticRegression(penalty=L1Ball(1.0), solver=FrankWolfe(steps=2), **TWO),
        "labels",
    ),
    "ridge": (Ridge(bounds=UNIT, solver=CoordinateDescent(steps=3)), "numbers"),
    "greedy": (
        Ridge(bounds=Bounds(feature=1.0, target=(-1, 1)), solver=GreedyCoordinateDescent(steps=2)),
        "numbers",
    ),
    "huber": (GLMRegressor(loss="huber", bounds=UNIT, solver=STEPS), "numbers"),
    "counts": (
        GLMRegressor(loss="poisson", bounds=Bounds(row_norm=2.0, target=(0, 5)), solver=STEPS),
        "numbers",
    ),
    "objective": (LogisticRegression(solver=ObjectivePerturbation(), **TWO), "labels"),
    "output": (GLMClassifier(penalty=L2(1.0), solver=OutputPerturbation(), **TWO), "labels"),
    "scaler": (BoundsScaler(-1.0, 1.0), "numbers"),
}


def seen(action) -> tuple:
    """What can be seen of an action: its error or result, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = action()
            error = ""
        except Exception as problem:
            result, error = None, f"{type(problem).__name__}: {problem}"
            context = problem
            while context is not None:  # what a debugger or a logger would show beside it
                error += f" | {type(context).__name__}: {context}"
                context = context.__cause__ or (None if context.__suppress_context__ else context.__context__)
    told = tuple(sorted(f"{one.category.__name__}: {one.message}" for one in caught))
    return result, error, told


def run_case(rng: np.random.Generator) -> tuple[str, str | None]:
    """The name of a random case, and what it gave away, if anything."""
    n, p = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    rows = [[float(value) for value in rng.choice(BENIGN, p)] for _ in range(n)]
    name = str(rng.choice(list(MODELS)))
    model, kind = MODELS[name]
    values = (0, 1) if kind == "labels" else (0.08675309, -0.8675309, 1.0)
    targets = [values[int(k)] for k in rng.integers(len(values), size=n)]
    here, j = int(rng.integers(n)), int(rng.integers(p))
    other_rows, other_targets = [list(row) for row in rows], list(targets)
    container = str(rng.choice([*CONTAINERS, *TYPED]))
    labels = str(rng.choice([*LABEL_CONTAINERS, *NULLABLE]))
    null = False
    in_target = rng.random() < 0.3
    if in_target and labels in NULLABLE:
        other_targets[here], null = None, True
    elif in_target:
        pool = (*IMPOSSIBLE, *HOSTILE_NUMBERS, *ODD_NUMBERS)
        k = int(rng.integers(len(pool)))
        # In a list, a row of one target is that target.
        alone = labels in ("list", "tuple") and type(pool[k]) in (list, np.ndarray)
        alone = alone and k < len(IMPOSSIBLE) and len(pool[k]) == 1
        other_targets[here], null = pool[k], k < len(IMPOSSIBLE) and not alone
    elif container in CONTAINERS:
        pool = (*IMPOSSIBLE, *HOSTILE_NUMBERS, *ODD_NUMBERS)
        k = int(rng.integers(len(pool)))
        if container == "mixed frame":
            j = 0
        other_rows[here][j], null = pool[k], k < len(IMPOSSIBLE)
    else:
        other_rows[here][j] = HOSTILE_NUMBERS[int(rng.integers(len(HOSTILE_NUMBERS)))]
    wrap, wrap_labels = {**CONTAINERS, **TYPED}[container], {**LABEL_CONTAINERS, **NULLABLE}[labels]
    title = f"{name}, X {container}, y {labels}, n {n}, p {p}, target {in_target}"
    try:
        wrap_labels(other_targets)
    except RuntimeError:
        return title, None  # the container itself asks objects what they are
    if name == "scaler":
        outcomes = [seen(lambda rows=table: model.fit_transform(wrap(rows)) is None)
                    for table in (rows, other_rows)]  # fmt: skip
    else:
        model.set_params(random_state=int(rng.integers(1 << 30)))
        outcomes = [
            seen(lambda rows=table, y=y: _model(model.fit(wrap(rows), wrap_labels(y))))
            for table, y in ((rows, targets), (other_rows, other_targets))
        ]
    later = []  # what is asked of a fitted model may depend on rows, but must not quote them
    if outcomes[1][0] is not None and name != "scaler":
        later = [seen(lambda: model.predict(wrap(other_rows))), seen(lambda: UNIT.clip(wrap(other_rows))),
                 seen(lambda: model.score(wrap(rows), wrap_labels(other_targets)))]  # fmt: skip
    for _, error, told in (*outcomes, *later):
        for text in (error, *told):
            if MARK in text or "secret" in text:
                return title, f"quotes a record: {text}"
    (first, error, told), (second, other_error, other_told) = outcomes
    if name == "classes read off y":
        return title, None  # the set of labels is public there, and errors may depend on it
    if error != other_error:
        return title, f"errors differ: {error!r} and {other_error!r}"
    if told != other_told:
        return title, f"warnings differ: {told} and {other_told}"
    if error or name == "scaler":
        return title, None
    if null:
        # An impossible value nulls its own record, and nothing else.
        nothing = [list(row) for row in rows]
        nothing[here] = [float("nan")] * p
        like = wrap if container in TYPED else np.array
        expected, _, _ = seen(lambda: _model(model.fit(like(nothing), np.array(targets))))
        if not np.array_equal(expected, second):
            return title, "an impossible value changed more than its own record"
    return title, None if np.isfinite(second).all() else "a coefficient is not finite"


def _model(model):
    return np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)])


def main(count: int, seed: int = 0) -> Counter:
    """Run so many cases; what they gave away, and how often."""
    rng = np.random.default_rng(seed)
    found: Counter = Counter()
    for _ in range(count):
        title, leak = run_case(rng)
        if leak is not None:
            found[f"{title}: {leak}"] += 1
    return found


if __name__ == "__main__":
    leaks = main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for text, times in leaks.most_common(20):
        print(times, text)
    print(f"{sys.argv[1]} cases, {sum(leaks.values())} told something of a record")
    sys.exit(bool(leaks))
