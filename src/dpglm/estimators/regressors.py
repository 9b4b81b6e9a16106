"""A regressor for any loss and penalty."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from .. import losses
from ..bounds import Bounds
from ..errors import PrivacyWarning
from ..losses import Loss
from ..penalties import Penalty
from ..plan import Plan
from ..solvers import Solver
from .base import PrivateGLM, given
from .docs import documented
from .inputs import numeric_target


@documented
class GLMRegressor(RegressorMixin, PrivateGLM):
    """Regressor for any loss of a prediction and a real or count target, with any penalty.

    Parameters
    ----------
    {epsilon}
    {delta}
    loss : str or Loss
        "squared", "huber", "epsilon_insensitive", "poisson" or an object of `dpglm.losses`. The scale of a
        loss that is given by its name follows the declared range of targets.
    {penalty}
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
    >>> from dpglm import Bounds, GLMRegressor
    >>> x = np.linspace(-1, 1, 5000)[:, None]
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = GLMRegressor(epsilon=2.0, loss="huber", bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        loss: str | Loss = "squared",
        penalty: Penalty | None = None,
        solver: str | Solver = "auto",
        bounds: Bounds | None = None,
        neighbours: str = "replace-one",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.bounds = bounds
        self.neighbours = neighbours
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self) -> Loss:
        loss = losses.get(self.loss, self._bounds().target)
        if loss.kind == "classification":
            raise ValueError(f"{type(self).__name__} needs a loss for numbers, {loss.name} is for labels")
        return loss

    def _penalty(self, n_samples: int) -> Penalty:
        return given(self.penalty)

    def _bounds(self) -> Bounds:
        bounds = super()._bounds()
        if bounds.target is None and self._is_private():
            return replace(
                bounds, target=(0.0, 1.0) if losses.get(self.loss).kind == "count" else (-1.0, 1.0)
            )
        return bounds

    def plan(self, n_samples: int, n_features: int) -> Plan:
        """The whole plan of a fit to a table of this size, without any data."""
        return self._plan(n_samples, n_features, 1)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to private records.

        Parameters
        ----------
        X : array, sparse table or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        """
        X, target = self._read(X, y, numeric_target)
        if super()._bounds().target is None and self._is_private():
            self._warn_of_the_default_range()
        (result,) = self._solve(X, target, [lambda values: values], {})
        self.coef_, self.intercept_ = self._split(result.w, X.shape[1])
        self.n_iter_ = result.steps
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted target of each row."""
        margins = self._margins(X)[:, 0]
        return self._fitted_problem.loss.mean(margins)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the predictions; not private."""
        weights = None if sample_weight is None else numeric_target(sample_weight, "sample_weight")
        return super().score(X, numeric_target(y), weights)

    def _warn_of_the_default_range(self) -> None:
        low, high = self._bounds().target  # type: ignore[misc]
        declared = (
            "bounds=Bounds(row_norm=1.0, target=(low, high)), where 1.0 is the norm that rows now have"
            if self.bounds is None
            else "target=(low, high) in the bounds"
        )
        warnings.warn(
            f"no range of targets is declared, so they are clipped to [{low:g}, {high:g}]: give {declared}",
            PrivacyWarning,
            stacklevel=3,
        )

    def _plain(self, clip: bool) -> Any:
        from sklearn import compose, linear_model  # slow to import, and seldom needed

        loss = self._fitted_problem.loss
        if type(loss).mean is Loss.mean:
            plain = inner = self._plain_model(linear_model)
        elif clip:
            inner = linear_model.LinearRegression()
            plain = compose.TransformedTargetRegressor(
                inner, func=loss.mean, inverse_func=loss.mean, check_inverse=False
            )
        else:
            plain = inner = linear_model.PoissonRegressor()
        # A fit to an empty table fills in all that scikit-learn expects.
        plain.fit(np.zeros((2, self.n_features_in_)), np.ones(2))
        inner = getattr(plain, "regressor_", inner)
        inner.coef_, inner.intercept_ = self._rows_of_coef()[0].copy(), self.intercept_
        return plain

    def _plain_model(self, linear_model: Any) -> Any:
        return linear_model.LinearRegression()
