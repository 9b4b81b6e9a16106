"""The driver's side of a cluster: blocks are kept on the workers, sums come back, records do not."""

from __future__ import annotations

from asyncio import CancelledError
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ...bounds import Bounds
from ...errors import ClusterFailed, SourceChanged, WorkerDiffers
from ...losses import Loss
from ..fingerprint import Fingerprint, Mark
from ..record_set import Coins, Grid, Part, RecordSet, RemoteRecords
from ..stream import CHANGED, MISCOUNTED, Source
from ..streamed import Convert, StreamedRecords, Targets
from ..terms import Term
from .table import UNREADABLE, Block, DaskTable, NoWorker, finish, results, task_name
from .worker import (
    Agreement,
    Answer,
    Failure,
    Loading,
    Pass,
    Probe,
    Reading,
    check_agreement,
    join,
    load,
    run,
    versions,
)

_TRIES = 5
_ANSWERS_AT_ONCE = 8
_LARGE = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}


def records_of(
    source: Source, convert: Convert, bounds: Bounds, constant: float, loss: Loss, most: int = 0,
    n_units: int | None = None,
) -> RecordSet:  # fmt: skip
    """The records of a source: on a cluster, or read block by block in this process, in every pass.

    They are on a cluster if the source is a Dask collection and there is a current client. ``most`` is how
    many there can be, if their number is private, ``n_units`` the number of persons, if they are of persons.
    """
    if isinstance(source, DaskTable) and (client := source.client) is not None:
        blocks = ClusterBlocks(client, source, convert, bounds, constant, loss, most)
        return ClusterRecords(blocks, bounds, constant, most=most)
    return StreamedRecords(source, convert, bounds, constant, most=most, n_units=n_units)


@dataclass(frozen=True, eq=False)
class ClusterRecords(RemoteRecords):
    """The records of a Dask collection, clipped into bounds and kept on the workers.

    Each pass is one task a worker, which sums over its blocks; whole numbers come back. The driver draws all
    noise. Which worker holds which block, and what is computed again after a loss, changes no bit.

    Parameters
    ----------
    blocks : ClusterBlocks
    bounds : Bounds
    constant : float
        Value of the constant feature that carries the intercept; 0 for none.
    target : callable, optional
        Maps targets to those of the loss.
    coins : Coins, optional
        Which records take part; by default all.
    part : Part, optional
        The part of the table that these are the records of; by default all of it.
    """

    trusted: ClassVar[str] = (
        "scheduler and workers of the Dask cluster, their network, spill files, logs and dashboards"
    )

    blocks: ClusterBlocks
    bounds: Bounds
    constant: float
    target: Targets | None = None
    coins: Coins | None = None
    aim: str = field(default="", repr=False)
    most: int = 0
    part: Part | None = None

    @property
    def n_records(self) -> int:
        whole = self.blocks.n_records
        return whole if self.part is None else self.part.before(whole)

    @property
    def n_features(self) -> int:
        return self.blocks.n_features

    def steps(self, term: Term, grid: Grid, finely: int = 0) -> NDArray[np.int64]:
        total: NDArray[np.int64] = self.blocks.answer(self._pass(term, grid, finely))
        return total

    def longest(self, term: Term) -> float:
        return float(self.blocks.answer(self._pass(term, None, False)))

    def require_readable(self) -> None:
        self.blocks.require_readable()

    def _pass(self, term: Term, grid: Grid | None, finely: int) -> Pass:
        return Pass(
            self.blocks.agreement, term, grid, finely, self.aim, self.target, self.coins, self.part,
            self.table_size,
        )  # fmt: skip

    def of_part(self, part: Part) -> ClusterRecords:
        return replace(self, part=part)

    def batch(self, coins: Coins) -> Coins:
        return coins

    def rows(self, batch: Coins) -> ClusterRecords:
        return replace(self, coins=batch)

    def with_target(self, target: Targets) -> ClusterRecords:
        """The same table with other targets."""
        return replace(self, target=target, aim=uuid4().hex)


