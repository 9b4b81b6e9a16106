"""What may be learnt before a fit, in the same plan."""

from __future__ import annotations

from ..mechanisms import Exponential, Gaussian, Thresholded
from .release import Releasable

RECORD_COUNT = "record count"
"""Name of the query that comes before a plan: steps, penalties and sizes follow from its release."""

MAY_LEARN: Releasable = {
    "range of a column": (Exponential,),
    "levels of columns": (Thresholded,),
    "norm of rows": (Exponential,),
    "class counts": (Gaussian,),
    RECORD_COUNT: (Gaussian,),
}
"""Names of the queries that come before a fit, and the mechanisms that may release each."""

OWN_PASS = ("norm of rows", "class counts")
"""Queries that read rows once they can be encoded, each in a pass of its own."""
