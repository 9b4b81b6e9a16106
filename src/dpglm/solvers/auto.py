"""The solver for those who do not want to choose one."""

from __future__ import annotations

import math

import numpy as np

from ..errors import UnsupportedProblem
from ..losses import Loss
from ..penalties import Separable
from .base import AnySolver, Task, require_smooth
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .gradient_descent import GradientDescent
from .greedy_coordinate_descent import GreedyCoordinateDescent
from .newton import Newton, serves
from .preconditioned_descent import PreconditionedDescent
from .preconditioned_descent import serves as has_metric

UNEQUAL = 4.0
"""From this ratio of the largest to the smallest declared feature bound on, columns count as unequal."""

NARROW, NARROW_IN_RANGES = 300, 1_000
"""Above so many features, gradient descent is as good for labels, and matrices take too long.

The second holds for real targets, and for labels if ranges of features are declared: rows of words, whose
norm is declared, do not gain by a metric.
"""

SMALL = 1 << 26
"""Tables of more entries count as narrow up to `NARROW` features, whatever their targets."""

PLENTY = 1_000.0
"""From this multiple of d^1.5 on, n mu is so large that the few passes of Newton are as good as any.

They save time on tables of more than `SMALL` entries only, which are mostly read from disk in every pass.
Where ranges are declared far too wide, Newton's noise is larger than that of preconditioned descent.
"""

PLENTY_OF_COUNTS = 600.0
"""The same for counts and amounts in tables of so many entries, whose ranges Newton takes for slopes.

Gradient descent fits as well there, and far better where the range of targets is declared ten times too wide.
"""

ENOUGH, ENOUGH_FOR_CLASSES, ENOUGH_FOR_TARGETS = 0.06, 0.03, 0.01
"""Below this multiple of d^1.5, noise hides so much of the Gram matrix that gradient descent is better.

For real targets the threshold is lower: clips of preconditioned descent fall with noise there, and gradient
descent without it ends farther from the mean. With several classes gradient descent gains nothing on tables
of up to `NARROW` features, and is too certain.
"""


def suited(task: Task) -> AnySolver:
    """The solver that suits the problem and the table.

    If the table is so narrow that noise leaves some of the Gram matrix, it is preconditioned descent, for
    labels and real targets. For very large tables it is Newton where noise leaves all of the matrix, for
    losses and penalties that it serves, in five passes. Both scale by the declared bounds themselves.
    Without noise it is Newton for all narrow tables that it serves.

    Other tables are wide. With declared bounds of features and an L1 penalty, few of them are expected to
    matter, and it is greedy coordinate descent. For a loss whose slope jumps, as the hinge, it is dual
    coordinate descent. Else it is gradient descent, which scales columns by their declared bounds; without
    noise it is coordinate descent if these are unequal and the table is resident. Solvers that take no
    weights, offsets or persons are left out where records have them.

    With several predictions a record it is preconditioned descent or gradient descent. One metric serves all
    of them, so d is the number of features.
    """
    problem = task.problem
    if task.private and _is_narrow(task):
        budget = task.moved / task.noise / task.width**1.5  # n mu / d^1.5
        if budget >= _plenty(task) and serves(problem.loss, problem.penalty) and not _is_steep(problem.loss):
            return Newton(intervals=problem.penalty.is_zero)
        if budget >= _enough(task) and has_metric(problem.loss, problem.penalty):
            return PreconditionedDescent()
    uneven = problem.loss.kind == "count" or problem.loss.wider() is not None or _is_steep(problem.loss)
    # Curvatures that differ by orders of magnitude, and features far from 0, take others thousands of passes.
    if not task.private and (uneven or task.p <= NARROW) and serves(problem.loss, problem.penalty):
        return Newton(intervals=problem.penalty.is_zero)
    if problem.has_weights or problem.has_units:
        require_smooth(problem, "a fit with weights" if problem.has_weights else "a fit with persons")
        return GradientDescent()
    if not math.isfinite(problem.loss.smoothness()):
        return _for_jumps(task)
    if problem.outputs > 1 or problem.bounds.feature is None or not isinstance(problem.penalty, Separable):
        return GradientDescent()
    l1, *_ = problem.penalty.coordinate_form()
    if task.private and task.p > NARROW and l1 > 0 and not problem.has_offsets:
        return GreedyCoordinateDescent()
    limits = problem.bounds.features(task.p)
    if not task.private and task.resident and np.max(limits) >= UNEQUAL * np.min(limits):
        return CoordinateDescent()
    return GradientDescent()


def _is_narrow(task: Task) -> bool:
    """Whether a Gram matrix is worth its time."""
    problem = task.problem
    in_ranges = problem.loss.kind == "regression" or problem.bounds.feature is not None
    return task.p <= (NARROW_IN_RANGES if in_ranges and task.table_size * task.width <= SMALL else NARROW)


def _plenty(task: Task) -> float:
    """From which multiple of d^1.5 on the few passes of Newton are worth taking."""
    problem, large = task.problem, task.table_size * task.width > SMALL
    if problem.loss.kind == "count":
        return PLENTY_OF_COUNTS if large else math.inf
    return PLENTY if large or not has_metric(problem.loss, problem.penalty) else math.inf


def _enough(task: Task) -> float:
    """From which multiple of d^1.5 on a Gram matrix is worth its price."""
    if task.problem.loss.kind == "regression":
        return ENOUGH_FOR_TARGETS
    return ENOUGH_FOR_CLASSES if task.problem.outputs > 1 and task.p <= NARROW else ENOUGH


def _is_steep(loss: Loss) -> bool:
    """Whether a loss of real numbers is curved up to where its slopes reach their bound."""
    return loss.kind == "regression" and loss.softened(1.0).slope_unit() > loss.softened(1.0).lipschitz()


def _for_jumps(task: Task) -> AnySolver:
    """Dual coordinate descent, which needs a resident table."""
    if task.resident:
        return DualCoordinateDescent()
    raise UnsupportedProblem(
        f"solver='auto' takes dual coordinate descent for the {task.problem.loss.name} loss, which needs a "
        "resident table: on others use GradientDescent with a step_size, or a loss of bounded curvature, "
        "as smoothed_hinge or huber"
    )
