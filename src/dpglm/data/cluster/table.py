"""Dask arrays and data frames: their blocks, functions of them, and waiting for the cluster.

A fit waits as long as the cluster works, but not for ever for one that has lost its workers.
"""

from __future__ import annotations

import math
import sys
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from time import monotonic
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from ... import progress
from ...errors import ClusterFailed
from ..columns import RecordColumns
from ..stream import Source
from .worker import separate_columns

TIMEOUT = "dpglm.cluster.timeout"
"""The key of Dask's configuration that says how long a cluster may be without work."""

UNREADABLE = (
    "a block of the Dask collection could not be read: its own error is withheld, since it may quote records"
)
_TIMEOUT = "5 minutes"
_LOOK = 2.0
"""Seconds between two looks at the workers."""

_SILENCE = 10.0
"""Seconds after which the progress says that there is no worker; then after twice as many, and so on."""

_FETCH = 60.0
"""Seconds to fetch a result that is ready; if they pass, the worker that had it is lost."""

_NO_COLUMNS = RecordColumns()


class Block(NamedTuple):
    """A block of a table: rows and targets not yet computed, its number, where it begins, its length."""

    rows: Any
    targets: Any
    number: int
    place: int
    length: int


def is_dask(X: object) -> bool:
    """Whether X is a collection of Dask. Nothing is imported for it."""
    dask = sys.modules.get("dask.base")
    return dask is not None and bool(dask.is_dask_collection(X))


class DaskTable(Source):
    """A Dask array or data frame with its targets. Rows are in blocks of all columns.

    Chunk sizes that are not known, as those of data frames, are counted at once: a pass over one column of a
    data frame, or over the array.

    Parameters
    ----------
    X : dask array or dask data frame
        Its chunks may be arrays or scipy sparse tables.
    y : str, dask array, dask series, or array
        The name of a column; or targets with the chunks of X; or all targets.
    beside : RecordColumns
        Weights, offsets and exposures, each in one of the same forms.
    """

    def __init__(self, X: Any, y: Any, beside: RecordColumns = _NO_COLUMNS) -> None:
        if y is None:
            raise ValueError("y must be given: the targets, or the name of the column of X that holds them")
        self._has_columns = _is_frame(X)
        if isinstance(y, str):
            _require_target(y, X)
        _require_columns(beside.names, X)
        self.column: object = y if isinstance(y, str) else None
        if self._has_columns:
            names = _remaining(X, [self.column, *beside.names])
            self.n_features = len(names)
            if all(isinstance(name, str) for name in names):
                self.feature_names: Sequence[str] | None = names
        else:
            self.n_features = int(X.shape[1])
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        self._X = X
        self._counts = _counts_of(X, self._has_columns)
        self.n_samples = sum(self._counts)
        self._y = None if self.column is not None else self._in_chunks(y, "y")
        self._beside = RecordColumns(
            *(self._in_chunks(part, "weights, offsets and exposures") for part in beside.columns)
        )
        if beside.has_more:
            named = (part if isinstance(part, str) else None for part in beside)
            self.column = RecordColumns(*named)._replace(target=self.column)

    def _in_chunks(self, y: Any, name: str) -> Any:
        """Check that a per-record column has the length of X, and give it the chunks of X if it has any."""
        if y is None:
            return None
        wrong_length = f"{name} must have as many entries as X has rows, which are {self.n_samples}"
        if not is_dask(y):
            if np.ndim(y) == 0 or len(y) != self.n_samples:
                raise ValueError(wrong_length)
            return y
        if hasattr(y, "chunks") and not any(math.isnan(size) for size in y.chunks[0]):
            if y.shape[0] != self.n_samples:
                raise ValueError(wrong_length)
            y = y.rechunk({0: tuple(self._counts)})
        if y.npartitions != len(self._counts):
            raise ValueError(
                f"{name} must have the chunks of X: it has {y.npartitions}, X has {len(self._counts)}"
            )
        return y

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_features

    @property
    def client(self) -> Any:
        """The current client of a distributed cluster; None if there is none."""
        client = _client()
        if client is not None and client.asynchronous:
            raise ValueError("an asynchronous Dask client cannot run a fit: make one with asynchronous=False")
        return client

    @cached_property
    def parts(self) -> list[Block]:
        """The blocks that have rows, as tasks that are not yet submitted."""
        rows = np.ravel(np.asarray(self._X.to_delayed(), dtype=object))
        places = [0, *accumulate(self._counts)]
        targets = self._in_blocks(self._y, places)
        if isinstance(self.column, RecordColumns):
            beside = [self._in_blocks(part, places) for part in self._beside[1:]]
            targets = [list(parts) for parts in zip(targets, *beside, strict=True)]
        return [
            Block(rows[k], targets[k], k, places[k], count) for k, count in enumerate(self._counts) if count
        ]

    def _in_blocks(self, y: Any, places: Sequence[int]) -> Sequence[Any]:
        """A per-record column by blocks, not yet computed."""
        if y is None:
            return [None] * len(self._counts)
        if is_dask(y):
            return list(np.ravel(np.asarray(y.to_delayed(), dtype=object)))
        y = getattr(y, "iloc", y)
        return [y[start:stop] for start, stop in zip(places[:-1], places[1:], strict=True)]

    @property
    def example(self) -> tuple[object, object]:
        """Rows and targets of the declared types; made up, not from the table."""
        targets: Any = _example_of_column(self._y)
        if isinstance(self.column, RecordColumns):
            targets = [targets, *map(_example_of_column, self._beside[1:])]
        return separate_columns(example_of(self._X), targets, self.column)

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are declared as sparse."""
        return not self._has_columns and sp.issparse(self._X._meta)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The type of the entries of blocks after conversion, as far as it is declared."""
        types = list(self._X.dtypes) if self._has_columns else [self._X.dtype]
        single = all(dtype == np.float32 for dtype in types)
        return np.dtype(np.float32 if single else np.float64)

    def blocks(self) -> Iterator[tuple[object, object]]:
        """Rows and targets of each block, one after the other: no more than one is in memory."""
        for part in self.parts:
            several = isinstance(part.targets, list)
            rows, *columns = computed([part.rows, *(part.targets if several else [part.targets])])
            yield separate_columns(rows, columns if several else columns[0], self.column)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a DaskTable is for one fit in one process: hand over the Dask collection itself")


