"""Penalties: convex functions of the coefficients, with a proximal step or a projection.

A new penalty is one file here and its place in `PENALTIES`; the contract tests then run on it.
"""

from __future__ import annotations

from .base import Penalty, Separable
from .bounded import Bounded
from .box import Box
from .elastic_net import ElasticNet
from .fused import Fused
from .graph_fused import GraphFused
from .group_l2 import GroupL2
from .hierarchy import Hierarchy
from .l1 import L1
from .l1_ball import L1Ball
from .l2 import L2
from .lovasz import Lovasz
from .set_functions import (
    AnyFeature,
    Cardinality,
    Custom,
    GroupCover,
    Ordered,
    Range,
    SetFunction,
    check_set_function,
)
from .submodular import Submodular
from .total_variation import TotalVariation
from .width import gaussian_width
from .zero import Zero

PENALTIES: tuple[type[Penalty], ...] = (
    Zero, L1, L2, ElasticNet, Box, Bounded, L1Ball, Submodular, GroupL2, Hierarchy, TotalVariation,
    GraphFused, Fused, Lovasz,
)  # fmt: skip

__all__ = [
    "L1", "L2", "PENALTIES", "AnyFeature", "Bounded", "Box", "Cardinality", "Custom", "ElasticNet", "Fused",
    "GraphFused", "GroupCover", "GroupL2", "Hierarchy", "L1Ball", "Lovasz", "Ordered", "Penalty", "Range",
    "Separable", "SetFunction", "Submodular", "TotalVariation", "Zero", "check_set_function",
    "gaussian_width",
]  # fmt: skip
