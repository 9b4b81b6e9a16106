"""Least squares: linear regression, ridge, lasso and elastic net."""

from __future__ import annotations

from typing import Any

from .. import penalties
from ..bounds import Bounds
from ..penalties import L1, L2, Penalty
from ..solvers import Solver
from .regressors import GLMRegressor


class LinearRegression(GLMRegressor):
    """Least squares under differential privacy.

    Parameters
    ----------
    epsilon, delta, solver, bounds, neighbours, fit_intercept, random_state, verbose
        As in `GLMRegressor`.

    Attributes
    ----------
    coef_, intercept_, plan_, privacy_, n_iter_
        As in `GLMRegressor`.

    Guarantee
    ---------
    As in `GLMRegressor`.

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


class Ridge(GLMRegressor):
    """Least squares with an L2 penalty under differential privacy.

    Parameters
    ----------
    alpha : float
        Strength of the penalty as in scikit-learn: norm(Xw - y)² + alpha norm(w)².
    epsilon, delta, solver, bounds, neighbours, fit_intercept, random_state, verbose
        As in `GLMRegressor`.

    Attributes
    ----------
    coef_, intercept_, plan_, privacy_, n_iter_
        As in `GLMRegressor`.

    Guarantee
    ---------
    As in `GLMRegressor`.

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
        return L2(self.alpha / n_samples)

    def _plain(self, linear_model: Any) -> Any:
        return linear_model.Ridge(alpha=self.alpha)


class Lasso(GLMRegressor):
    """Least squares with an L1 penalty under differential privacy.

    Parameters
    ----------
    alpha : float
        Strength of the penalty as in scikit-learn: norm(Xw - y)² / (2n) + alpha sum of abs(w_j).
    epsilon, delta, solver, bounds, neighbours, fit_intercept, random_state, verbose
        As in `GLMRegressor`.

    Attributes
    ----------
    coef_, intercept_, plan_, privacy_, n_iter_
        As in `GLMRegressor`.

    Guarantee
    ---------
    As in `GLMRegressor`.

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
        return L1(self.alpha)

    def _plain(self, linear_model: Any) -> Any:
        return linear_model.Lasso(alpha=self.alpha)


class ElasticNet(GLMRegressor):
    """Least squares with L1 and L2 penalties under differential privacy.

    Parameters
    ----------
    alpha : float
        Strength of the penalty as in scikit-learn.
    l1_ratio : float
        Share of L1: the penalty is alpha (l1_ratio sum of abs(w_j) + (1 - l1_ratio) norm(w)² / 2).
    epsilon, delta, solver, bounds, neighbours, fit_intercept, random_state, verbose
        As in `GLMRegressor`.

    Attributes
    ----------
    coef_, intercept_, plan_, privacy_, n_iter_
        As in `GLMRegressor`.

    Guarantee
    ---------
    As in `GLMRegressor`.

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
        return penalties.ElasticNet(l1=self.alpha * self.l1_ratio, l2=self.alpha * (1 - self.l1_ratio))

    def _plain(self, linear_model: Any) -> Any:
        return linear_model.ElasticNet(alpha=self.alpha, l1_ratio=self.l1_ratio)