def _is_frame(X: Any) -> bool:
    """Whether a Dask collection is a data frame; one that is no table of two dimensions is refused."""
    if _has_columns(X):
        return True
    if not (hasattr(X, "chunks") and getattr(X, "ndim", 0) == 2):
        raise ValueError(
            f"X must be a Dask array of two dimensions or a Dask data frame, got a {type(X).__name__}"
        )
    return False


def _has_columns(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "divisions")


def _require_target(name: str, X: Any) -> None:
    """Refuse a target that is not the name of a column."""
    if not _has_columns(X):
        raise ValueError("y is the name of a column, but X is a Dask array, which has no names")
    if name not in X.columns:
        raise ValueError(f"y is {name!r}, which is not the name of a column of X")


def _require_columns(names: Sequence[str], X: Any) -> None:
    """Refuse weights, offsets and exposures that are not names of columns."""
    for name in names:
        if not _has_columns(X) or name not in X.columns:
            raise ValueError(f"{name!r} must be the name of a column of X, a Dask data frame")


def _remaining(X: Any, others: Sequence[object]) -> list[Any]:
    """Names of the columns of a data frame that are features: all but the others."""
    return [name for name in X.columns if name not in others]


def example_of(X: Any) -> Any:
    """Two rows of the declared types of a Dask array or data frame; made up, not from the table."""
    if hasattr(X, "columns"):
        return X._meta_nonempty
    kind = sp.csr_array if sp.issparse(X._meta) else np.zeros
    return kind((2, X.shape[1]), dtype=X.dtype)


def _example_of_column(column: Any) -> Any:
    if hasattr(column, "_meta_nonempty"):
        return column._meta_nonempty
    return None if column is None else np.zeros(2, dtype=getattr(column, "dtype", np.float64))


def _counts_of(X: Any, has_columns: bool) -> list[int]:
    """The number of rows of each block."""
    if not has_columns and not any(math.isnan(size) for size in X.chunks[0]):
        return [int(size) for size in X.chunks[0]]
    import dask

    narrow = X[[X.columns[0]]] if has_columns else X
    count = dask.delayed(_rows_of, pure=False, name="dpglm-count")
    return [int(size) for size in computed([count(part) for part in np.ravel(narrow.to_delayed())])]


