"""Metrics that are released with noise, and the plan and run of an evaluation by them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..inference import LEVEL, quantile
from ..losses import Logistic, Loss, Multinomial
from ..mechanisms import Gaussian
from ..plan import Plan, Releasable, Release
from ..privacy import Budget, Neighbours
from ..queries import CellSums, Query, ScoreSums
from ..scores import (
    AbsoluteError,
    Accuracy,
    ClassesByMargin,
    DeterminationInfluence,
    LogLoss,
    PublicModel,
    RankInfluence,
    Reliability,
    Score,
    SquaredError,
    TargetValue,
)
from .result import Bin, Estimate

SEEN = 4.0
"""A count that exceeds the deviation of its noise by this factor is seen."""


@dataclass(frozen=True)
class Stage:
    """One release of a metric: its name, its share of what the metric may spend, and its entries."""

    name: str
    share: float
    entries: int
    sensitivity: str


@dataclass(frozen=True, eq=False)
class Setting:
    """What is public in an evaluation.

    Attributes
    ----------
    model : PublicModel
    loss : Loss
    target : (float, float) or None
        The declared range of numbers.
    limits : (float, float) or None
        The range of predicted numbers.
    n_classes : int
        0 for numbers.
    n_records : int
    neighbours : Neighbours
    log_loss_cut : float
    reach : float
        No margin is larger.
    """

    model: PublicModel
    loss: Loss
    target: tuple[float, float] | None
    limits: tuple[float, float] | None
    n_classes: int
    n_records: int
    neighbours: Neighbours
    log_loss_cut: float
    reach: float


Released = Callable[[str, Query], tuple[Vector, float]]
"""Makes the release of a stage: the released numbers, and the deviation of the noise in each."""


@dataclass(frozen=True)
class Sums:
    """What a release of score sums says: of v, the score in [-1, 1].

    Attributes
    ----------
    count : float
        Number of records that count, at most the public number of records.
    total : float
        Sum of v.
    squares : float
        Sum of v².
    noise : float
        Deviation of the noise in the sum of v.
    counting : float
        Deviation of the noise in ``count``.
    squaring : float
        Deviation of the noise in ``squares`` that does not come with ``count``.
    """

    count: float
    total: float
    squares: float
    noise: float
    counting: float
    squaring: float

    @property
    def seen(self) -> bool:
        """Whether the number of records exceeds its noise."""
        return self.count > SEEN * self.counting

    @property
    def mean(self) -> float:
        """Mean of v."""
        return min(max(self.total / self.count, -1.0), 1.0)

    @property
    def mean_noise(self) -> float:
        """Deviation of the noise in the mean of v."""
        return math.hypot(self.noise, self.mean * self.counting) / self.count

    @property
    def variance(self) -> float:
        """Variance of v between records, increased by the deviation of its noise."""
        mean = self.mean
        found = max(self.squares / self.count - mean**2, 0.0)
        owed = math.hypot(self.squaring, 2 * mean * self.noise, self.counting) / self.count
        return min(found + owed, 1.0 - mean**2) if mean**2 < 1.0 else 0.0


class Metric(ABC):
    """A score, what it releases and what it needs."""

    name: ClassVar[str]
    stages: ClassVar[tuple[Stage, ...]]
    needs: ClassVar[str]

    @abstractmethod
    def serves(self, setting: Setting) -> bool:
        """Whether the model has such a score."""

    @abstractmethod
    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        """Make the releases of all stages, in any case, and state the score."""

    def sums(self, setting: Setting, release: Released, stage: str, score: Score) -> Sums:
        """The released sums of a score."""
        query = ScoreSums.weighed(score, setting.model, setting.n_records, setting.neighbours)
        (counted, total, left), noise = release(stage, query)
        n = float(setting.n_records)
        count = min(max(counted / query.counted, 1.0), n)
        squares = min(max(count - left / query.weight, 0.0), n)
        return Sums(count, total, squares, noise, noise / query.counted, noise / query.weight)

    def estimate(
        self, value: float, sampling: float, noise: float, level: float, determined: bool,
        ends: tuple[float, float], words: str,
    ) -> Estimate:  # fmt: skip
        """A score with its normal interval, cut to what is possible, or all of that if noise hides it."""
        error = math.hypot(sampling, noise)
        half = quantile(level) * error
        low, high = (np.clip(value + side * half, *ends) for side in (-1.0, 1.0))
        if not determined:
            low, high, error = *ends, math.inf
        return Estimate(
            self.name, float(np.clip(value, *ends)), float(low), float(high), error, noise, level, determined,
            words,
        )  # fmt: skip


SCORE_SUMS = "2 (score in [-1, 1])"


class MeanScore(Metric):
    """The mean of a score over the records that count."""

    words: str

    @abstractmethod
    def score(self, setting: Setting) -> Score:
        """The score of a record."""

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        score = self.score(setting)
        sums = self.sums(setting, release, self.stages[0].name, score)
        return self.estimate(
            score.middle + score.half * sums.mean,
            score.half * math.sqrt(sums.variance / sums.count),
            score.half * sums.mean_noise,
            level,
            sums.seen,
            score.range,
            self.words,
        )


class AccuracyMetric(MeanScore):
    """Share of the records whose class is predicted, with Wilson's interval, widened by the noise."""

    name = "accuracy"
    stages = (Stage("accuracy", 1.0, 3, SCORE_SUMS),)
    needs = "classes"
    words = "share of records whose class is predicted"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes >= 2

    def score(self, setting: Setting) -> Score:
        return Accuracy()

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        sums = self.sums(setting, release, "accuracy", Accuracy())
        value, n, noise = (1 + sums.mean) / 2, sums.count, sums.mean_noise / 2
        plain = self.estimate(
            value, math.sqrt(value * (1 - value) / n), noise, level, sums.seen, (0.0, 1.0), self.words
        )
        if not sums.seen:
            return plain
        # (value - p)² = z² (p (1 - p) / n + noise²) has two roots p.
        z = quantile(level)
        a, b, c = 1 + z**2 / n, value + z**2 / (2 * n), value**2 - (z * noise) ** 2
        root = math.sqrt(max(b**2 - a * c, 0.0))
        return replace(plain, low=max((b - root) / a, 0.0), high=min((b + root) / a, 1.0))


