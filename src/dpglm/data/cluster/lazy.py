"""Functions of the rows of a Dask collection, such as predictions, computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np

from .table import computed, example_of, is_dask


def by_blocks(function: Callable[[Any], Any], X: Any) -> Any:
    """A function of rows, block by block, as a Dask array.

    The function must return an array or a sparse table with as many rows as it is given, each of which
    depends on its own row alone.
    """
    import dask.array as da
    from dask import delayed

    example = function(example_of(X))
    if hasattr(X, "columns"):
        task = delayed(function, pure=False, name=_name())
        shape = (np.nan, *example.shape[1:])
        blocks = [da.from_delayed(task(block), shape, meta=example[:0]) for block in X.to_delayed()]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)
    rest = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], example.shape[1:])}
    return X.rechunk({1: -1}).map_blocks(function, meta=example[:0], name=_name(), **rest)


def of_each_block(function: Callable[[Any], Any], X: Any) -> list[Any]:
    """What a function makes of each block of a Dask data frame, computed where the blocks are."""
    from dask import delayed

    task = delayed(function, pure=False, name=_name())
    return list(computed([task(block) for block in X.to_delayed()]))


def named_apart(X: Any, y: Any) -> tuple[Any, Any]:
    """The features of a Dask data frame and its column of targets, if y is the name of that column."""
    return (X.drop(columns=[y]), X[y]) if is_dask(X) and isinstance(y, str) else (X, y)


def in_memory(values: Any) -> Any:
    """The values of a Dask collection; anything else as it is."""
    return values.compute() if is_dask(values) else values


def _name() -> str:
    return f"dpglm-{uuid4().hex}"
