"""Exceptions and warnings of dpglm.

::

    DpglmError
    ├── BudgetExceeded      an account cannot pay for a fit   (also a ValueError)
    ├── ClusterFailed       a cluster could not complete a pass over the records
    ├── LedgerError         a ledger cannot be read, is broken or does not fit   (also a ValueError)
    ├── NotReleased         a fit did not release what is asked for   (also an AttributeError)
    ├── PlanMismatch        a run released something other than its plan
    ├── SourceChanged       a source gave other records than in the pass before
    ├── UnreadableFile      a file is not what its name says   (also a ValueError)
    ├── UnsupportedProblem  a solver cannot serve the problem   (also a ValueError)
    └── WorkerDiffers       a worker computes other numbers than the driver

    PrivacyWarning          (a UserWarning) a setting that weakens or narrows the promise

None of them depends on the value of a record, only on shapes, types and parameters.
"""

from __future__ import annotations

import warnings


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
