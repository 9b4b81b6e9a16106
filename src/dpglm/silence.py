"""Silence about warnings in one context: `warnings.catch_warnings` changes the filters of all threads."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

_SILENT: ContextVar[bool] = ContextVar("silent", default=False)
_lock = threading.Lock()
_open = 0


def _renew() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # another thread may have held the lock, and is gone


class _InSilence(type):
    """Makes a filter match every warning of a context that is silent, and none of another."""

    def __subclasscheck__(cls, category: type) -> bool:
        return _SILENT.get()


class _Unheard(Warning, metaclass=_InSilence):
    """Each warning of a silent context."""


@contextmanager
def silent() -> Iterator[None]:
    """Ignore all warnings of what is done inside; other threads, and whoever comes after, hear theirs.

    Two threads that leave blocks of `warnings.catch_warnings` in the order in which they entered them leave
    the filters of the first behind, for good. Here the filter itself asks in which context it is.
    """
    global _open
    with _lock:
        _open += 1
        warnings.simplefilter("ignore", _Unheard)  # goes to the front, where it may be already
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)
        with _lock:
            _open -= 1
            if not _open:
                # The list may be another one by now, of someone's block that has begun or ended.
                with suppress(ValueError):
                    warnings.filters.remove(("ignore", None, _Unheard, None, 0))  # type: ignore[attr-defined]
