"""What the workers of a cluster run: blocks are loaded once, and summed in each pass.

No error leaves these functions: engines quote the arguments of a task, which are records, in their logs. The
objects that tasks are given have no telling text form, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...arrays import Vector
from ...bounds import Bounds
from ...silence import silent
from ...threads import at_most
from ..columns import RecordColumns
from ..fingerprint import Fingerprint, Mark
from ..record_set import Coins, Grid, Part, taking_part
from ..records import Records
from ..source import as_block, as_data
from ..terms import Term
from .probe import Probe, versions

Targets = Callable[[Vector], Vector]
_MOST_ANSWERS = 64
_answers: dict[str, bool] = {}


class Convert(Protocol):
    """How the rows and targets of a block become numbers; each record by itself."""

    def __call__(self, rows: object, targets: object) -> tuple[Any, Vector]: ...


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
    column : str, Several or None
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
        table, values = self.convert(*apart(rows, targets, self.column))
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


def apart(rows: Any, targets: Any, column: object) -> tuple[object, object]:
    """The rows of a block and its targets, which may be a column of it; and what stands beside them."""
    if isinstance(column, RecordColumns):
        found = RecordColumns(*(None if name is None else rows[name] for name in column))
        given = RecordColumns(*targets) if isinstance(targets, list) else RecordColumns(targets)
        return rows.drop(columns=column.names) if column.names else rows, found.joined(given)
    return (rows, targets) if column is None else (rows.drop(columns=[column]), rows[column])


def answered(agreement: Agreement) -> Failure | None:
    """What a worker answers to the probe: nothing, if it agrees with the driver."""
    try:
        return None if agreement.holds() else Failure(versions())
    except Exception:
        return Failure(versions())


def load(rows: object, targets: object, loading: Loading, number: int, place: int) -> Partition | Failure:
    """The records of a block."""
    if failure := answered(loading.agreement):
        return failure
    try:
        with silent(), np.errstate(all="ignore"), at_most(_threads()):
            return Partition(number, place, *loading.records(rows, targets))
    except Exception:
        return Failure()


def run(partitions: Sequence[Partition | Failure], order: Pass | Reading, worker: str) -> Answer | Failure:
    """The sum over the partitions of a worker, one after the other."""
    if failure := answered(order.agreement):
        return failure
    try:
        total: Answer | None = None
        with np.errstate(all="ignore"), at_most(_threads()):
            for partition in partitions:
                if isinstance(partition, Failure):
                    return partition
                one = Answer(order.over(partition), {partition.number: partition.mark}, _address() != worker)
                total = one if total is None else total.joined(one)
        return Failure() if total is None else total
    except Exception:
        return Failure()


def join(answers: Sequence[Answer | Failure]) -> Answer | Failure:
    """The sum over the partitions of several workers."""
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
