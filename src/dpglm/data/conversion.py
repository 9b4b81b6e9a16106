"""From rows to columns, and back."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..kernels.arguments import Compressed
from ..threads import PROCESSORS, in_ranges

ScipyTable: TypeAlias = sp.csr_array | sp.csc_array | sp.csr_matrix | sp.csc_matrix

_ENTRIES_A_THREAD = 1 << 18
_SAMPLE = 4096


def converted(X: ScipyTable) -> ScipyTable:
    """A scipy CSR table as CSC, a CSC table as CSR: indices ascending, entries in their own precision."""
    from ..kernels.tables import convert  # compiled code is loaded by those who use it

    majors, minors = len(X.indptr) - 1, X.shape[X.format == "csr"]
    result = type(X.T)(X.shape, dtype=X.dtype)
    # Set one by one: scipy would give long tables the same long type for both.
    result.indptr = np.zeros(minors + 1, dtype=index_type(X.nnz))
    result.indices = np.empty(X.nnz, dtype=index_type(majors))
    result.data = np.empty(X.nnz, dtype=X.dtype)
    source, target = unsigned(X), unsigned(result)
    threads = max(1, min(PROCESSORS, X.nnz // _ENTRIES_A_THREAD))
    in_ranges(
        lambda _, low, high: convert(source, low, high, target), even_ranges(source.indices, minors, threads)
    )
    return result


def unsigned(X: ScipyTable) -> Compressed:
    """The table for kernels: unsigned indices spare a test for negative ones."""
    indptr, indices = (part.view(f"u{part.itemsize}") for part in (X.indptr, X.indices))
    return Compressed(indptr, indices, X.data)


def even_ranges(indices: NDArray[np.integer], length: int, ranges: int) -> list[int]:
    """Edges of ranges of an index that hold about as many entries each, from a sample of the indices."""
    sample = np.sort(indices[:: max(1, len(indices) // _SAMPLE)])
    inner = sample[len(sample) * np.arange(1, ranges) // ranges] if len(sample) else np.zeros(ranges - 1)
    return [0, *inner.astype(int).tolist(), length]


def index_type(largest: int) -> type:
    """The type of indices up to a largest one."""
    return np.int32 if largest < 2**31 else np.int64
