"""What may be learnt before a fit, in the same plan."""

from __future__ import annotations

from ..mechanisms import Exponential, Thresholded
from .release import Releasable

MAY_LEARN: Releasable = {
    "range of a column": (Exponential,),
    "levels of columns": (Thresholded,),
    "norm of rows": (Exponential,),
}
"""Names of the queries of raw records, and the mechanisms that may release each."""

OF_ENCODED = "norm of rows"
"""The query that reads rows once they can be encoded, and so takes a pass of its own."""
