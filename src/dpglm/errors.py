"""Exceptions and warnings of dpglm.

::

    DpglmError
    ├── PlanMismatch        a run released something other than its plan
    └── UnsupportedProblem  a solver cannot serve the problem   (also a ValueError)

    PrivacyWarning          (a UserWarning) a setting that weakens or narrows the promise

None of them depends on the value of a record, only on shapes, types and parameters.
"""


class DpglmError(Exception):
    """Base class of the errors that only dpglm raises."""


class PlanMismatch(DpglmError):
    """The releases of a run differ from its plan, so the fit is refused."""


class UnsupportedProblem(DpglmError, ValueError):
    """The chosen solver cannot serve this loss, penalty or set of bounds."""


class PrivacyWarning(UserWarning):
    """A setting that weakens the promise, or one whose default may surprise."""
