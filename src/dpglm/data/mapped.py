"""Sources whose blocks are changed as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..arrays import Vector
from ..errors import SourceChanged, UnsupportedProblem
from .stream import MISCOUNTED, Source, count_of


@dataclass(frozen=True, eq=False)
class Around(Source):
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
class Mapped(Around):
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

    def reordered(self, order: NDArray[np.intp]) -> Mapped:
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
class Paired(Around):
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
