"""The problem to solve: mean loss + penalty, over records inside declared bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .arrays import Vector
from .bounds import Bounds
from .errors import UnsupportedProblem
from .losses import Loss
from .penalties import Penalty, Separable
from .penalties.separable import RescaledPenalty

_LEAST_SLOPE, _LARGEST_SLOPE = 1e-100, 1e100
_FARTHEST_START = 1e90
_MOST_SCALED = 1_000


@dataclass(frozen=True)
class Problem:
    """Minimise (1/n) sum of s_i loss(x_i · w + o_i, y_i) + penalty(w), known without any record.

    The shares s_i, from 0 to 1, and the offsets o_i are there only if the bounds limit weights or offsets.
    With persons, n is their number, and the shares of the records of a person sum to at most 1.

    The intercept is the coefficient of a constant feature. Its value is half the largest allowed row norm: a
    larger one would enlarge every gradient, a smaller one would let the intercept learn too slowly. The
    intercept is the last entry of w, is not penalised, and is clipped and accounted for like any feature.
    """

    loss: Loss
    penalty: Penalty
    bounds: Bounds
    fit_intercept: bool = True
    predicted: tuple[float, float] | None = None
    """The range of predictions, if it is not that of the targets that the loss is given."""
    offset_middle: float = 0.0
    """What is taken off the offsets of records; the intercept of the declared offsets is less by it."""

    def with_centred_offsets(self) -> Problem:
        """The problem for offsets less the middle of their range, for which the intercept makes up.

        So a fit does not depend on the unit of an exposure, and a prediction without offset starts from the
        middle. Without an intercept it is the problem as it is.
        """
        if not self.fit_intercept or self.bounds.offset is None:
            return self
        low, high = self.bounds.offset_range
        half = (high - low) / 2
        return replace(
            self, bounds=replace(self.bounds, offset=(-half, half)), offset_middle=(low + high) / 2
        )

    @property
    def has_weights(self) -> bool:
        """Whether records have shares of what a record may add."""
        return self.bounds.weight is not None

    @property
    def has_offsets(self) -> bool:
        """Whether margins have offsets."""
        return self.bounds.offset is not None

    @property
    def has_units(self) -> bool:
        """Whether the promise is one to persons, who may have several records."""
        return self.bounds.rows_per_unit is not None

    @property
    def declared_bounds(self) -> Bounds:
        """The bounds with offsets as they are declared."""
        if self.bounds.offset is None:
            return self.bounds
        low, high = (end + self.offset_middle for end in self.bounds.offset_range)
        return replace(self.bounds, offset=(low, high))

    @property
    def unit(self) -> str:
        """What the promise protects."""
        return "person" if self.has_units else "record"

    def fall(self) -> float:
        """Bound on how far the loss of a record, without its margin, is above its infimum."""
        return math.inf if self.has_offsets else self.loss.fall(self.bounds.target)

    @property
    def outputs(self) -> int:
        """Predictions of a record."""
        return self.loss.outputs

    def width(self, n_features: int) -> int:
        """Number of features, the constant one included."""
        return n_features + self.fit_intercept

    def dimension(self, n_features: int) -> int:
        """Length of w."""
        return self.width(n_features) * self.outputs

    def split(self, w: Vector) -> tuple[Vector, Vector]:
        """Coefficients of the features, and the intercept: one number, or none. Both are views of w.

        With several predictions a record, each feature has as many coefficients, one after the other, and so
        has the intercept.
        """
        place = len(w) - self.fit_intercept * self.outputs
        return w[:place], w[place:]

    def join(self, features: Vector, intercept: Vector | float) -> Vector:
        """Coefficients of the features and the intercept, if there is one, in one array."""
        return np.concatenate([features, np.full(self.fit_intercept * self.outputs, intercept)])

    def centred(self, gradient: Vector) -> Vector:
        """A gradient without its mean over the predictions of a record, which is noise alone.

        The exact gradient has none: a shift of all predictions changes no loss.
        """
        if self.outputs == 1:
            return gradient
        by_features = gradient.reshape(-1, self.outputs)
        return np.reshape(by_features - by_features.mean(axis=1, keepdims=True), gradient.shape)

    def constant(self, n_features: int) -> float:
        """Value of the constant feature; 0 without an intercept, 1 if rows have no bound."""
        if not self.fit_intercept:
            return 0.0
        radius = self.bounds.radius(n_features)
        return radius / 2 if math.isfinite(radius) else 1.0

    def features(self, n_features: int) -> Vector:
        """Bound on the absolute value of each feature, the constant one included."""
        return self.join(self.bounds.features(n_features), self.constant(n_features))

    def radius(self, n_features: int) -> float:
        """Largest norm of a row, the constant feature included."""
        return math.hypot(self.bounds.radius(n_features), self.constant(n_features))

    def smoothness(self, n_features: int) -> float:
        """Largest curvature of the mean loss in any direction."""
        return self.loss.smoothness() * self.radius(n_features) ** 2

    def slope_bound(self) -> float:
        """Largest slope that a record can have at the start.

        A regression starts from the middle of the declared range, so that is the Lipschitz constant of the
        loss, or its smoothness times half the range if that is less. The slope of a Poisson count is mean -
        target, and is at most half the range.
        """
        largest = self.loss.lipschitz(self.bounds.target)
        if self.bounds.target is not None:
            largest = min(largest, self.loss.slope_at_middle(self.bounds.target))
        if not (_LEAST_SLOPE <= largest <= _LARGEST_SLOPE or largest == math.inf):
            raise UnsupportedProblem(
                f"the largest slope of {self.loss.name} must be from {_LEAST_SLOPE:g} to {_LARGEST_SLOPE:g}, "
                f"or have no bound, got {largest!r}: give targets and parameters of the loss in other units"
            )
        return largest

    def bend(self) -> float:
        """Curvature of the loss on the scale of predictions; default settings depend on it.

        It is the smoothness, unless a regression loss turns linear inside the range of targets: then it is
        the slope over half the range. For a classification loss whose slope jumps it is 1.
        """
        half, smoothness = self._half_range(), self.loss.smoothness()
        if self.loss.kind == "regression" and half is not None:
            return min(smoothness, self.slope_bound() / half)
        return smoothness if math.isfinite(smoothness) else 1.0

    def stretch(self) -> float:
        """Smoothness over bend, at least 1: how many steps of 1 / smoothness half the range of targets takes.

        It is 1 for a loss whose slope jumps, for which no such step exists.
        """
        smoothness = self.loss.smoothness()
        return smoothness / self.bend() if math.isfinite(smoothness) else 1.0

    def _half_range(self) -> float | None:
        if self.bounds.target is None:
            return None
        low, high = self.bounds.target
        return (high - low) / 2

    def start(self, n_features: int) -> Vector:
        """Public starting point: zero, or the nearest point of a constraint set.

        The intercept of a regression starts at the middle of its range.
        """
        w = self.prox(np.zeros(self.dimension(n_features)), 0.0)
        if self.fit_intercept and self.bounds.target is not None:
            _, intercept = self.split(w)
            intercept[:] = self.loss.link(sum(self.bounds.target) / 2) / self.constant(n_features)
        if not np.all(np.abs(w) <= _FARTHEST_START):
            raise UnsupportedProblem(
                f"lower, upper, the penalty or the range of targets keeps a coefficient at "
                f"{float(np.abs(w).max()):.3g}, where products with records would overflow: it must be able "
                f"to be within {_FARTHEST_START:g} of zero, so give the data in other units"
            )
        return w

    def prox(self, w: Vector, step: float) -> Vector:
        """Proximal step of the penalty; the intercept stays as it is."""
        features, intercept = self.split(w)
        stepped = self.penalty.prox(features, step)
        return self.join(stepped, intercept) if self.fit_intercept else stepped

    def scales_of_bounds(self, n_features: int) -> Vector | None:
        """Factors that make the declared bounds of all features as small as the least one.

        None if there are no such bounds, or equal ones, if the penalty is no sum over coordinates, or if
        there are more than 1,000 features: a table with scaled columns is a copy.
        """
        if self.bounds.feature is None or self.outputs > 1 or n_features > _MOST_SCALED:
            return None
        if not isinstance(self.penalty, Separable):
            return None
        limits = self.bounds.features(n_features)
        return float(limits.min()) / limits if limits.min() < limits.max() else None

    def in_scaled_columns(self, scales: Vector, quadratic: float = 0.0) -> Problem:
        """The problem for columns that are multiplied by scales from 0 to 1: a change of variables.

        The penalty may have a further quadratic term in the new coefficients.
        """
        assert isinstance(self.penalty, Separable)
        low, high = self.bounds.ranges(len(scales))
        bounds = replace(self.bounds, feature=(low * scales, high * scales))
        return replace(self, bounds=bounds, penalty=RescaledPenalty(self.penalty, scales, quadratic))

    def from_scaled_columns(self, w: Vector, scales: Vector, other: Problem) -> Vector:
        """Coefficients of the table from those of the other problem, that of scaled columns."""
        found = self.scaled(w, scales)
        if self.fit_intercept:
            p = len(scales)
            self.split(found)[1][:] *= other.constant(p) / self.constant(p)
        return self.prox(found, 0.0)

    def scaled(self, w: Vector, scales: Vector | None) -> Vector:
        """Coefficients of the features from those of features that are multiplied by scales."""
        found = w.copy()
        if scales is not None:
            features, _ = self.split(found)
            features *= scales
        return found

    def prox_in_scale(self, w: Vector, step: float, scales: Vector | None) -> Vector:
        """Proximal step for coefficients of features that are multiplied by scales.

        With scales the penalty is a sum over coordinates, each of which has its own step then.
        """
        if scales is None:
            return self.prox(w, step)
        features, intercept = self.split(self.scaled(w, scales))
        assert isinstance(self.penalty, Separable)
        stepped = self.penalty.prox(features, step * np.square(scales)) / scales
        return self.join(stepped, intercept) if self.fit_intercept else stepped

    def coordinate_form(self, n_features: int) -> tuple[Vector, Vector, Vector, Vector]:
        """(l1, l2, low, high) of each coordinate for a separable penalty."""
        assert isinstance(self.penalty, Separable)
        parts = np.empty((4, self.dimension(n_features)))
        for part, value in zip(parts, self.penalty.coordinate_form(), strict=True):
            part[:n_features] = value
        if self.fit_intercept:
            parts[:, -1] = 0.0, 0.0, -math.inf, math.inf
        return parts[0], parts[1], parts[2], parts[3]
