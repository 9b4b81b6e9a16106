"""Errors and warnings of dpglm, and how to keep warnings of other fits quiet."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar


class DpglmError(Exception):
    """Base class of the errors that only dpglm raises."""


class BudgetExceeded(DpglmError, ValueError):
    """An account has less remaining than a fit costs, so nothing was read or charged.

    Attributes
    ----------
    remaining : float
        The mu that remains: the root of what remains of mu squared.
    needed : float
        The mu that the fit costs; infinite if it has no price with the slack that remains.
    epsilon : float or None
        An epsilon at which the same fit can be paid for; None if there is none worth naming.
    """

    def __init__(self, message: str, remaining: float, needed: float, epsilon: float | None) -> None:
        super().__init__(message, remaining, needed, epsilon)
        self.remaining = remaining
        self.needed = needed
        self.epsilon = epsilon

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def left(self) -> float:
        """The old name of ``remaining``."""
        warnings.warn("BudgetExceeded.left is now BudgetExceeded.remaining", FutureWarning, stacklevel=2)
        return self.remaining


class ClusterFailed(DpglmError):
    """A cluster could not read the records, or not complete a pass over them, so the fit has ended."""


class LedgerError(DpglmError, ValueError):
    """A ledger cannot be read or written, is broken, or is for something else, so the fit is refused."""


class NotReleased(DpglmError, AttributeError):
    """What is asked for is a function of the records that the fit did not release."""


class PlanMismatch(DpglmError):
    """The releases of a run differ from its plan, so the fit is refused."""


class SourceChanged(DpglmError):
    """A source that is read several times did not give the same records each time, so the fit is refused."""


class UnreadableFile(DpglmError, ValueError):
    """A file is not there, or its content is not what its name says."""


class UnsupportedProblem(DpglmError, ValueError):
    """The chosen solver cannot serve this loss, penalty or set of bounds."""


class WorkerDiffers(DpglmError):
    """A worker of a cluster rounds otherwise than the driver, so the fit is refused."""


class PrivacyWarning(UserWarning):
    """A setting that weakens the promise, or one whose default may surprise."""


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
