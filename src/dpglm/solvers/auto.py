"""The solver for those who do not want to choose one."""

from __future__ import annotations

import math
import warnings

import numpy as np

from ..errors import UnsupportedProblem
from ..penalties import Separable
from .base import AnySolver, Task
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .gradient_descent import GradientDescent
from .newton import Newton, serves
from .objective_perturbation import ObjectivePerturbation, reach
from .preconditioned_descent import PreconditionedDescent
from .preconditioned_descent import serves as has_metric

UNEQUAL = 4.0
"""From this ratio of the largest to the smallest declared feature bound on, columns count as unequal."""

NARROW = 300
"""Above so many features the matrices of Newton take longer than the passes of others."""

PLENTY = 300.0
"""From this multiple of d^1.5 on, n mu is so large that the few passes of Newton are as good as any."""

ENOUGH = 0.25
"""Below this multiple of d^1.5, noise hides the whole Gram matrix."""

FLATTEST = 1e-4
"""Least strength of all quadratic terms over the smoothness where passes count: weaker ones take more."""


def suited(task: Task) -> AnySolver:
    """The solver that suits the problem and the table.

    If the table is so narrow that noise leaves all of the Gram matrix, it is Newton, for losses and penalties
    that it serves, in five passes. If noise leaves some of it, it is preconditioned descent. Both scale by
    the declared bounds themselves.

    Gradient descent gives every feature the same step and the same noise, so noise hides small columns. If
    the declared bounds of columns are unequal, it is coordinate descent, which scales both to each column;
    else gradient descent. For a loss whose slope jumps, as the hinge, it is dual coordinate descent. A table
    that is not resident is read anew in every pass: there it is the solver with the fewest passes.
    """
    problem = task.problem
    if task.p <= NARROW and task.private:
        budget = records_worth(task) / task.dimension**1.5
        if budget >= PLENTY and serves(problem.loss, problem.penalty):
            return Newton(intervals=problem.penalty.is_zero)
        if budget >= ENOUGH and has_metric(problem.loss, problem.penalty):
            return PreconditionedDescent()
    if not task.resident:
        return _with_few_passes(task)
    if not math.isfinite(problem.loss.smoothness()):
        return DualCoordinateDescent()
    if problem.bounds.feature is not None and isinstance(problem.penalty, Separable):
        limits = problem.bounds.features(task.p)
        if np.max(limits) >= UNEQUAL * np.min(limits):
            return CoordinateDescent()
    return GradientDescent()


def records_worth(task: Task) -> float:
    """The number of records times mu, of one fit."""
    return task.moved / task.noise


def _with_few_passes(task: Task) -> AnySolver:
    """Objective perturbation if it keeps to the budget and reaches all predictions, else gradient descent."""
    problem = task.problem
    if not math.isfinite(problem.loss.smoothness()):
        raise UnsupportedProblem(
            f"solver='auto' takes dual coordinate descent for the {problem.loss.name} loss, which needs a "
            "resident table: on others use GradientDescent with a step_size, or a loss of bounded curvature, "
            "as smoothed_hinge or huber"
        )
    if not task.private:
        return GradientDescent()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plan = ObjectivePerturbation().plan_for(task)
        except UnsupportedProblem:
            return GradientDescent()
    least = FLATTEST * problem.smoothness(task.p) - problem.penalty.strong_convexity
    near, width = reach(problem, task.p, max(plan.quadratic, least))
    if near < width:
        return GradientDescent()
    return ObjectivePerturbation(quadratic=least if plan.quadratic < least else None)
