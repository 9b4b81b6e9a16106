"""Penalties: convex functions of the coefficients, with a proximal step or a projection.

A new penalty is a class, in a file of its own if it likes, and its place in `PENALTIES`; a new set function
likewise, with its place in `SET_FUNCTIONS`. The contract tests then run on it.
"""

from __future__ import annotations

from .base import Penalty, Separable
from .fused import Fused, GraphFused, Lovasz, TotalVariation
from .groups import GroupL2, Hierarchy
from .separable import L1, L2, Bounded, Box, ElasticNet, L1Ball, Zero
from .set_functions import (
    AnyFeature,
    Cardinality,
    Custom,
    GroupCover,
    Ordered,
    Range,
    Submodular,
    gaussian_width,
)
from .submodular_functions import SetFunction, check_set_function

PENALTIES: tuple[type[Penalty], ...] = (
    Zero, L1, L2, ElasticNet, Box, Bounded, L1Ball, Submodular, GroupL2, Hierarchy, TotalVariation,
    GraphFused, Fused, Lovasz,
)  # fmt: skip

SET_FUNCTIONS: tuple[type[SetFunction], ...] = (Cardinality, AnyFeature, Ordered, GroupCover, Range, Custom)

__all__ = [
    "L1", "L2", "PENALTIES", "AnyFeature", "Bounded", "Box", "Cardinality", "Custom", "ElasticNet", "Fused",
    "GraphFused", "GroupCover", "GroupL2", "Hierarchy", "L1Ball", "Lovasz", "Ordered", "Penalty", "Range",
    "Separable", "SetFunction", "Submodular", "TotalVariation", "Zero", "check_set_function",
    "gaussian_width",
]  # fmt: skip
