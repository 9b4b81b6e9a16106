"""Least squares: linear regression, ridge, lasso and elastic net."""

from __future__ import annotations

from typing import Any

from .. import penalties
from ..bounds import Bounds
from ..penalties import L1, L2, Penalty
from ..solvers import Solver
from .base import nonnegative, share
from .docs import documented
from .regressors import GLMRegressor


@documented
class LinearRegression(GLMRegressor):
    """Least squares under differential privacy.

    Parameters
    ----------
    {epsilon}
    {delta}
    {solver}
    {bounds}
    {neighbours}
    {fit_intercept}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coefficients}
    {promise}

    Notes
    -----
    {guarantee}

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import Bounds, LinearRegression
    >>> x = np.linspace(-1, 1, 5000)[:, None]
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = LinearRegression(epsilon=2.0, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        solver: str | Solver = "auto",
        bounds: Bounds | None = None,
        neighbours: str = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            solver=solver,
            bounds=bounds,
            neighbours=neighbours,
            fit_intercept=fit_intercept,
            random_state=random_state,
            verbose=verbose,
        )


@documented
class Ridge(GLMRegressor):
    """Least squares with an L2 penalty under differential privacy.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float
        Strength of the penalty as in scikit-learn: norm(Xw - y)² + alpha norm(w)².
    {solver}
    {bounds}
    {neighbours}
    {fit_intercept}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coefficients}
    {promise}

    Notes
    -----
    {guarantee}

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import Bounds, Ridge
    >>> x = np.linspace(-1, 1, 5000)[:, None]
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = Ridge(epsilon=2.0, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        alpha: float = 1.0,
        solver: str | Solver = "auto",
        bounds: Bounds | None = None,
        neighbours: str = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            solver=solver,
            bounds=bounds,
            neighbours=neighbours,
            fit_intercept=fit_intercept,
            random_state=random_state,
            verbose=verbose,
        )
        self.alpha = alpha

    def _penalty(self, n_samples: int) -> Penalty:
        nonnegative(alpha=self.alpha)
        return L2(self.alpha / n_samples)

    def _plain_model(self, linear_model: Any) -> Any:
        return linear_model.Ridge(alpha=self.alpha)


@documented
class Lasso(GLMRegressor):
    """Least squares with an L1 penalty under differential privacy.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float
        Strength of the penalty as in scikit-learn: norm(Xw - y)² / (2n) + alpha sum of abs(w_j).
    {solver}
    {bounds}
    {neighbours}
    {fit_intercept}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coefficients}
    {promise}

    Notes
    -----
    {guarantee}

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import Bounds, Lasso
    >>> x = np.linspace(-1, 1, 5000)[:, None]
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = Lasso(epsilon=2.0, alpha=0.01, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        alpha: float = 1.0,
        solver: str | Solver = "auto",
        bounds: Bounds | None = None,
        neighbours: str = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            solver=solver,
            bounds=bounds,
            neighbours=neighbours,
            fit_intercept=fit_intercept,
            random_state=random_state,
            verbose=verbose,
        )
        self.alpha = alpha

    def _penalty(self, n_samples: int) -> Penalty:
        nonnegative(alpha=self.alpha)
        return L1(self.alpha)

    def _plain_model(self, linear_model: Any) -> Any:
        return linear_model.Lasso(alpha=self.alpha)


@documented
class ElasticNet(GLMRegressor):
    """Least squares with L1 and L2 penalties under differential privacy.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float
        Strength of the penalty as in scikit-learn.
    l1_ratio : float
        Share of L1: the penalty is alpha (l1_ratio sum of abs(w_j) + (1 - l1_ratio) norm(w)² / 2).
    {solver}
    {bounds}
    {neighbours}
    {fit_intercept}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coefficients}
    {promise}

    Notes
    -----
    {guarantee}

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import Bounds, ElasticNet
    >>> x = np.linspace(-1, 1, 5000)[:, None]
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = ElasticNet(epsilon=2.0, alpha=0.01, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        solver: str | Solver = "auto",
        bounds: Bounds | None = None,
        neighbours: str = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            solver=solver,
            bounds=bounds,
            neighbours=neighbours,
            fit_intercept=fit_intercept,
            random_state=random_state,
            verbose=verbose,
        )
        self.alpha = alpha
        self.l1_ratio = l1_ratio

    def _penalty(self, n_samples: int) -> Penalty:
        nonnegative(alpha=self.alpha)
        share(l1_ratio=self.l1_ratio)
        return penalties.ElasticNet(l1=self.alpha * self.l1_ratio, l2=self.alpha * (1 - self.l1_ratio))

    def _plain_model(self, linear_model: Any) -> Any:
        return linear_model.ElasticNet(alpha=self.alpha, l1_ratio=self.l1_ratio)
