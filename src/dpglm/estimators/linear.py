"""Least squares: linear regression, ridge, lasso and elastic net."""

from __future__ import annotations

from dataclasses import field
from types import ModuleType

from sklearn.base import BaseEstimator

from .. import penalties
from ..losses import Loss
from ..penalties import L1, L2, Penalty
from .docs import estimator
from .penalty_parameters import require_share, require_strength
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