class LogLossMetric(MeanScore):
    """Mean of -log of the predicted probability of the right class, cut."""

    name = "log_loss"
    stages = (Stage("log loss", 1.0, 3, SCORE_SUMS),)
    needs = "probabilities of classes"
    words = "mean of -log of the probability of the right class"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes >= 2 and type(setting.loss) in (Logistic, Multinomial)

    def score(self, setting: Setting) -> Score:
        return LogLoss(setting.log_loss_cut, type(setting.loss) is Multinomial)

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        found = super().run(setting, release, level)
        return replace(found, words=f"{self.words}, each cut to {setting.log_loss_cut:g}")


class _MeanError(MeanScore):
    needs = "a target with a declared range"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes == 0 and setting.target is not None


class SquaredErrorMetric(_MeanError):
    """Mean squared error, of targets cut to their declared range."""

    name = "mean_squared_error"
    stages = (Stage("mean squared error", 1.0, 3, SCORE_SUMS),)
    words = "mean of (target - prediction)²"

    def score(self, setting: Setting) -> Score:
        assert setting.target is not None
        return SquaredError(setting.loss, setting.target, setting.limits)


class AbsoluteErrorMetric(_MeanError):
    """Mean absolute error, of targets cut to their declared range."""

    name = "mean_absolute_error"
    stages = (Stage("mean absolute error", 1.0, 3, SCORE_SUMS),)
    words = "mean of abs(target - prediction)"

    def score(self, setting: Setting) -> Score:
        assert setting.target is not None
        return AbsoluteError(setting.loss, setting.target, setting.limits)


CALIBRATION_BINS = 10
_COUNTED = 0.5


