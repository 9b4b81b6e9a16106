"""Metrics that are means of a score: accuracy, log loss, squared and absolute error."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace

from ..inference.coefficients import quantile
from ..losses import Logistic, Multinomial
from ..scores import AbsoluteError, Accuracy, LogLoss, Score, SquaredError
from .metric import Metric, Released, Setting, Stage
from .result import Estimate

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
