"""Standard errors, intervals and tests, from coefficients and covariances that a fit released.

Nothing here reads a record: all of it is post-processing, and costs no privacy.
"""

from .coefficients import INTERCEPT, Coefficients, intervals, two_sided
from .summary import Summary
from .wald import WaldTest, conditions, wald_test
from .words import FOR_PREDICTION, rough

__all__ = [
    "FOR_PREDICTION", "INTERCEPT", "Coefficients", "Summary", "WaldTest", "conditions", "intervals", "rough",
    "two_sided", "wald_test",
]  # fmt: skip
