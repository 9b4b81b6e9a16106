"""Which inputs are sources: each adapter recognises its own, by types alone."""

from __future__ import annotations

from collections.abc import Callable

from . import arrow, arrow_stream, lazy_frame, memory_map
from .stream import Source

ADAPTERS: tuple[Callable[[object], Source | None], ...] = (
    memory_map.recognised,
    arrow.recognised,
    lazy_frame.recognised,
    arrow_stream.recognised,
)
"""A new adapter is one file here and one line above."""


def recognised(X: object) -> Source | None:
    """The source that X is; None if it is a table in memory. No block is read, rows may be counted."""
    if isinstance(X, Source):
        return X
    return next((source for adapter in ADAPTERS if (source := adapter(X)) is not None), None)
