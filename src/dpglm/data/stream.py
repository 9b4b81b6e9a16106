"""Tables that are read block by block in each pass; the next block is prefetched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..errors import SourceChanged, UnsupportedProblem

T = TypeVar("T")

BLOCK_ROWS, BLOCK_BYTES = 1 << 16, 1 << 25
"""Size of the blocks that sources are cut into; no sum depends on it."""


class Source(ABC):
    """A table of known size that gives its rows in blocks, all of them each time that it is read.

    Attributes
    ----------
    n_samples, n_features : int
        The public size of the table.
    feature_names : sequence of str or None
    target : str or None
        Name of the column that holds the targets.
    n_units : int or None
        The number of persons whose records these are, if it is declared.
    """

    n_samples: int
    n_features: int
    feature_names: Sequence[str] | None = None
    target: str | None = None
    n_units: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_features

    @property
    def has_targets(self) -> bool:
        """Whether blocks may come with targets."""
        return self.target is not None

    @abstractmethod
    def blocks(self) -> Iterator[tuple[object, object]]:
        """The rows and the targets of each block in their order; None where there are no targets."""

    @property
    def gives_offsets(self) -> bool:
        """Whether blocks also give the offsets of their rows for predictions."""
        return False

    def aimed(self, target: str) -> Source:
        """The same table with the column ``target`` as its targets, the other columns as its features."""
        if target == self.target:
            return self
        raise ValueError(
            f"y is the name of a column, a {type(self).__name__} has none by that name: give y as an array"
        )

    def beside(self, names: Sequence[str | None]) -> Source:
        """The same table with columns as weights, offsets and exposures, the other columns as its features.

        Names are in the order of `dpglm.data.columns.RecordColumns`; None for what is no column.
        """
        raise ValueError(
            f"{next(filter(None, names))!r} is the name of a column, a {type(self).__name__} has none by "
            "that name: give an array"
        )

    @property
    def is_stored(self) -> bool:
        """Whether ``resident`` gives an array, and rows can be ``reordered``."""
        return False

    def reordered(self, order: NDArray[np.intp]) -> Source:
        """The same rows in the order of the given positions."""
        raise UnsupportedProblem(f"a {type(self).__name__} is read in its own order")

    def resident(self) -> NDArray[np.generic] | None:
        """The rows as one array, for solvers that need more than passes; None if that is not possible."""
        return None


@dataclass(frozen=True, eq=False)
class Stream(Source):
    """A table that a function reads, block by block.

    Parameters
    ----------
    read : callable
        ``read()`` returns a fresh iterator of blocks: each an array, a scipy sparse table or a data frame of
        rows, or a pair of rows and targets. Every call must give the same records.
    n_samples, n_features : int
        The size of the whole table, which is public.
    feature_names : sequence of str, optional
    n_units : int, optional
        The number of persons, if a fit is given ``units``; it is public, ``n_samples`` is not then. By
        default they are counted in a pass.

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import LogisticRegression, Stream
    >>> def read():
    ...     for seed in range(10):
    ...         rng = np.random.default_rng(seed)
    ...         X = rng.uniform(-1, 1, (1_000, 3))
    ...         yield X, X[:, 0] > 0
    >>> model = LogisticRegression(epsilon=1.0, classes=[False, True]).fit(Stream(read, 10_000, 3))
    >>> model.predict(Stream(read, 10_000, 3)).shape
    (10000,)
    """

    read: Callable[[], Iterable[object]]
    n_samples: int
    n_features: int
    feature_names: Sequence[str] | None = None
    n_units: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.read):
            raise ValueError(
                "read must be a function that returns a fresh iterator of blocks in each call, "
                f"got {type(self.read).__name__}"
            )
        for name, least in (("n_samples", 0), ("n_features", 1), ("n_units", 0)):
            value = getattr(self, name)
            if value is None and name == "n_units":
                continue
            if not isinstance(value, Real):  # an array of records must not be quoted
                raise ValueError(f"{name} must be a whole number, got {type(value).__name__}")
            object.__setattr__(self, name, strict.whole(name, value, least))
        names = self.feature_names
        if names is not None and (isinstance(names, str) or len(names) != self.n_features):
            raise ValueError(f"feature_names must be a list of {self.n_features} names, one for each feature")

    @property
    def has_targets(self) -> bool:
        return True

    def blocks(self) -> Iterator[tuple[object, object]]:
        return guarded(self._blocks)

    def _blocks(self) -> Iterator[tuple[object, object]]:
        n_rows = 0
        for block in self.read():
            rows, targets = block if isinstance(block, tuple) and len(block) == 2 else (block, None)
            count = count_of(rows)
            if count:
                yield rows, targets
            n_rows += count
            if n_rows > self.n_samples:  # too many for whoever counts them, and a stream may have no end
                return


def count_of(rows: object) -> int:
    """Number of rows of a block; 1 for other objects, which are refused when they are converted."""
    shape = getattr(rows, "shape", None)
    if shape:
        return int(shape[0])
    return len(rows) if isinstance(rows, Sized) else 1


def rows_per_block(row_bytes: int) -> int:
    """Number of rows per block, from the bytes per row."""
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(row_bytes, 1)))


def guarded(read: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Yield what a reader yields, with its errors replaced by one sentence: they may quote records."""
    blocks: Iterator[T] | None = None
    while True:
        item: list[T] = []
        try:
            blocks = iter(read()) if blocks is None else blocks
            item.append(next(blocks))
        except StopIteration:
            return
        except Exception:  # an engine may raise anything
            pass
        if not item:  # outside of the handler, so that the error of the engine is not its context
            raise SourceChanged(UNREADABLE)
        yield item.pop()  # nothing of it stays here while the next one is read


def ask(question: Callable[[], T]) -> T:
    """Ask an engine one question; its error is replaced like that of a reader."""
    return next(guarded(lambda: iter([question()])))


def prefetch(blocks: Iterator[T]) -> Iterator[T]:
    """Yield the same blocks in the same order; a thread reads the next one while the last is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="dpglm-reader") as pool:
        try:
            next_block = pool.submit(_take_next, blocks)
            while block := next_block.result():
                next_block = pool.submit(_take_next, blocks)
                yield block.pop()  # nothing of it stays here while the next one is read
        finally:
            pool.submit(_close, blocks)


@np.errstate(all="ignore")  # a warning about a number would reveal something about a record
def _take_next(blocks: Iterator[T]) -> list[T]:
    """The next block in a list, which is empty after the last one."""
    return list(islice(blocks, 1))


def _close(blocks: Iterator[object]) -> None:
    """Close the files that a reader has open; it waits for a block that is being read."""
    close = getattr(blocks, "close", None)
    if close is not None:
        close()


def require_again(blocks: Iterator[object]) -> None:
    """Refuse a source that has no blocks when it is read a second time."""
    if next(blocks, None) is None:
        raise SourceChanged(EXHAUSTED)


CHANGED = "the source gave other records than before: every pass must read the same table"
MISCOUNTED = (
    "the source gave more or fewer records than it states, or than were counted before: check n_samples, and "
    "n_units if the number of persons is declared"
)
EXHAUSTED = (
    "the source gave no records when it was read again: each pass needs a fresh iterator, not one that was "
    "made once for all passes"
)
UNREADABLE = (
    "the source could not be read: it raised an error, which is not shown because it may quote records; read "
    "the source by itself to see it"
)
