"""What the workers of a cluster run: blocks are loaded once, and summed in each pass.

Before a worker loads a block, it sums a public table: it must compute, bit for bit, what the driver computes.

No error leaves these functions: engines quote the arguments of a task, which are records, in their logs. The
objects that tasks are given have no telling text form, for the same reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...arrays import Vector, grid_of_terms, on_column_grids
from ...bounds import Bounds, Coordinates
from ...kernels.arguments import PAIRED
from ...losses import LogCosh, Logistic, Loss, Multinomial
from ...silence import silent
from ...threads import limit_threads
from ..bounded_numbers import (
    ClassSizes,
    CutGains,
    CutValues,
    LossValues,
    MeanRows,
    RowAndTargetSizes,
    RowSizes,
)
from ..columns import RecordColumns
from ..fingerprint import Fingerprint, Mark
from ..products import (
    ClassGradients,
    CrossProducts,
    GramRows,
    JointMargins,
    JointRows,
    MetricClassRows,
    MetricRows,
    MomentRows,
)
from ..record_set import Coins, Grid, Part, taking_part
from ..records import Records
from ..source import as_block, as_data
from ..streamed import Convert, Targets
from ..terms import (
    CutGradient,
    Gradient,
    GramProduct,
    InterceptGradient,
    PreciseGradient,
    SizedGradient,
    SquaredRow,
    Term,
)

_ROWS, _COLUMNS = 96, 19
_ODD = (0.0, -0.0, 5e-324, 1e-310, -1e-300, 2.0**-53, 1.0, -1.0, 1e6, 1e150, 1e308, np.inf, -np.inf, np.nan)
_BOUNDS = Bounds(row_norm=1.0, feature=0.75)
_PACKAGES = ("dpglm", "numpy", "numba")
_MOST_ANSWERS = 64
_answers: dict[str, bool] = {}


@dataclass(frozen=True, eq=False, repr=False)
class Probe:
    """A question about a table that everybody knows: its rows have nothing to do with the records.

    Parameters
    ----------
    loss : Loss
        The loss of the fit.
    sparse : bool
        Whether blocks are sparse.
    dtype : dtype
        The type of their entries.
    """

    loss: Loss
    sparse: bool
    dtype: np.dtype[np.floating]

    @np.errstate(all="ignore")
    def answer(self) -> str:
        """A digest of norms, margins, slopes and sums of every kind, as this process computes them."""
        digest = hashlib.sha256()
        for records in self._tables():
            w = _numbers(_COLUMNS + 1, 7) * 4
            z = records.margins(w)
            slopes = records.slopes(self._one, z)
            for values in (records.scale, records.row_norms, z, slopes):
                digest.update(np.where(np.isnan(values), 0.0, values).tobytes())
            for term in self._terms(w):
                if term.cuts is not None:
                    grid: float | Vector = np.full(_COLUMNS + 1, grid_of_terms(term.limit, _ROWS))
                    digest.update(records.steps(term, grid).tobytes())
                    continue
                for finely in (0, 1):
                    digest.update(records.steps(term, grid_of_terms(term.limit, _ROWS), finely).tobytes())
            if self._one.form in PAIRED:
                pair = PreciseGradient(self._one, np.array([w, w * 2.0**-55]), 0.5)
                digest.update(records.steps(pair, grid_of_terms(0.5, _ROWS), 2).tobytes())
            for products in self._products(w):
                digest.update(records.steps(products, 1.0).tobytes())
        return digest.hexdigest()

    @property
    def _one(self) -> Loss:
        """The loss, or a loss of one prediction if it has several."""
        return self.loss if self.loss.outputs == 1 else Logistic()

    def _tables(self) -> Iterator[Records]:
        """The table in each layout that blocks may have."""
        X = (_numbers(_ROWS * _COLUMNS, 3) * 2).reshape(_ROWS, _COLUMNS)
        X *= np.ldexp(1.0, np.arange(_ROWS) % 7 - 3)[:, None]
        X[np.arange(0, _ROWS, 3), np.arange(0, _ROWS, 3) % _COLUMNS] = 0.0
        odd = np.arange(len(_ODD))
        X[5 * odd, odd] = _ODD
        X[-1], X[-2] = 1e-310, 5e-324
        X = X.astype(self.dtype)
        y = _numbers(_ROWS, 5)
        bounds = _BOUNDS
        if self.loss.kind == "classification":
            y = np.where(y > 0, 1.0, -1.0)
        else:
            bounds = Bounds(row_norm=1.0, feature=0.75, target=(0.0, 1.0))
            y[: len(_ODD)] = _ODD
        layouts = [sp.csr_array(X)] if self.sparse else [X, np.asfortranarray(X)]
        return (as_data(table, y, bounds, 0.5) for table in layouts)

    def _terms(self, w: Vector) -> list[Term]:
        return [
            Gradient(self._one, w, 0.5),
            Gradient(self._one, w, 0.5, scales=np.linspace(0.1, 1.0, _COLUMNS)),
            SizedGradient(self._one, w, 0.5),
            InterceptGradient(self._one, w, 0.5),
            CutGradient(self._one, w, np.full(_COLUMNS + 1, 0.125)),
            SquaredRow(1.25),
            GramProduct(w, 1.25),
        ]

    def _products(self, w: Vector) -> list[CrossProducts]:
        """Products of the numbers of a record, as solvers for narrow tables ask for."""
        coordinates = _BOUNDS.coordinates(_COLUMNS, intercept=True)
        metric = on_column_grids(np.outer(w, w[::-1]) + np.eye(_COLUMNS + 1))
        point, points = on_column_grids(w[:, None])[:, 0], np.column_stack([w, w / 2])
        loss = Logistic() if self.loss.kind == "classification" else LogCosh(0.5)
        return [
            MomentRows(coordinates, 1.5, 0.25, 0.5, _ROWS),
            JointRows(loss, coordinates, 1.0, 0.6, _ROWS, metric, point),
            JointMargins(loss, None, 1.0, 0.6, _ROWS, metric[:2, :2], point[:2], w),
            LossValues(loss, coordinates, 2.0, _ROWS, point),
            GramRows(coordinates, 1.5, metric, _ROWS),
            MeanRows(replace(coordinates, intercept=False), 0.9, _ROWS),
            RowSizes(coordinates, 1.5, 0.25, 0.5, _ROWS),
            RowSizes(None, 1.5, 0.25, 0.5, _ROWS),
            RowSizes(None, 1.5, 0.25, 0.5, _ROWS, scales=np.linspace(0.1, 1.0, _COLUMNS)),
            RowAndTargetSizes(coordinates, 1.5, 0.25, 0.5, _ROWS),
            MetricRows(self._one, coordinates, metric, w, 0.5, 0.6, _ROWS),
            CutValues(self._one, 2.0, _ROWS, points),
            CutGains(self._one, 0.5, _ROWS, points),
            *(self._of_classes(coordinates, metric, w) if isinstance(self.loss, Multinomial) else ()),
        ]

    def _of_classes(self, coordinates: Coordinates, metric: Vector, w: Vector) -> list[CrossProducts]:
        """Sums with a prediction for each class."""
        assert isinstance(self.loss, Multinomial)
        points = np.outer(w, np.linspace(-1.0, 2.0, self.loss.classes))
        return [
            ClassGradients(self.loss, points, 0.5, 0.5, _ROWS),
            MetricClassRows(self.loss, coordinates, metric, points, 0.5, 0.6, _ROWS),
            ClassSizes(None, 1.5, self.loss.classes, _ROWS),
        ]


def versions() -> dict[str, str]:
    """The versions, in this process, of what computes sums."""
    return {name: _version(name) for name in _PACKAGES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _numbers(count: int, seed: int) -> NDArray[np.float64]:
    """Numbers between -1 and 1 that are the same in every version of NumPy, on every processor."""
    state = np.random.RandomState(seed)  # noqa: NPY002  # the newer generators may change their streams
    return 2 * state.random_sample(count) - 1


class Opaque:
    """An object whose text form is its type."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Failure(Opaque):
    """Stands for an answer where there is none.

    Attributes
    ----------
    differs : dict of str or None
        The versions of a worker that computes other numbers than the driver; else None.
    """

    def __init__(self, differs: dict[str, str] | None = None) -> None:
        self.differs = differs


