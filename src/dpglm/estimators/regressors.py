"""A regressor for any loss and penalty."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .. import losses
from ..bounds import Bounds
from ..errors import PrivacyWarning
from ..losses import Loss
from ..penalties import Penalty, Zero
from ..plan import Plan
from ..solvers import Solver
from .base import PrivateGLM


class GLMRegressor(RegressorMixin, PrivateGLM):
    """Regressor for any loss of a prediction and a real or count target, with any penalty.

    Parameters
    ----------
    epsilon : float
        Privacy to be spent; ``float("inf")`` fits without noise.
    delta : float, optional
        Probability of a worse loss; by default 1/n² (n is public).
    loss : str or Loss
        "squared", "huber", "epsilon_insensitive", "poisson" or an object of `dpglm.losses`.
    penalty : Penalty, optional
        An object of `dpglm.penalties`; none by default.
    solver : str or Solver
        "auto", the name of an algorithm ("gradient-descent", "coordinate-descent", "frank-wolfe",
        "greedy-coordinate-descent", "dual-coordinate-descent"), or an object of `dpglm.solvers` with its
        settings.
    bounds : Bounds, optional
        What is known of every record; by default ``Bounds(row_norm=1.0, target=(-1, 1))``, with
        targets from 0 to 1 for counts. Records outside are clipped.
    neighbours : "replace-one" or "zero-out"
        The relation that the promise is for.
    fit_intercept : bool
        Whether to learn an intercept, as the coefficient of a constant feature.
    random_state : int, optional
        None draws noise from a cryptographic generator keyed by the operating system. An integer is
        for tests and studies: the fit can be repeated, and is *not private*.
    verbose : int
        Print the plan before the fit if positive.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    plan_ : Plan
        What was released and how it was priced.
    privacy_ : Guarantee
        The promise; print it.
    n_iter_ : int
        Steps of the fit.
    gap_ : float
        Without noise, where the solver knows it: how far the objective is above its minimum over the
        coefficients, at the fitted intercept, at most. It is set by `DualCoordinateDescent`, and by
        `FrankWolfe` with a given number of steps. Private fits have none.

    Guarantee
    ---------
    Everything that ``fit`` stores satisfies ``privacy_`` for the declared neighbours, unless
    ``random_state`` is given or epsilon is infinite.

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
        return self.penalty or Zero()

    def _bounds(self) -> Bounds:
        bounds = super()._bounds()
        if bounds.target is None and math.isfinite(self.epsilon):
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
        X = self._table(X, y)
        target = _numbers(column_or_1d(y, warn=True))
        if math.isfinite(self.epsilon) and (self.bounds is None or self.bounds.target is None):
            low, high = self._bounds().target  # type: ignore[misc]
            warnings.warn(
                f"targets are clipped to [{low:g}, {high:g}]: declare Bounds(target=(low, high))",
                PrivacyWarning,
                stacklevel=2,
            )
        (result,) = self._solve(X, target, [lambda values: values], {})
        self.coef_, self.intercept_ = self._split(result.w, X.shape[1])
        self.n_iter_ = result.steps
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted target of each row."""
        margins = self._margins(X)[:, 0]
        return self._fitted_problem.loss.mean(margins)

    def to_sklearn(self) -> Any:
        """A plain scikit-learn regressor with the same coefficients.

        It does not clip rows: apply ``Bounds.clip`` first where rows may lie outside the bounds.
        """
        check_is_fitted(self)
        from sklearn import linear_model  # slow to import, and seldom needed

        # A fit to an empty table fills in all that scikit-learn expects.
        plain = self._plain(linear_model).fit(np.zeros((2, self.n_features_in_)), np.ones(2))
        plain.coef_, plain.intercept_ = self._rows_of_coef()[0].copy(), self.intercept_
        return plain

    def _plain(self, linear_model: Any) -> Any:
        return (
            linear_model.PoissonRegressor()
            if self._loss().kind == "count"
            else linear_model.LinearRegression()
        )


def _numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    try:
        with np.errstate(over="ignore"):
            return y.astype(np.float64, casting="unsafe" if y.dtype == object else "same_kind")
    except (ValueError, TypeError, OverflowError):
        # NumPy's message would quote the target of a record.
        raise ValueError("y must be numeric, it holds something else") from None