class CalibrationMetric(Metric):
    """Mean of outcome - predicted probability of class 1; and the same in each bin of probabilities."""

    name = "calibration"
    stages = (Stage("calibration", 1.0, 2 * CALIBRATION_BINS, "sqrt(2.5) (a record is in one bin)"),)
    needs = "probabilities of two classes"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes == 2 and len(setting.model.coef) == 1 and type(setting.loss) is Logistic

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        query = CellSums(
            Reliability(1 + 1 / CALIBRATION_BINS, CALIBRATION_BINS),
            setting.model,
            setting.n_records,
            _COUNTED,
        )
        released, noise = release("calibration", query)
        counts, gaps = released[:CALIBRATION_BINS] / _COUNTED, released[CALIBRATION_BINS:]
        counting, n = noise / _COUNTED, float(setting.n_records)
        count = min(max(float(counts.sum()), 1.0), n)
        bins = []
        for k, (size, total) in enumerate(zip(counts, gaps, strict=True)):
            low, high = k / CALIBRATION_BINS, (k + 1) / CALIBRATION_BINS
            seen = size > SEEN * counting
            gap = float(np.clip(total / size, -high, 1 - low)) if seen else 0.0
            variance = _variance(low, high, gap)
            error = math.sqrt(variance / size + (noise**2 + (gap * counting) ** 2) / size**2) if seen else 0.0
            share = float(np.clip(size / count, 0, 1))
            bins.append(Bin(low, high, share, gap, error if seen else math.inf))
        overall = float(gaps.sum()) / count
        # Bins that are not seen count with the largest variance.
        between = sum(max(one.share, 0.0) * _variance(one.low, one.high, one.gap) for one in bins)
        noisy = math.sqrt(CALIBRATION_BINS) * math.hypot(noise, overall * counting) / count
        found = self.estimate(
            overall, math.sqrt(between / count), noisy, level,
            count > SEEN * counting * math.sqrt(CALIBRATION_BINS), (-1.0, 1.0),
            "mean of outcome - predicted probability; its bins:",
        )  # fmt: skip
        return replace(found, bins=tuple(bins))


def _variance(low: float, high: float, gap: float) -> float:
    """The largest variance of outcome - probability in a bin whose mean gap is known."""
    shares = np.clip(np.linspace(low, high, 11) + gap, 0.0, 1.0)
    return float((shares * (1 - shares)).max()) + (high - low) ** 2 / 4


RANKING_BINS = 32


class RankingMetric(Metric):
    """Probability that a record of class 1 has a larger margin than one of class 0; ties count half."""

    name = "auc"
    stages = (
        Stage("AUC: margins by class", 0.35, 2 * RANKING_BINS, "sqrt(2) (a record is in one cell)"),
        Stage("AUC: influence", 0.65, 3, SCORE_SUMS),
    )
    needs = "two classes"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes == 2 and len(setting.model.coef) == 1

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        cells = ClassesByMargin(0.0, RANKING_BINS, setting.reach)
        counts, noise = release(
            "AUC: margins by class", CellSums(cells, setting.model, setting.n_records, 1.0)
        )
        below, sizes = zip(
            *(_distribution(part) for part in (counts[:RANKING_BINS], counts[RANKING_BINS:])), strict=True
        )
        (zeros, ones), least = sizes, min(sizes)
        middle = [(np.append(0.0, edges[:-1]) + edges) / 2 for edges in below]
        masses = [np.diff(edges, prepend=0.0) for edges in below]
        rough = float(masses[1] @ middle[0])
        values = np.array([(1 - middle[1] - rough) / zeros, (middle[0] - rough) / ones])
        values[:, 0] += np.where(np.ptp(values), 0.0, 1.0 / setting.n_records)  # a range of some length
        score = RankInfluence(cells, values)
        sums = self.sums(setting, release, "AUC: influence", score)
        value = rough + score.middle * sums.count + score.half * sums.total
        squares = (
            score.half**2 * sums.squares + 2 * score.half * score.middle * sums.total
            + score.middle**2 * sums.count
        )  # fmt: skip
        owed = math.hypot(
            score.half**2 * sums.squaring, 2 * score.half * score.middle * sums.noise,
            (score.half**2 + score.middle**2) * sums.counting,
        )  # fmt: skip
        # What the first order leaves: products of two errors of the distributions, of as many steps as bins.
        left = noise**2 * RANKING_BINS / least**2
        return self.estimate(
            value,
            math.sqrt(max(squares, 0.0) + owed),
            math.hypot(score.half * sums.noise, score.middle * sums.counting, left),
            level,
            least > SEEN * noise * math.sqrt(RANKING_BINS) and sums.seen,
            (0.0, 1.0),
            f"pairs that are ranked right; margins in the same of {RANKING_BINS} bins are ties, "
            f"{100 * float(masses[0] @ masses[1]):.1f} % of pairs",
        )


