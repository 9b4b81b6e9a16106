"""Default settings of preconditioned descent: clip, time and steps (docs/defaults.md)."""

from __future__ import annotations

import math

from ..losses import Logistic
from ..problem import Problem
from .base import Task
from .typical import Typical

_HIDDEN = 1.3
_TWO_ROUNDS = 0.3
_CLIP, _LEAST_CLIP_OF_LABELS = 0.22, 0.12
_CLIP_OF_HIDDEN, _LEAST_CLIP_OF_TARGETS, _LARGEST_CLIP_OF_TARGETS = 0.42, 0.02, 25.0
_ALLOWED_NOISE, _MOST_ALLOWED, _ALLOWED_NOISE_OF_LABELS = 0.5, 0.95, 0.75
LEAST_STEPS, _LEAST_STEPS_OF_TARGETS, MOST_STEPS = 10, 8, 60
_STEPS_OF_TARGETS, _STEPS_OF_LABELS, _STEPS_OF_CLASSES = 12, 18, 44
_USUAL_RANK = 1.5
_LITTLE_NOISE = 0.009
_LONGEST_STEP_OF_RARE = 3.0


def _hidden(task: Task) -> float:
    """About 1 where noise hides half of the directions of the Gram matrix."""
    return float(_HIDDEN * task.noise * task.width**1.5)


def gram_rounds(task: Task) -> int:
    """How many Gram matrices are released, of which the second is in the metric of the first.

    It says more of directions that noise hid in the first, unless noise hides most of them in both.
    """
    return 2 if _hidden(task) <= _TWO_ROUNDS else 1


def clip_share(task: Task) -> float:
    """The clip in units of the largest usual slope times the root of the effective dimension.

    It falls as noise hides more of the directions. Slopes of labels are all alike at the start, so a smaller
    clip than 0.12 gains nothing for them; of residuals, little more than the sign counts where noise hides
    most directions.
    """
    hidden = _hidden(task)
    if task.problem.loss.kind == "classification":
        return min(max(_CLIP / math.sqrt(hidden), _LEAST_CLIP_OF_LABELS), 1.0)
    clip = min(_CLIP / math.sqrt(hidden), _CLIP_OF_HIDDEN / hidden)
    return min(max(clip, _LEAST_CLIP_OF_TARGETS), _LARGEST_CLIP_OF_TARGETS)


def allowed_noise(task: Task) -> float:
    """Noise of predictions in directions that the metric does not resolve, in units of the usual slopes.

    For real targets it grows where most directions are such, from where their clip begins to fall faster.
    """
    if task.problem.loss.kind == "classification":
        return _ALLOWED_NOISE_OF_LABELS
    later = math.sqrt(_hidden(task)) * _CLIP / _CLIP_OF_HIDDEN
    return min(_ALLOWED_NOISE * max(1.0, later), _MOST_ALLOWED)


def longest_step(problem: Problem, typical: Typical) -> float:
    """The longest step in units of the inverse curvature.

    If one label is rare, the curvature of its constant prediction is below the bound by cosh²(start / 2); the
    root of that leaves room for records whose prediction is less certain.
    """
    if not isinstance(problem.loss, Logistic):
        return 1.0
    return min(math.cosh(float(typical.start) / 2), _LONGEST_STEP_OF_RARE)


def usual_leverage(task: Task) -> float:
    """The length in the metric, in units of a typical one, from which on rows are weighted down.

    It grows as noise vanishes, so that a penalty outweighs no record whose row is long.
    """
    return max(1.0, math.sqrt(_LITTLE_NOISE / _hidden(task)))


def usual_steps(task: Task, clip: float, time: float) -> int:
    """The number of steps: what the time needs, and not more than gradients that are clipped so much do.

    Where noise is so small that few passes of Newton's method would do as well, the number grows as its
    logarithm: directions of records that are weighted down are flat, and need more steps to the same error.

    For real targets it is a multiple of four. Long rows are scaled down in the Gram matrix, so that the
    curvature along a direction may be twice that of the metric, where iterates alternate between two points:
    the mean of an even number of them, the last half, is between these.
    """
    loss, hidden = task.problem.loss, _hidden(task)
    more = math.log(hidden) / math.log(_LITTLE_NOISE) if hidden < _LITTLE_NOISE else 1.0
    if loss.kind == "classification":
        enough = _STEPS_OF_LABELS if loss.outputs == 1 else _STEPS_OF_CLASSES
        return _steps(more * enough, clip, time, LEAST_STEPS)
    least = math.ceil(more * _LEAST_STEPS_OF_TARGETS)
    return 4 * math.ceil(_steps(more * _STEPS_OF_TARGETS, clip, time, least) / 4)


def _steps(enough: float, clip: float, time: float, least: int) -> int:
    most = min(max(math.ceil(enough / clip), least), MOST_STEPS)
    return min(max(math.ceil(_USUAL_RANK * time), LEAST_STEPS), most)
