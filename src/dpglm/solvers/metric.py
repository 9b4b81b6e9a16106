"""The metric of preconditioned descent: from one or two released Gram matrices (docs/defaults.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Vector, on_column_grids
from ..bounds import Coordinates
from ..curator import Curator
from ..mechanisms import Gaussian
from ..plan import Plan, Release
from ..problem import Problem
from ..queries import Gram
from .base import Task, equal_releases
from .metric_settings import gram_rounds
from .record_share import RecordShare, of_gram
from .typical import Typical, norm_of_coordinates

CONSTANT = 0.3
_LONG_IN_METRIC, _HIDDEN = 1.25, 4.0
_OUTWEIGHS, _MOST_BEYOND = 2.0**32, 1e100
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Metric:
    """The metric, and what follows from it.

    Attributes
    ----------
    transform : array of shape (d, d)
        Takes coordinates to the metric.
    inverse : array of shape (d, d)
        Takes coefficients of coordinates to coefficients in the metric.
    rank : float
        The effective dimension: the expected squared norm of a record.
    start : array of shape (d,) or (d, outputs)
        Coefficients in the metric of the best constant prediction.
    to_records : array of shape (d, d)
        Takes coefficients in the metric to those of the records' own features.
    ridge, unit_ridge : array of shape (d, d)
        Curvature in the metric of the penalty, and of an L2 penalty of strength 1.
    records : RecordShare, optional
        The share of the records that counted, if the Gram matrix tells.
    """

    transform: Vector
    inverse: Vector
    rank: float
    start: Vector
    to_records: Vector
    ridge: Vector
    unit_ridge: Vector
    records: RecordShare | None

    @property
    def dimension(self) -> int:
        return len(self.start)

    def pull(self, w: Vector) -> Vector:
        """Gradient of the penalty."""
        pulled: Vector = self.ridge @ w
        return pulled

    def spread(self, w: Vector) -> float:
        """About the deviation of margins, or more: rows have second moments of at most 1 in the metric."""
        by_features = self.transform @ w
        by_features[-1] = 0.0
        return float(np.linalg.norm(self.inverse @ by_features))


class _Axes(NamedTuple):
    """Axes of a matrix of second moments: eigenvalues, what they are raised to, and eigenvectors."""

    values: Vector
    raised: Vector
    vectors: Vector

    @classmethod
    def of(cls, matrix: Vector, floor: float) -> _Axes:
        """Eigenvalues are raised to the floor: what noise hides is not stretched beyond it."""
        values, vectors = np.linalg.eigh(matrix)
        least = max(floor, _ROUNDING * float(np.abs(values).max()))
        return cls(values, np.maximum(values, least), vectors)

    def rank(self, floor: float) -> float:
        """The expected squared norm of a record, of which half the floor may be in a hidden direction."""
        return float(np.sum(np.maximum(self.values, floor / 2) / self.raised))


def release_of_gram(task: Task, share: float) -> Release:
    """The release of one Gram matrix, or of two that have half of the share each."""
    d = task.p + task.problem.fit_intercept
    return equal_releases(
        Gram.name, Gaussian, gram_rounds(task), "the squared size of a typical row", share=share,
        entries=d * (d + 1) // 2,
    )  # fmt: skip


def learn_metric(
    plan: Plan, problem: Problem, curator: Curator, coordinates: Coordinates, typical: Typical,
    deviations: Vector, leverage: float,
) -> Metric:  # fmt: skip
    """Release the Gram matrix and make a metric of it, in which a second one is released.

    ``deviations`` are upper bounds of those of coordinates, by which columns are divided first; ``leverage``
    is the length, in units of a typical one, up to which rows count.
    """
    n, p, d = plan.n_records, plan.n_features, coordinates.dimension
    mechanism = plan[Gram.name].mechanism
    # If variances are in proportion to their bounds, scaled rows are longer by this.
    size = typical.norm * math.sqrt(p) / float(np.linalg.norm(deviations))
    largest = norm_of_coordinates(problem, coordinates) / float(deviations.min())
    constant = CONSTANT * size if problem.fit_intercept else 0.0
    norm = math.hypot(min(leverage * size, max(largest, size)), constant)
    scale = np.append(1.0 / deviations, np.full(d - p, constant))
    query = Gram(coordinates, norm, np.diag(scale), plan.table_size)
    gram = query.matrix(curator.release(query, mechanism)) / n
    noise = mechanism.noise * query.sensitivity(plan.neighbours) / n
    unit = np.append(1.0 / np.square(coordinates.half), np.zeros(d - p))
    penalty = problem.penalty.strong_convexity * unit * np.square(scale)
    # Beyond this the matrices below would be singular, and a coefficient is its gradient over its penalty.
    strongest = _OUTWEIGHS * problem.bend() * norm**2
    beyond = np.minimum(np.maximum(penalty / strongest, 1.0), _MOST_BEYOND)
    penalty = np.minimum(penalty, strongest)
    # A penalty that outweighs all records, as that of a feature in a large unit, would hide the others.
    shrunk = 1.0 / np.sqrt(np.maximum(penalty / (problem.bend() * norm**2), 1.0))
    bent = np.diag(penalty / problem.bend())
    floor = noise * math.sqrt(d)
    axes = _Axes.of(shrunk[:, None] * (gram + bent) * shrunk, floor)
    rank = axes.rank(floor)
    to_metric = shrunk[:, None] * axes.vectors / np.sqrt(axes.raised)
    to_scaled = np.sqrt(axes.raised)[:, None] * axes.vectors.T / shrunk
    if plan[Gram.name].count > 1:
        longest = _LONG_IN_METRIC * leverage * math.sqrt(rank)
        second = Gram(coordinates, longest, scale[:, None] * to_metric, plan.table_size)
        seen = second.matrix(curator.release(second, mechanism)) / n + to_metric.T @ bent @ to_metric
        noise_seen = mechanism.noise * second.sensitivity(plan.neighbours) / n
        variances = noise**2 / np.outer(axes.raised, axes.raised), np.full((d, d), noise_seen**2)
        # Where the first matrix is clear, its rows were cut less.
        clear = axes.values >= _HIDDEN * floor
        precision = variances[1] / np.maximum(variances[0] + variances[1], np.finfo(float).tiny)
        weight = np.where(np.outer(clear, clear), 1.0, precision)
        both = weight * np.diag(axes.values / axes.raised) + (1.0 - weight) * seen
        noises = weight**2 * variances[0] + (1.0 - weight) ** 2 * variances[1]
        hidden = noises.mean(axis=1)[np.ones(d, dtype=np.bool_) if clear.all() else ~clear]
        floor = min(math.sqrt(d * float(hidden.max())), 1.0)
        axes = _Axes.of(both, floor)
        rank = axes.rank(floor)
        to_metric = to_metric @ axes.vectors / np.sqrt(axes.raised)
        to_scaled = np.sqrt(axes.raised)[:, None] * axes.vectors.T @ to_scaled
    transform = on_column_grids(scale[:, None] * to_metric)
    inverse = to_scaled / scale
    start = np.zeros(d if problem.outputs == 1 else (d, problem.outputs))
    if problem.fit_intercept:
        start[-1] = typical.start
        start = inverse @ start
    strengths = penalty / np.square(scale), unit
    ridge, unit_ridge = (transform.T @ (strength[:, None] * transform) for strength in strengths)
    to_records = _to_records(problem, p, coordinates) @ (transform / beyond[:, None])
    return Metric(
        transform, inverse, rank, start, to_records, ridge, unit_ridge,
        of_gram(plan, problem, query, gram, noise),
    )  # fmt: skip


def _to_records(problem: Problem, p: int, coordinates: Coordinates) -> Vector:
    """The matrix that takes coefficients of coordinates to those of the records' own features."""
    matrix = np.diag(1.0 / np.append(coordinates.half, np.ones(coordinates.dimension - p)))
    if problem.fit_intercept:
        matrix[-1, :p] = -coordinates.middle / coordinates.half
        matrix[-1] /= problem.constant(p)
    return matrix
