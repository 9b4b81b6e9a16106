"""Memory maps of NumPy, read block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from . import stream
from .stream import Source, rows_a_block


@dataclass(frozen=True, eq=False)
class MemoryMap(Source):
    """The rows of a memory map; a solver that needs more than passes takes it as an array.

    Parameters
    ----------
    X : memory map
    order : array of int, optional
        The places of the rows in the order in which they are read; by default that of the map.
    """

    X: NDArray[np.generic]
    order: NDArray[np.intp] | None = None

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return len(self.X)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return int(self.X.shape[1])

    def blocks(self) -> Iterator[tuple[object, object]]:
        n, p = self.X.shape
        step = rows_a_block(p * self.X.itemsize)
        for start in range(0, n, step):
            here = slice(start, start + step)
            yield np.asarray(self.X[here if self.order is None else self.order[here]]), None

    @property
    def is_stored(self) -> bool:
        return True

    def resident(self) -> NDArray[np.generic]:
        return self.X if self.order is None else np.asarray(self.X[self.order])

    def reordered(self, order: NDArray[np.intp]) -> MemoryMap:
        return replace(self, order=order)


def recognised(X: object) -> MemoryMap | None:
    """The source of a memory map of numbers that is larger than a block."""
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf" and X.nbytes > stream.BLOCK_BYTES:
        return MemoryMap(X)
    return None
