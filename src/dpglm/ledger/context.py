"""Which ledger a fit uses that names none: that of the block it is in, or of the environment."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import LedgerError

VARIABLE = "DPGLM_LEDGER"
"""The environment variable with the address of an account."""

_lock = threading.Lock()
_blocks: list[tuple[int, str, str | None]] = []
"""For each open block: its thread, its address, and the value of the variable before it."""


def _renew() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # another thread may have held the lock, and is gone


def push(address: str) -> None:
    """Make an account the default until ``pop``, in all threads and in processes that start meanwhile."""
    with _lock:
        if any(thread != threading.get_ident() and open_ != address for thread, open_, _ in _blocks):
            raise LedgerError(
                "another thread is in a block of another account, and a default holds for all threads: name "
                "the ledger in the estimators instead"
            )
        _blocks.append((threading.get_ident(), address, os.environ.get(VARIABLE)))
        os.environ[VARIABLE] = address


class _Suspension:
    """That no account pays, in one context of one process, until it is over.

    A context is copied into tasks and forked processes, which may outlive what they were started in. So
    whether it is over is asked here, and another process never inherits it.
    """

    def __init__(self) -> None:
        self._process, self._over = os.getpid(), False

    @property
    def holds(self) -> bool:
        """Whether fits use no ledger now."""
        return not self._over and self._process == os.getpid()

    def end(self) -> None:
        """Fits use a ledger again, wherever this context was copied to."""
        self._over = True


_SUSPENSION: ContextVar[_Suspension | None] = ContextVar("suspension of ledgers", default=None)


@contextmanager
def suspended() -> Iterator[None]:
    """A block whose fits use no ledger unless they name one: for tables that are made up, as in an audit.

    It holds for what this thread does in the block, not for other threads or for other processes.
    """
    suspension = _Suspension()
    token = _SUSPENSION.set(suspension)
    try:
        yield
    finally:
        suspension.end()
        _SUSPENSION.reset(token)


def pop() -> None:
    """End the innermost block."""
    with _lock:
        _, _, before = _blocks.pop()
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def current() -> str | None:
    """The address of the innermost block, empty where ledgers are suspended; None outside of all blocks."""
    suspension = _SUSPENSION.get()
    if suspension is not None and suspension.holds:
        return ""
    with _lock:
        return _blocks[-1][1] if _blocks else None


def resolved(named: str | None, carried: str | None) -> str | None:
    """The ledger of a fit: the one it names, its block's, the one it was sent with, the environment's."""
    if named is not None:
        return named
    block = current()
    if block is not None:
        return block or None
    return carried or os.environ.get(VARIABLE) or None
