"""Columns of records beside their rows, and sources whose blocks are changed as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..arrays import Vector
from ..errors import SourceChanged, UnsupportedProblem
from .stream import MISCOUNTED, Source, count_of


class RecordColumns(NamedTuple):
    """The target of each record, and what stands beside it; None for what there is not.

    The parts are names of columns, columns as users give them, or those of a block.
    """

    target: Any = None
    weight: Any = None
    offset: Any = None
    exposure: Any = None
    unit: Any = None

    @property
    def has_more(self) -> bool:
        """Whether there is more than a target."""
        return any(part is not None for part in self[1:])

    @property
    def has_offset(self) -> bool:
        """Whether there is an offset or an exposure."""
        return self.offset is not None or self.exposure is not None

    @property
    def names(self) -> list[str]:
        """The parts that are names of columns."""
        return [part for part in self if isinstance(part, str)]

    @property
    def columns(self) -> RecordColumns:
        """The parts that are not names of columns."""
        return RecordColumns(*(None if isinstance(part, str) else part for part in self))

    def where(self, other: RecordColumns) -> RecordColumns:
        """The parts that the other one has, too."""
        return RecordColumns(*(None if two is None else one for one, two in zip(self, other, strict=True)))

    def joined(self, other: RecordColumns) -> RecordColumns:
        """Both, of which one has each part."""
        return RecordColumns(*(one if one is not None else two for one, two in zip(self, other, strict=True)))


NAMES = RecordColumns(target="y", weight="sample_weight", offset="offset", exposure="exposure", unit="units")
"""What each part is called where users give it."""


def persons_of(values: Vector) -> Vector | None:
    """Numbers of the persons, in the last of four columns of numbers of records; None if there are none."""
    return values[:, 3] if values.ndim > 1 and values.shape[1] > 3 else None


@dataclass(frozen=True, eq=False)
class SourceWrapper(Source):
    """A source that reads another one, of the same size and with the same names."""

    source: Source

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self.source.n_samples

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.source.n_features

    @property
    def feature_names(self) -> Sequence[str] | None:  # type: ignore[override]
        return self.source.feature_names

    @property
    def target(self) -> str | None:  # type: ignore[override]
        return self.source.target

    @property
    def has_targets(self) -> bool:
        return self.source.has_targets

    @property
    def n_units(self) -> int | None:  # type: ignore[override]
        return self.source.n_units


@dataclass(frozen=True, eq=False)
class MappedSource(SourceWrapper):
    """A table whose rows go through a function, block by block and each row by itself.

    What expects an array gets one: NumPy's conversion computes all rows.
    """

    function: Callable[[object], NDArray[np.floating]]

    def blocks(self) -> Iterator[tuple[object, object]]:
        for rows, targets in self.source.blocks():
            yield self.function(rows), targets

    @property
    def is_stored(self) -> bool:
        return self.source.is_stored

    def reordered(self, order: NDArray[np.intp]) -> MappedSource:
        return replace(self, source=self.source.reordered(order))

    def resident(self) -> NDArray[np.generic] | None:
        return np.asarray(self) if self.is_stored else None

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[np.generic]:
        whole, place = np.empty((0, self.n_features)), 0
        for rows, _ in self.blocks():
            part = np.asarray(rows)
            if not place:
                whole = np.empty(self.shape, dtype=part.dtype)
            place += len(part)
            if place > self.n_samples:
                break
            whole[place - len(part) : place] = part
        if place != self.n_samples:
            raise SourceChanged(MISCOUNTED)
        return whole if dtype is None else whole.astype(dtype, copy=False)


@dataclass(frozen=True, eq=False)
class Paired(SourceWrapper):
    """A table together with targets that are held in memory."""

    targets: Vector

    @property
    def has_targets(self) -> bool:
        return True

    def blocks(self) -> Iterator[tuple[object, object]]:
        place = 0
        for rows, given in self.source.blocks():
            if given is not None:
                raise UnsupportedProblem(
                    "the blocks of X come with targets: give no y, or blocks of rows alone"
                )
            count = count_of(rows)
            place += count
            if place > self.n_samples:
                raise SourceChanged(MISCOUNTED)
            yield rows, self.targets[place - count : place]


@dataclass(frozen=True, eq=False)
class JoinedSource(SourceWrapper):
    """A table together with arrays, one entry for each record, that are held in memory."""

    held: RecordColumns

    @property
    def gives_offsets(self) -> bool:
        return self.source.gives_offsets

    @property
    def has_targets(self) -> bool:
        return self.held.target is not None or self.source.has_targets

    def blocks(self) -> Iterator[tuple[object, object]]:
        place = 0
        for rows, found in self.source.blocks():
            given = found if isinstance(found, RecordColumns) else RecordColumns(found)
            if given.target is not None and self.held.target is not None:
                raise UnsupportedProblem(
                    "the blocks of X come with targets: give no y, or blocks of rows alone"
                )
            here = slice(place, place + count_of(rows))
            place = here.stop
            if place > self.n_samples:
                raise SourceChanged(MISCOUNTED)
            held = RecordColumns(*(None if part is None else part[here] for part in self.held))
            yield rows, held.joined(given)
