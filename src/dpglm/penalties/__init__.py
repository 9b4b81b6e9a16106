"""Penalties: convex functions of the coefficients, with a proximal step or a projection.

A new penalty is one file here and its place in `PENALTIES`; the contract tests then run on it.
"""

from __future__ import annotations

from .base import Ball, Penalty, Separable
from .box import Box
from .elastic_net import ElasticNet
from .l1 import L1
from .l1_ball import L1Ball
from .l2 import L2
from .zero import Zero

PENALTIES: tuple[type[Penalty], ...] = (Zero, L1, L2, ElasticNet, Box, L1Ball)

__all__ = ["L1", "L2", "PENALTIES", "Ball", "Box", "ElasticNet", "L1Ball", "Penalty", "Separable", "Zero"]
