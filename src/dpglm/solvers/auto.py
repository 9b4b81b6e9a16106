"""The solver for those who do not want to choose one."""

from __future__ import annotations

import math

import numpy as np

from ..penalties import Separable
from ..problem import Problem
from .base import AnySolver
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .gradient_descent import GradientDescent

UNEQUAL = 4.0
"""From this ratio of the largest to the smallest declared feature bound on, columns count as unequal."""


def suited(problem: Problem, n_features: int) -> AnySolver:
    """The solver that suits the problem.

    Gradient descent gives every feature the same step and the same noise, so noise hides small columns. If
    the declared bounds of columns are unequal, it is coordinate descent, which scales both to each column;
    else gradient descent. For a loss whose slope jumps, as the hinge, it is dual coordinate descent.
    """
    if not math.isfinite(problem.loss.smoothness()):
        return DualCoordinateDescent()
    if problem.bounds.feature is not None and isinstance(problem.penalty, Separable):
        limits = problem.bounds.features(n_features)
        if np.max(limits) >= UNEQUAL * np.min(limits):
            return CoordinateDescent()
    return GradientDescent()