def _rows_of(block: Any) -> int:
    return int(block.shape[0])


def computed(tasks: Sequence[Any]) -> tuple[Any, ...]:
    """The values of tasks, and what are none as they are; errors, which may quote records, are replaced."""
    import dask

    client = _client()
    try:
        if client is None or client.asynchronous:
            return tuple(dask.compute(*tasks, traverse=False))
        return tuple(results(client, client.compute(tasks, traverse=False)))
    except NoWorker:
        raise
    except (Exception, CancelledError):
        pass
    raise ClusterFailed(UNREADABLE)


def _client() -> Any:
    """The current client of a distributed cluster; None if there is none."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


class NoWorker(ClusterFailed):
    """No worker has computed anything for too long: to try again would be to wait again."""


class WorkerLost(Exception):
    """A worker that a task was submitted to is lost: the task is to be submitted again."""


def results(client: Any, futures: Sequence[Any], workers: Collection[str] = ()) -> list[Any]:
    """What tasks return, as soon as all are done; ``workers`` as in `finish`."""
    while True:
        finish(client, futures, workers)
        if any(future.status != "finished" for future in futures):
            raise ClusterFailed(UNREADABLE)
        with suppress(TimeoutError):
            return [future.result(timeout=_FETCH) for future in futures]


def finish(client: Any, futures: Sequence[Any], workers: Collection[str] = ()) -> None:
    """Wait until tasks have ended; give up on a cluster that computes nothing for too long.

    Parameters
    ----------
    client : distributed.Client
    futures : sequence of distributed.Future
    workers : collection of str
        Addresses of the workers that the tasks were submitted to. If all workers are lost at once, the
        scheduler gives such tasks to no other one, although it may.
    """
    from dask import config
    from dask.utils import parse_timedelta
    from distributed import wait

    limit = float(parse_timedelta(config.get(TIMEOUT, _TIMEOUT)))
    silence, began = _SILENCE, monotonic()
    while True:
        with suppress(TimeoutError):
            wait(futures, timeout=min(_LOOK, limit / 4))
            return
        processing = client.processing()
        if any(processing.values()):
            silence, began = _SILENCE, monotonic()
        elif processing and not processing.keys() >= set(workers):
            raise WorkerLost
        idle = monotonic() - began
        if idle >= silence:
            progress.said(f"Dask cluster: no worker for {idle:.0f} s")
            silence *= 2
        if idle >= limit:
            break
    raise NoWorker(
        f"no worker of the Dask cluster computed anything for {limit:g} s: start workers, or set {TIMEOUT!r} "
        "in the configuration of Dask to wait longer"
    )


def by_blocks(function: Callable[[Any], Any], X: Any) -> Any:
    """A function of rows, block by block, as a Dask array.

    The function must return an array or a sparse table with as many rows as it is given, each of which
    depends on its own row alone.
    """
    import dask.array as da
    from dask import delayed

    example = function(example_of(X))
    if hasattr(X, "columns"):
        task = delayed(function, pure=False, name=task_name())
        shape = (np.nan, *example.shape[1:])
        blocks = [da.from_delayed(task(block), shape, meta=example[:0]) for block in X.to_delayed()]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)
    rest = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], example.shape[1:])}
    return X.rechunk({1: -1}).map_blocks(function, meta=example[:0], name=task_name(), **rest)


def of_each_block(function: Callable[[Any], Any], X: Any) -> list[Any]:
    """What a function makes of each block of a Dask data frame, computed where the blocks are."""
    from dask import delayed

    task = delayed(function, pure=False, name=task_name())
    return list(computed([task(block) for block in X.to_delayed()]))


def split_target(X: Any, y: Any) -> tuple[Any, Any]:
    """The features of a Dask data frame and its column of targets, if y is the name of that column."""
    return (X.drop(columns=[y]), X[y]) if is_dask(X) and isinstance(y, str) else (X, y)


def in_memory(values: Any) -> Any:
    """The values of a Dask collection; anything else as it is."""
    return values.compute() if is_dask(values) else values


def task_name() -> str:
    """The name of a task, which says nothing of what it is given."""
    return f"dpglm-{uuid4().hex}"
