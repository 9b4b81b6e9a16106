"""Set functions: prices of sets of features, each of which gives a norm.

A new one is a file here and its place in `SET_FUNCTIONS`; the contract tests then run on it.
"""

from __future__ import annotations

from .base import SetFunction, check_set_function
from .cardinality import AnyFeature, Cardinality, Ordered
from .custom import Custom
from .group_cover import GroupCover
from .range import Range

SET_FUNCTIONS: tuple[type[SetFunction], ...] = (Cardinality, AnyFeature, Ordered, GroupCover, Range, Custom)

__all__ = [
    "SET_FUNCTIONS",
    "AnyFeature",
    "Cardinality",
    "Custom",
    "GroupCover",
    "Ordered",
    "Range",
    "SetFunction",
    "check_set_function",
]
