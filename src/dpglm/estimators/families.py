"""Least squares and other families of generalized linear models by their names in scikit-learn."""

from __future__ import annotations

import math
from dataclasses import field
from types import ModuleType
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from .. import penalties, strict
from ..arrays import Vector
from ..losses import EpsilonInsensitive, Huber, Loss, NegativeBinomial, Quantile, Squared, Tweedie
from ..penalties import L1, L2, Penalty
from .classifiers import GLMClassifier
from .docs import estimator
from .penalty_parameters import inverse_strength, require_share, require_strength
from .regressors import GLMRegressor


@estimator
class _LeastSquares(GLMRegressor):
    """Squared loss, with a penalty that a subclass may choose."""

    loss: str | Loss = field(default="squared", init=False)
    penalty: Penalty | None = field(default=None, init=False)


@estimator
class LinearRegression(_LeastSquares):
    """Least squares under differential privacy.

    Parameters
    ----------
    {budget}
    {regression}
    >>> model = LinearRegression(epsilon=2.0, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """


@estimator
class Ridge(_LeastSquares):
    """Least squares with an L2 penalty under differential privacy.

    Parameters
    ----------
    {budget}
    alpha : float
        Strength of the penalty as in scikit-learn: norm(Xw - y)² + alpha norm(w)².
    {regression}
    >>> model = Ridge(epsilon=2.0, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    alpha: float = 1.0

    def _penalty(self, n_samples: int) -> Penalty:
        require_strength("alpha", self.alpha)
        return L2(self.alpha / n_samples)

    def _plain_model(self, linear_model: ModuleType) -> BaseEstimator:
        return linear_model.Ridge(alpha=self.alpha)


@estimator
class Lasso(_LeastSquares):
    """Least squares with an L1 penalty under differential privacy.

    Parameters
    ----------
    {budget}
    alpha : float
        Strength of the penalty as in scikit-learn: norm(Xw - y)² / (2n) + alpha sum of abs(w_j).
    {regression}
    >>> model = Lasso(epsilon=2.0, alpha=0.01, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    alpha: float = 1.0

    def _penalty(self, n_samples: int) -> Penalty:
        require_strength("alpha", self.alpha)
        return L1(self.alpha)

    def _plain_model(self, linear_model: ModuleType) -> BaseEstimator:
        return linear_model.Lasso(alpha=self.alpha)


@estimator
class ElasticNet(_LeastSquares):
    """Least squares with L1 and L2 penalties under differential privacy.

    Parameters
    ----------
    {budget}
    alpha : float
        Strength of the penalty as in scikit-learn.
    l1_ratio : float
        Share of L1: the penalty is alpha (l1_ratio sum of abs(w_j) + (1 - l1_ratio) norm(w)² / 2).
    {regression}
    >>> model = ElasticNet(epsilon=2.0, alpha=0.01, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    alpha: float = 1.0
    l1_ratio: float = 0.5

    def _penalty(self, n_samples: int) -> Penalty:
        require_strength("alpha", self.alpha)
        require_share("l1_ratio", self.l1_ratio)
        return penalties.ElasticNet(l1=self.alpha * self.l1_ratio, l2=self.alpha * (1 - self.l1_ratio))

    def _plain_model(self, linear_model: ModuleType) -> BaseEstimator:
        return linear_model.ElasticNet(alpha=self.alpha, l1_ratio=self.l1_ratio)


_WIDE, _NARROW = 100.0, 1e-4
_LEAST_SHARE = 0.01
_NARROWEST, _NARROW_ENOUGH = 1e-8, 0.01
_TINY = 1e-300


@estimator
class _LogLinked(GLMRegressor):
    """A model whose mean is the exponential of the linear predictor, with an L2 penalty."""

    penalty: Penalty | None = field(default=None, init=False)
    alpha: float = 1.0
    means: tuple[float, float] | None = None

    def _penalty(self, n_samples: int) -> Penalty:
        require_strength("alpha", self.alpha)
        return L2(self.alpha)

    def _loss(self) -> Loss:
        target = self._bounds().target
        if target is not None:
            top, usual = target[1], (max(target[0], _LEAST_SHARE * target[1]), target[1])
        else:  # without noise: so wide that no mean is outside
            top = getattr(self, "_largest_target", 1.0)
            usual = _NARROW * top, _WIDE * top
        if not top > 0:
            raise ValueError(f"{type(self).__name__} needs targets above 0: give target=(low, high)")
        low, high = usual if self.means is None else _range_of_means(self.means)
        return self._family(0.0 if self.means is None else low, low, high, top)

    def _family(self, least: float, low: float, high: float, top: float) -> Loss:
        """The loss for means from ``low``, or ``least`` if it needs no bound, to ``high``."""
        return Tweedie(self._power, least if self._power == 1 else low, high, top)

    @property
    def _power(self) -> float:
        """The power of the mean that the variance is proportional to."""
        return 1.0

    def _scored(self, targets: Vector, predicted: Vector, weights: Vector | None) -> float:
        """The share of the deviance that predictions explain."""
        means = np.maximum(predicted, _TINY) if self._power else predicted
        return float(d2_tweedie_score(targets, means, sample_weight=weights, power=self._power))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _range_of_means(means: object) -> tuple[float, float]:
    return strict.between("means", means, 0.0, math.inf, "two numbers (low, high) with 0 <= low < high")


@estimator
class PoissonRegressor(_LogLinked):
    """Poisson regression with a log link under differential privacy.

    The objective is mean(exp(z) - y z) + alpha / 2 norm(w)², as in scikit-learn. For rates, give an exposure.

    Parameters
    ----------
    {budget}
    alpha : float
        Strength of the L2 penalty; with 0, `Newton` states intervals.
    {means}
    {regression}
    >>> y = np.random.default_rng(0).poisson(np.exp(x[:, 0]))
    >>> bounds = Bounds(row_norm=1.0, target=(0, 8))
    >>> model = PoissonRegressor(epsilon=2.0, alpha=0, bounds=bounds).fit(x, y)
    >>> bool(abs(model.coef_[0] - 1.0) < 0.3)
    True
    """

    loss: str | Loss = field(default="tweedie", init=False)


@estimator
class GammaRegressor(_LogLinked):
    """Gamma regression with a log link under differential privacy.

    The objective is mean(z + y exp(-z)) + alpha / 2 norm(w)², as in scikit-learn.

    Parameters
    ----------
    {budget}
    alpha : float
        Strength of the L2 penalty; with 0, `Newton` states intervals.
    {means}
    {regression}
    >>> x = np.linspace(-1, 1, 50_000)[:, None]
    >>> y = np.random.default_rng(0).gamma(2.0, np.exp(x[:, 0]) / 2)
    >>> bounds = Bounds(row_norm=1.0, target=(0, 10))
    >>> model = GammaRegressor(epsilon=2.0, alpha=0, means=(0.2, 5), bounds=bounds).fit(x, y)
    >>> bool(abs(model.coef_[0] - 1.0) < 0.5)
    True
    """

    loss: str | Loss = field(default="tweedie", init=False)

    @property
    def _power(self) -> float:
        return 2.0


@estimator
class TweedieRegressor(_LogLinked):
    """Tweedie regression under differential privacy.

    The objective is half the mean deviance + alpha / 2 norm(w)², as in scikit-learn.

    Parameters
    ----------
    {budget}
    power : float
        0 is least squares; 1 Poisson; between 1 and 2 compound Poisson gamma; 2 gamma. Other powers are not
        convex with a log link, and are refused.
    alpha : float
        Strength of the L2 penalty; with 0, `Newton` states intervals.
    link : "auto", "identity" or "log"
        "auto" is the identity for a power of 0, and the logarithm for others. These are the convex pairs.
    {means}
    {regression}
    >>> y = np.random.default_rng(0).poisson(np.exp(x[:, 0])) * 1.5
    >>> bounds = Bounds(row_norm=1.0, target=(0, 10))
    >>> model = TweedieRegressor(epsilon=2.0, power=1.5, alpha=0, means=(0.2, 5), bounds=bounds).fit(x, y)
    >>> bool(abs(model.coef_[0] - 1.0) < 0.5)
    True
    """

    loss: str | Loss = field(default="tweedie", init=False)
    power: float = 0.0
    link: str = "auto"

    def _loss(self) -> Loss:
        power = strict.number("power", self.power, "0, or from 1 to 2", lambda p: p == 0 or 1 <= p <= 2)
        link = strict.one_of("link", self.link, ("auto", "identity", "log"))
        if (power == 0) != (link == "identity") and link != "auto":
            raise ValueError(f"a power of {power:g} is convex with another link than {link!r}: use 'auto'")
        return Squared() if power == 0 else super()._loss()

    @property
    def _power(self) -> float:
        return self.power

    def _default_range(self) -> tuple[float, float]:
        return (-1.0, 1.0) if self.power == 0 else (0.0, 1.0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.power != 0
        return tags


@estimator
class NegativeBinomialRegressor(_LogLinked):
    """Negative binomial regression of a given dispersion, with a log link, under differential privacy.

    The objective is mean((y + 1/a) log(1 + a exp(z)) - y z) + alpha / 2 norm(w)² for the dispersion a.

    Parameters
    ----------
    {budget}
    dispersion : float
        The dispersion a: the variance of a count of mean m is m + a m².
    alpha : float
        Strength of the L2 penalty; with 0, `Newton` states intervals.
    {means}
    {regression}
    >>> y = np.random.default_rng(0).poisson(np.exp(x[:, 0]))
    >>> bounds = Bounds(row_norm=1.0, target=(0, 8))
    >>> model = NegativeBinomialRegressor(epsilon=2.0, dispersion=0.1, alpha=0, bounds=bounds).fit(x, y)
    >>> bool(abs(model.coef_[0] - 1.0) < 0.3)
    True
    """

    loss: str | Loss = field(default="negative_binomial", init=False)
    dispersion: float = 1.0

    def _family(self, least: float, low: float, high: float, top: float) -> Loss:
        return NegativeBinomial(self.dispersion, least, high, top)

    def _scored(self, targets: Vector, predicted: Vector, weights: Vector | None) -> float:
        mean = np.full(len(targets), np.average(targets, weights=weights))
        left, all_ = (
            np.average(self._deviance_of(targets, np.maximum(at, _TINY)), weights=weights)
            for at in (predicted, mean)
        )
        return float(1 - left / all_) if all_ > 0 else 0.0

    def _deviance_of(self, y: Vector, mean: Vector) -> Vector:
        a, safe = self.dispersion, np.maximum(y, _TINY)
        half: Vector = y * np.log(safe / mean) - (y + 1 / a) * np.log((1 + a * y) / (1 + a * mean))
        return 2 * half


@estimator
class HuberRegressor(GLMRegressor):
    """Regression by the Huber loss, which large residuals do not pull, under differential privacy.

    The objective is sum of 2 Huber(z - y) + alpha norm(w)²: that of scikit-learn for a scale of 1, with its
    epsilon as ``threshold``. The scale of the residuals is declared, not estimated.

    Parameters
    ----------
    {budget}
    threshold : float, optional
        The residual at which the loss turns from quadratic to linear; by default half the declared range of
        targets, or 1.35 if none is declared.
    alpha : float
        Strength of the L2 penalty; with 0, `Newton` states intervals.
    {regression}
    >>> model = HuberRegressor(epsilon=2.0, threshold=0.5, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    loss: str | Loss = field(default="huber", init=False)
    penalty: Penalty | None = field(default=None, init=False)
    threshold: float | None = None
    alpha: float = 0.0001

    def _loss(self) -> Loss:
        if self.threshold is not None:
            return Huber(self.threshold)
        target = self._bounds().target
        return Huber(1.35) if target is None else Huber.for_target(target)

    def _penalty(self, n_samples: int) -> Penalty:
        require_strength("alpha", self.alpha)
        return L2(self.alpha / n_samples)


@estimator
class QuantileRegressor(GLMRegressor):
    """Linear model of a quantile of the target under differential privacy.

    The objective is mean smooth pinball loss + alpha sum of abs(w_j): that of scikit-learn as the width of
    the smoothing goes to 0.

    Parameters
    ----------
    {budget}
    quantile : float
        Share of the targets below the prediction, strictly between 0 and 1.
    alpha : float
        Strength of the L1 penalty; with 0, `Newton` states intervals.
    width : float, optional
        Residuals of about this size and less are smoothed; by default a hundredth of the declared range of
        targets. Without noise it is 1e-8 of the largest target, or a hundredth with a penalty. It is
        positive: slopes that jump have no Hessian.
    {regression}
    >>> model = QuantileRegressor(epsilon=2.0, alpha=0, width=0.2, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    loss: str | Loss = field(default="quantile", init=False)
    penalty: Penalty | None = field(default=None, init=False)
    quantile: float = 0.5
    alpha: float = 1.0
    width: float | None = None

    def _loss(self) -> Loss:
        target = self._bounds().target
        require_strength("alpha", self.alpha)
        narrow = _NARROWEST if self.alpha == 0 else _NARROW_ENOUGH  # Newton, or gradients
        usual = narrow * getattr(self, "_largest_target", 1.0)
        if target is not None:
            usual = (target[1] - target[0]) / 100
        return Quantile(self.quantile, usual if self.width is None else self.width)

    def _penalty(self, n_samples: int) -> Penalty:
        require_strength("alpha", self.alpha)
        return L1(self.alpha)

    def _plain_model(self, linear_model: ModuleType) -> BaseEstimator:
        return linear_model.QuantileRegressor(quantile=self.quantile, alpha=self.alpha)


@estimator
class LinearSVC(GLMClassifier):
    """Linear support vector classification under differential privacy.

    The objective is mean hinge loss + norm(w)² / (2 C n), that of scikit-learn's ``LinearSVC(loss="hinge")``
    but for the intercept, which is not penalised. More than two classes are fitted one against the rest.

    Parameters
    ----------
    {budget}
    {inverse_strength}
    loss : str or Loss
        "hinge", "smoothed_hinge" or an object of `dpglm.losses`. The squared hinge is not offered: its slopes
        have no bound.
    {classification}
    >>> model = LinearSVC(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    C: float = 1.0
    loss: str | Loss = "hinge"
    penalty: Penalty | None = field(default=None, init=False)
    class_weight: None = field(default=None, init=False)

    def fit(self, X: object, y: object = None) -> Self:  # type: ignore[override]
        """Fit to private records; the solver of this loss takes no weights and offsets."""
        return super().fit(X, y)

    def _penalty(self, n_samples: int) -> Penalty:
        return L2(inverse_strength(self.C, n_samples))


@estimator
class LinearSVR(GLMRegressor):
    """Linear support vector regression under differential privacy.

    The objective is mean epsilon-insensitive loss + norm(w)² / (2 C n), that of scikit-learn's ``LinearSVR``
    but for the intercept, which is not penalised. What scikit-learn calls epsilon is ``tube`` here.

    Parameters
    ----------
    {budget}
    {inverse_strength}
    tube : float
        Errors up to this size cost nothing; with 0 the loss is the absolute error.
    {regression}
    >>> model = LinearSVR(epsilon=2.0, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    loss: str | Loss = field(default="epsilon_insensitive", init=False)
    penalty: Penalty | None = field(default=None, init=False)
    C: float = 1.0
    tube: float = 0.0

    def fit(self, X: object, y: object = None) -> Self:  # type: ignore[override]
        """Fit to private records; the solver of this loss takes no weights and offsets."""
        return super().fit(X, y)

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.tube)

    def _penalty(self, n_samples: int) -> Penalty:
        return L2(inverse_strength(self.C, n_samples))

    def _plain_model(self, linear_model: ModuleType) -> BaseEstimator:
        from sklearn.svm import LinearSVR as Plain  # slow to import, and seldom needed

        return Plain(epsilon=self.tube, C=self.C)