class Agreement(Opaque):
    """A probe and what the driver answered; a worker answers once for each fit."""

    def __init__(self, fit: str, probe: Probe, expected: str) -> None:
        self.fit, self.probe, self.expected = fit, probe, expected

    def holds(self) -> bool:
        """Whether this process computes what the driver computes."""
        if self.fit not in _answers:
            while len(_answers) >= _MOST_ANSWERS:
                _answers.pop(next(iter(_answers)))
            _answers[self.fit] = self.probe.answer() == self.expected
        return _answers[self.fit]


class Loading(Opaque):
    """How a block becomes records.

    Parameters
    ----------
    agreement : Agreement
    convert : callable
    column : str, RecordColumns or None
        The column that holds the targets, if they are not given apart; or several columns.
    bounds, constant, table_size :
        As in `as_data`.
    fingerprint : Fingerprint
    """

    def __init__(
        self, agreement: Agreement, convert: Convert, column: object, bounds: Bounds, constant: float,
        table_size: int, fingerprint: Fingerprint,
    ) -> None:  # fmt: skip
        self.agreement, self.convert, self.column = agreement, convert, column
        self.bounds, self.constant, self.table_size = bounds, constant, table_size
        self.fingerprint = fingerprint

    def records(self, rows: object, targets: object) -> tuple[Records, Mark]:
        """The records of a block, clipped into the bounds, and their fingerprint."""
        table, values = self.convert(*separate_columns(rows, targets, self.column))
        block = as_block(table)
        mark = self.fingerprint.of(block, values)
        return as_data(block, values, self.bounds, self.constant, self.table_size), mark


