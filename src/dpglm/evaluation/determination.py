"""R², in two steps: rough estimates of error and variance, then the mean of its influence function."""

from __future__ import annotations

import math

from ..scores import DeterminationInfluence, SquaredError, TargetValue
from .means import SCORE_SUMS
from .metric import SEEN, Metric, Released, Setting, Stage
from .result import Estimate

_LEAST_VARIANCE = 1e-4


class DeterminationMetric(Metric):
    """1 - mean squared error / variance of the targets, both of targets cut to their declared range."""

    name = "r2"
    stages = (
        Stage("R²: squared error", 0.15, 3, SCORE_SUMS),
        Stage("R²: targets", 0.15, 3, SCORE_SUMS),
        Stage("R²: influence", 0.7, 3, SCORE_SUMS),
    )
    needs = "a target with a declared range"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes == 0 and setting.target is not None

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        assert setting.target is not None
        error, value = SquaredError(setting.loss, setting.target, setting.limits), TargetValue(setting.target)
        errors = self.sums(setting, release, "R²: squared error", error)
        targets = self.sums(setting, release, "R²: targets", value)
        spread = targets.squares / targets.count - targets.mean**2  # in units of half the range, squared
        spread_noise = math.hypot(targets.squaring, targets.counting, 2 * targets.mean * targets.noise)
        spread_noise /= targets.count
        seen = errors.seen and targets.seen and spread > SEEN * spread_noise
        variance = value.half**2 * max(spread, _LEAST_VARIANCE)
        mean_error = error.middle + error.half * errors.mean
        mean = value.middle + value.half * targets.mean
        influence = DeterminationInfluence(error, mean_error, variance, mean)
        sums = self.sums(setting, release, "R²: influence", influence)
        rough = 1 - mean_error / variance
        found = rough + influence.middle + influence.half * sums.mean
        # What the first order leaves: products of two errors of the rough estimates.
        off = value.half**2 * spread_noise / variance
        wrong = error.half * errors.mean_noise / variance
        moved = (value.half * targets.mean_noise) ** 2 / variance
        left = off * wrong + (1 - rough) * (off**2 + moved)
        return self.estimate(
            found,
            influence.half * math.sqrt(sums.variance / sums.count),
            math.hypot(influence.half * sums.mean_noise, left),
            level,
            seen and sums.seen,
            (-math.inf, 1.0),
            "1 - mean squared error / variance of the targets",
        )