class ClusterBlocks:
    """ClusterBlocks that are loaded once, kept on the workers, and loaded again where a worker was lost.

    A pass that fails is repeated: it is idempotent, and draws no noise. Every answer states the fingerprints
    of the blocks that it is made of. They must be those of the first pass; else a block was loaded again with
    other records, and the fit is refused.

    Parameters
    ----------
    client : distributed.Client
    table : DaskTable
    convert : callable
        Makes a table of floats and an array of targets of a block.
    bounds : Bounds
    constant : float
    loss : Loss
        The loss that workers are probed with, before a record is read.
    most : int
        The most records that there can be, if their number is private.
    """

    def __init__(
        self, client: Any, table: DaskTable, convert: Convert, bounds: Bounds, constant: float, loss: Loss,
        most: int = 0,
    ) -> None:  # fmt: skip
        self.n_records, self.n_features = table.shape
        probe = Probe(loss, table.is_sparse, table.dtype)
        self.agreement = Agreement(uuid4().hex, probe, probe.answer())
        self._client, self._parts = client, table.parts
        self._loading = Loading(
            self.agreement, convert, table.column, bounds, constant, most or self.n_records, Fingerprint()
        )
        self._loaded: list[Any]
        self._groups: list[tuple[str, list[Any]]]
        self._forget()
        self._marks: dict[int, Mark] | None = None
        self._require_agreement()

    def require_readable(self) -> None:
        """Load all blocks and release nothing; they stay on the workers."""
        self.answer(Reading(self.agreement))

    def answer(self, order: Pass | Reading) -> Any:
        """The sum over all records, or the longest term."""
        try:
            answer: Answer = self._repeated(lambda pending: self._attempt(order, pending))
            self._require_same(answer.marks)
        except BaseException:
            self._forget()  # a traceback must not keep the records on the workers
            raise
        if answer.moved:
            self._groups = []
        return answer.value

    def _require_same(self, marks: dict[int, Mark]) -> None:
        """Refuse blocks other than those of the first pass, and blocks of another length than counted."""
        if self._marks is None:
            if {part.number: part.length for part in self._parts} != {
                k: mark.length for k, mark in marks.items()
            }:
                raise SourceChanged(MISCOUNTED)
            self._marks = marks
        if marks != self._marks:
            raise SourceChanged(CHANGED)

    def _forget(self) -> None:
        self._loaded, self._groups = [None] * len(self._parts), []

    def _require_agreement(self) -> None:
        """Probe all workers. Those that come later are probed before they load their first block."""

        def attempt(pending: list[Any]) -> Failure | None:
            workers = list(self._client.nthreads())
            for worker in workers:
                pending.append(self._submit(check_agreement, self.agreement, worker=worker))
            answers: list[Failure | None] = results(self._client, pending, workers)
            return next(filter(None, answers), None)

        self._repeated(attempt)

    def _repeated(self, attempt: Any) -> Any:
        """What an attempt returns, if one of several succeeds; no error of the engine is passed on."""
        for _ in range(_TRIES):
            pending: list[Any] = []  # futures must be held until the answer has arrived
            try:
                result = attempt(pending)
            except NoWorker:
                self._cancel(pending)
                raise
            except (Exception, CancelledError):
                self._groups = []
                continue
            except BaseException:
                self._cancel(pending)
                raise
            if isinstance(result, Failure):
                raise _error(result)
            return result
        raise ClusterFailed(
            f"the Dask cluster did not complete a pass over the records in {_TRIES} attempts: its own errors "
            "are withheld, since they may quote records"
        )

    def _cancel(self, pending: list[Any]) -> None:
        """Leave nothing to the cluster that nobody waits for."""
        with suppress(Exception):
            self._client.cancel([*pending, *filter(None, self._loaded)], force=True)

    def _attempt(self, order: Pass | Reading, pending: list[Any]) -> Answer | Failure:
        """One pass: a task for each worker, whose answers are added up in a tree."""
        if not self._groups:
            self._groups = self._grouped()
        answers = [
            self._submit(run, futures, order, worker, worker=worker) for worker, futures in self._groups
        ]
        pending += answers
        while len(answers) > _ANSWERS_AT_ONCE:
            starts = range(0, len(answers), _ANSWERS_AT_ONCE)
            answers = [self._submit(join, answers[k : k + _ANSWERS_AT_ONCE]) for k in starts]
            pending += answers
        return join(results(self._client, answers, [worker for worker, _ in self._groups]))

    def _submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Any:
        """A task with an opaque name. If the intended worker is lost another one may run it."""
        import dask

        with dask.config.set(_LARGE):
            return self._client.submit(
                function,
                *arguments,
                key=task_name(),
                workers=worker and [worker],
                allow_other_workers=worker is not None,
                pure=False,
            )

    def _grouped(self) -> list[tuple[str, list[Any]]]:
        """The blocks by the worker that holds them, all loaded."""
        import dask

        lost = [
            k for k, future in enumerate(self._loaded)
            if future is None or future.status not in ("finished", "pending")
        ]  # fmt: skip
        if lost:
            with dask.config.set(_LARGE):
                futures = self._client.compute([self._load(self._parts[k]) for k in lost])
            for k, future in zip(lost, futures, strict=True):
                self._loaded[k] = future
        finish(self._client, self._loaded)
        if any(future.status != "finished" for future in self._loaded):
            raise ClusterFailed(UNREADABLE)
        holders = self._client.who_has(self._loaded)
        groups: defaultdict[str, list[Any]] = defaultdict(list)
        for future in self._loaded:
            groups[min(holders[future.key], key=lambda worker: len(groups[worker]))].append(future)
        return [(worker, futures) for worker, futures in groups.items() if futures]

    def _load(self, part: Block) -> Any:
        import dask

        task = dask.delayed(load, pure=False)
        return task(
            part.rows, part.targets, self._loading, part.number, part.place, dask_key_name=task_name()
        )


def _error(failure: Failure) -> Exception:
    if failure.differs is None:
        return ClusterFailed(UNREADABLE)
    return WorkerDiffers(
        "a worker of the Dask cluster computes other numbers than this process: it has "
        f"{_listed(failure.differs)}, this process has {_listed(versions())}"
    )


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
