"""Memory maps of NumPy, read block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import stream
from .stream import Source, rows_a_block


@dataclass(frozen=True, eq=False)
class MemoryMap(Source):
    """The rows of a memory map; a solver that needs more than passes takes it as an array."""

    X: NDArray[np.generic]

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
            yield np.asarray(self.X[start : start + step]), None

    @property
    def is_stored(self) -> bool:
        return True

    def resident(self) -> NDArray[np.generic]:
        return self.X


def recognised(X: object) -> MemoryMap | None:
    """The source of a memory map of numbers that is larger than a block."""
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf" and X.nbytes > stream.BLOCK_BYTES:
        return MemoryMap(X)
    return None