class Partition(Opaque):
    """The records of a block, on the worker that holds them.

    Parameters
    ----------
    number : int
        The number of the block.
    place : int
        Where in the table it begins.
    records : Records
    mark : Mark
        Its fingerprint.
    """

    def __init__(self, number: int, place: int, records: Records, mark: Mark) -> None:
        self.number, self.place, self.records, self.mark = number, place, records, mark
        self._aimed: tuple[str, Records] | None = None

    def aimed(self, aim: str, target: Targets) -> Records:
        """The records with other targets; the last ones are kept, for the next pass asks for the same."""
        if self._aimed is None or self._aimed[0] != aim:
            self._aimed = aim, self.records.with_target(target)
        return self._aimed[1]

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_aimed": None}

    def __sizeof__(self) -> int:
        table: Any = getattr(self.records.block, "X", None)  # an array or a scipy table
        parts = [table] if isinstance(table, np.ndarray) else [table.data, table.indices, table.indptr]
        return int(sum(part.nbytes for part in parts)) + 5 * self.records.y.nbytes


class Reading(Opaque):
    """A pass that sums nothing: its answer has the fingerprints alone."""

    def __init__(self, agreement: Agreement) -> None:
        self.agreement = agreement

    def over(self, partition: Partition) -> float:
        """What a partition adds: nothing."""
        return 0.0