def _distribution(counts: Vector) -> tuple[Vector, float]:
    """The distribution function at the upper ends of bins, and the number of records, from noisy counts."""
    sums = np.cumsum(counts)
    size = max(float(sums[-1]), 1.0)
    rising = np.maximum.accumulate(sums)
    falling = np.minimum.accumulate(sums[::-1])[::-1]
    edges: Vector = np.clip((rising + falling) / (2 * size), 0.0, 1.0)
    edges[-1] = 1.0
    return edges, size


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


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        AccuracyMetric(),
        LogLossMetric(),
        RankingMetric(),
        CalibrationMetric(),
        DeterminationMetric(),
        SquaredErrorMetric(),
        AbsoluteErrorMetric(),
    )
}
"""All metrics by name."""


LOG_LOSS_CUT = math.log(100)
"""By default a probability below one percent counts as one percent in the log loss."""


@dataclass(frozen=True)
class EvaluationPlan(Plan):
    """What an evaluation will release. ``metrics`` has the names of all, with commas between them."""

    solver: ClassVar[str] = "evaluation"
    may_release: ClassVar[Releasable] = {
        stage.name: (Gaussian,) for metric in METRICS.values() for stage in metric.stages
    }

    metrics: str
    log_loss_cut: float


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Scores of one public model by some metrics.

    Parameters
    ----------
    metrics : tuple of str
    setting : Setting
    level : float
        Probability with which each interval covers its score.
    """

    metrics: tuple[str, ...]
    setting: Setting
    level: float = 0.95

    def __post_init__(self) -> None:
        LEVEL("level", self.level)
        unknown = [name for name in self.metrics if name not in METRICS]
        if unknown or not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(
                f"metric must be one or several of {list(METRICS)}, each once, got {list(self.metrics)}"
            )
        for name in self.metrics:
            if not METRICS[name].serves(self.setting):
                raise UnsupportedProblem(
                    f"{name} needs {METRICS[name].needs}, which this model does not have"
                )

    def plan(self, n_features: int, budget: Budget) -> EvaluationPlan:
        """All releases, with the least noise that keeps within the budget; metrics share it evenly."""
        stages = [stage for name in self.metrics for stage in METRICS[name].stages]
        releases = tuple(
            Release(stage.name, Gaussian(stage.share**-0.5), 1, stage.sensitivity, entries=stage.entries)
            for stage in stages
        )
        setting = self.setting
        plan = EvaluationPlan(
            setting.n_records, n_features, budget, setting.neighbours, 1, releases, 1,
            ", ".join(self.metrics), setting.log_loss_cut,
        )  # fmt: skip
        return plan.calibrated()

    def run(self, plan: EvaluationPlan, curator: Curator) -> tuple[Estimate, ...]:
        """Carry out a plan; what is not in it is not released."""

        def release(stage: str, query: Query) -> tuple[Vector, float]:
            mechanism = plan[stage].mechanism
            sensitivity = query.sensitivity(plan.neighbours)
            assert isinstance(sensitivity, float)
            return curator.release(query, mechanism), mechanism.noise * sensitivity

        return tuple(METRICS[name].run(self.setting, release, self.level) for name in self.metrics)
