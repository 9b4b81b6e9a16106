"""Warnings that follow from public numbers, before a record is read."""

from __future__ import annotations

import math
import warnings

import numpy as np

from ..errors import PrivacyWarning
from ..penalties import Separable
from ..plan import Plan
from ..problem import Problem


def warn_of_delta(plan: Plan) -> None:
    """Warn of a delta that is no promise to each record."""
    if plan.budget.private and plan.budget.delta > 1 / plan.n_records:
        warnings.warn(
            f"delta = {plan.budget.delta:g} exceeds 1/n: such a promise may release whole records",
            PrivacyWarning,
            stacklevel=4,
        )


def warn_of_strong_l1(problem: Problem, n_features: int) -> None:
    """Warn of an L1 strength that leaves no coefficient, or hardly one, within the declared bounds."""
    strength = problem.penalty.coordinate_form()[0] if isinstance(problem.penalty, Separable) else 0.0
    limit = _strongest_l1(problem, n_features)
    if strength >= limit:
        effect = "makes every coefficient 0 for any records within the bounds: choose one well below {:g}"
    elif strength > limit / 4:
        effect = "leaves few or no coefficients: from {:g} on, all are 0 for any records within the bounds"
    else:
        return
    warnings.warn(f"an L1 strength of {strength:g} {effect.format(limit)}", UserWarning, stacklevel=4)


def _strongest_l1(problem: Problem, n_features: int) -> float:
    """The L1 strength from which on the minimiser is 0 for every table within the bounds.

    It is the largest mean of slope times feature at coefficients of 0. With an intercept the slopes add up to
    0 there, so their mean size is at most half the range of targets, and at most the Lipschitz constant.
    Without one it is the largest slope of a prediction of 0, which a convex loss has at an end of the range.
    """
    if problem.fit_intercept or problem.outputs > 1:
        slope = problem.slope_bound()
    elif problem.loss.kind != "classification" and problem.bounds.target is None:
        slope = math.inf
    else:
        ends = np.array(problem.bounds.target or (-1.0, 1.0))
        slope = float(np.abs(problem.loss.derivative(np.zeros(2), ends)).max())
    return slope * problem.bounds.largest_feature(n_features)
