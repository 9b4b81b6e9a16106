"""The blocks of a Dask collection on the workers, and passes over all of them."""

from __future__ import annotations

from asyncio import CancelledError
from collections import defaultdict
from contextlib import suppress
from typing import Any
from uuid import uuid4

from ...bounds import Bounds
from ...errors import ClusterFailed, SourceChanged, WorkerDiffers
from ...losses import Loss
from ..fingerprint import Fingerprint, Mark
from ..stream import CHANGED, MISCOUNTED
from .probe import Probe, versions
from .table import Block, DaskTable
from .waiting import UNREADABLE, NoWorker, finish, results
from .worker import Agreement, Answer, Convert, Failure, Loading, Pass, Reading, answered, join, load, run

_TRIES = 5
_ANSWERS_AT_ONCE = 8
_LARGE = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}


class Blocks:
    """Blocks that are loaded once, kept on the workers, and loaded again where a worker was lost.

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
            answer: Answer = self._repeated(lambda held: self._attempt(order, held))
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

        def attempt(held: list[Any]) -> Failure | None:
            workers = list(self._client.nthreads())
            for worker in workers:
                held.append(self._submit(answered, self.agreement, worker=worker))
            answers: list[Failure | None] = results(self._client, held, workers)
            return next(filter(None, answers), None)

        self._repeated(attempt)

    def _repeated(self, attempt: Any) -> Any:
        """What an attempt returns, if one of several succeeds; no error of the engine is passed on."""
        for _ in range(_TRIES):
            held: list[Any] = []  # futures must be held until the answer has arrived
            try:
                result = attempt(held)
            except NoWorker:
                self._cancel(held)
                raise
            except (Exception, CancelledError):
                self._groups = []
                continue
            except BaseException:
                self._cancel(held)
                raise
            if isinstance(result, Failure):
                raise _error(result)
            return result
        raise ClusterFailed(
            f"the Dask cluster did not complete a pass over the records in {_TRIES} attempts: its own errors "
            "are withheld, since they may quote records"
        )

    def _cancel(self, held: list[Any]) -> None:
        """Leave nothing to the cluster that nobody waits for."""
        with suppress(Exception):
            self._client.cancel([*held, *filter(None, self._loaded)], force=True)

    def _attempt(self, order: Pass | Reading, held: list[Any]) -> Answer | Failure:
        """One pass: a task for each worker, whose answers are added up in a tree."""
        if not self._groups:
            self._groups = self._grouped()
        answers = [
            self._submit(run, futures, order, worker, worker=worker) for worker, futures in self._groups
        ]
        held += answers
        while len(answers) > _ANSWERS_AT_ONCE:
            starts = range(0, len(answers), _ANSWERS_AT_ONCE)
            answers = [self._submit(join, answers[k : k + _ANSWERS_AT_ONCE]) for k in starts]
            held += answers
        return join(results(self._client, answers, [worker for worker, _ in self._groups]))

    def _submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Any:
        """A task with an opaque name. If the intended worker is lost another one may run it."""
        import dask

        with dask.config.set(_LARGE):
            return self._client.submit(
                function,
                *arguments,
                key=_name(),
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
        return task(part.rows, part.targets, self._loading, part.number, part.place, dask_key_name=_name())


def _name() -> str:
    """The name of a task, which says nothing of what it is given."""
    return f"dpglm-{uuid4().hex}"


def _error(failure: Failure) -> Exception:
    if failure.differs is None:
        return ClusterFailed(UNREADABLE)
    return WorkerDiffers(
        "a worker of the Dask cluster computes other numbers than this process: it has "
        f"{_listed(failure.differs)}, this process has {_listed(versions())}"
    )


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())