class Pass(Opaque):
    """One sum over all records; with the coefficients in its term it is sent to the workers.

    Parameters
    ----------
    agreement : Agreement
    term : Term
    grid : float, array or None
        The grid of the sum; None asks for the longest term instead.
    finely : int
    aim : str
        A name for the target.
    target : callable or None
        Maps targets to those of the loss.
    coins : Coins or None
        Which records take part; None for all.
    part : Part or None
        The part of the table that they are of; None for all of it.
    table_size : int
        The public number of records of that part.
    """

    def __init__(
        self, agreement: Agreement, term: Term, grid: Grid | None, finely: int, aim: str,
        target: Targets | None, coins: Coins | None, part: Part | None, table_size: int,
    ) -> None:  # fmt: skip
        self.agreement, self.term, self.grid, self.finely = agreement, term, grid, finely
        self.aim, self.target, self.coins = aim, target, coins
        self.part, self.table_size = part, table_size

    def over(self, partition: Partition) -> NDArray[np.int64] | float:
        """The sum over the records of a partition."""
        records = partition.records if self.target is None else partition.aimed(self.aim, self.target)
        start = partition.place
        taken = taking_part(self.part, self.coins, start, start + records.n_records)
        if taken is not None:
            records = replace(records.rows(taken), table_size=self.table_size)
        if self.grid is None:
            return records.longest(self.term)
        return records.steps(self.term, self.grid, self.finely)


class Answer(Opaque):
    """The sum over some partitions.

    Attributes
    ----------
    value : array of int64, or float
        The sum, or the longest term.
    marks : dict
        The fingerprint of each block that it is made of.
    moved : bool
        Whether another worker than intended has answered.
    """

    def __init__(self, value: Any, marks: dict[int, Mark], moved: bool = False) -> None:
        self.value, self.marks, self.moved = value, marks, moved

    def joined(self, other: Answer) -> Answer:
        """The sum over these and other partitions."""
        value = max(self.value, other.value) if isinstance(self.value, float) else self.value + other.value
        return Answer(value, self.marks | other.marks, self.moved or other.moved)


def separate_columns(rows: Any, targets: Any, column: object) -> tuple[object, object]:
    """Separate the rows of a block from its targets and its other per-record columns."""
    if isinstance(column, RecordColumns):
        by_name = RecordColumns(*(None if name is None else rows[name] for name in column))
        by_array = RecordColumns(*targets) if isinstance(targets, list) else RecordColumns(targets)
        return rows.drop(columns=column.names) if column.names else rows, by_name.joined(by_array)
    return (rows, targets) if column is None else (rows.drop(columns=[column]), rows[column])


def check_agreement(agreement: Agreement) -> Failure | None:
    """What a worker answers to the probe: nothing, if it agrees with the driver."""
    try:
        return None if agreement.holds() else Failure(versions())
    except Exception:
        return Failure(versions())


def load(rows: object, targets: object, loading: Loading, number: int, place: int) -> Partition | Failure:
    """The records of a block."""
    if failure := check_agreement(loading.agreement):
        return failure
    try:
        with silent(), np.errstate(all="ignore"), limit_threads(_threads()):
            return Partition(number, place, *loading.records(rows, targets))
    except Exception:
        return Failure()


def run(partitions: Sequence[Partition | Failure], order: Pass | Reading, worker: str) -> Answer | Failure:
    """The sum over the partitions of a worker, one after the other."""
    if failure := check_agreement(order.agreement):
        return failure
    try:
        with np.errstate(all="ignore"), limit_threads(_threads()):
            return join(_answer(partition, order, worker) for partition in partitions)
    except Exception:
        return Failure()


def _answer(partition: Partition | Failure, order: Pass | Reading, worker: str) -> Answer | Failure:
    if isinstance(partition, Failure):
        return partition
    return Answer(order.over(partition), {partition.number: partition.mark}, _address() != worker)


def join(answers: Iterable[Answer | Failure]) -> Answer | Failure:
    """Add up answers, each as soon as it is there; the first failure ends the sum."""
    total: Answer | None = None
    for answer in answers:
        if isinstance(answer, Failure):
            return answer
        total = answer if total is None else total.joined(answer)
    return Failure() if total is None else total


def _threads() -> int:
    """The threads of this worker: others may run on the same machine."""
    from distributed import get_worker

    return int(get_worker().state.nthreads)


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)
