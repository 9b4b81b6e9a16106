"""The choice of a solver by the problem, the size of the table and the budget."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import UnsupportedProblem
from ..losses import Loss
from ..penalties import Separable
from ..problem import Problem
from .base import AnySolver, Task, require_smooth
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .gradient_descent import GradientDescent
from .greedy_coordinate_descent import GreedyCoordinateDescent
from .newton import Newton
from .newton import serves as newton_serves
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
    """Choose the solver that suits the problem and the table: that of the first of `RULES` that applies.

    If the table is so narrow that noise leaves some of the Gram matrix, it is preconditioned descent, for
    labels and real targets. For very large tables it is Newton where noise leaves all of the matrix, for
    losses and penalties that it serves, in five passes. Both scale by the declared bounds themselves.
    Without noise it is Newton for all narrow tables that it serves.

    Other tables are wide. With declared bounds of features and an L1 penalty, few of them are expected to
    matter, and it is greedy coordinate descent. For a loss whose slope jumps, as the hinge, it is dual
    coordinate descent. Else it is gradient descent, which scales columns by their declared bounds; without
    noise it is coordinate descent if these are unequal and the table is resident. Solvers that take no
    weights, offsets or units are left out where records have them.

    With several predictions a record it is preconditioned descent or gradient descent. One metric serves all
    of them, so d is the number of features.
    """
    return next(choose(task) for applies, choose in RULES if applies(task))


def _is_clear(task: Task) -> bool:
    """Whether noise leaves so much of the Gram matrix that few passes of Newton are as good as any."""
    loss = task.problem.loss
    return (
        task.private and _is_narrow(task) and _budget(task) >= _plenty(task) and _newton_serves(task)
        and not _is_steep(loss)
    )  # fmt: skip


def _has_metric(task: Task) -> bool:
    """Whether noise leaves some of the Gram matrix."""
    return (
        task.private and _is_narrow(task) and _budget(task) >= _enough(task)
        and has_metric(task.problem.loss, task.problem.penalty)
    )  # fmt: skip


def _is_exact_by_newton(task: Task) -> bool:
    """Whether Newton finds the minimiser without noise.

    Curvatures that differ by orders of magnitude, and features far from 0, take others thousands of passes.
    """
    loss = task.problem.loss
    uneven = loss.kind == "count" or loss.wider() is not None or _is_steep(loss)
    return not task.private and (uneven or task.p <= NARROW) and _newton_serves(task)


def _has_weights_or_units(task: Task) -> bool:
    return task.problem.has_weights or task.problem.has_units


def _jumps(task: Task) -> bool:
    return not math.isfinite(task.problem.loss.smoothness())


def _is_sparse(task: Task) -> bool:
    """Whether few of many features are expected to matter."""
    wide = task.private and task.p > NARROW and not task.problem.has_offsets
    return wide and _is_by_coordinates(task.problem) and _l1(task.problem) > 0


def _is_uneven(task: Task) -> bool:
    """Whether declared bounds are unequal, in a fit without noise to a table in memory."""
    if task.private or not task.resident or not _is_by_coordinates(task.problem):
        return False
    limits = task.problem.bounds.features(task.p)
    return bool(np.max(limits) >= UNEQUAL * np.min(limits))


def _newton(task: Task) -> AnySolver:
    return Newton(intervals=task.problem.penalty.is_zero)


def _smooth_gradient_descent(task: Task) -> AnySolver:
    require_smooth(task.problem, f"a fit with {'weights' if task.problem.has_weights else 'persons'}")
    return GradientDescent()


def _dual_coordinate_descent(task: Task) -> AnySolver:
    """Dual coordinate descent, which needs a resident table."""
    if task.resident:
        return DualCoordinateDescent()
    raise UnsupportedProblem(
        f"solver='auto' takes dual coordinate descent for the {task.problem.loss.name} loss, which needs a "
        "resident table: on others use GradientDescent with a step_size, or a loss of bounded curvature, "
        "as smoothed_hinge or huber"
    )


RULES: tuple[tuple[Callable[[Task], bool], Callable[[Task], AnySolver]], ...] = (
    (_is_clear, _newton),
    (_has_metric, lambda task: PreconditionedDescent()),
    (_is_exact_by_newton, _newton),
    (_has_weights_or_units, _smooth_gradient_descent),
    (_jumps, _dual_coordinate_descent),
    (_is_sparse, lambda task: GreedyCoordinateDescent()),
    (_is_uneven, lambda task: CoordinateDescent()),
    (lambda task: True, lambda task: GradientDescent()),
)
"""What a task must be like, and the solver that it then gets."""


def _budget(task: Task) -> float:
    """N mu / d^1.5."""
    return task.moved / task.noise / math.pow(task.width, 1.5)


def _newton_serves(task: Task) -> bool:
    return newton_serves(task.problem.loss, task.problem.penalty)


def _is_by_coordinates(problem: Problem) -> bool:
    """Whether coordinates have bounds and a penalty of their own, and one prediction."""
    separable = isinstance(problem.penalty, Separable)
    return problem.outputs == 1 and problem.bounds.feature is not None and separable


def _l1(problem: Problem) -> float:
    assert isinstance(problem.penalty, Separable)
    return problem.penalty.coordinate_form()[0]


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
