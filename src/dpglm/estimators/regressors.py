"""A regressor for any loss and penalty."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score

from .. import losses
from ..arrays import Vector
from ..bounds import LARGEST, Bounds
from ..data.cluster import in_memory
from ..data.columns import RecordColumns
from ..errors import PrivacyWarning
from ..fit import FitTable, Outcome, TargetReader, numeric_target
from ..fit.readers import lazily
from ..losses import Loss
from ..plan import Plan
from ..scores import predicted
from .base import PrivateGLM, Targets
from .docs import estimator


@estimator
class GLMRegressor(RegressorMixin, PrivateGLM):
    """Regressor for any loss of a prediction and a real or count target, with any penalty.

    Parameters
    ----------
    {budget}
    loss : str or Loss
        "squared", "huber", "log_cosh", "epsilon_insensitive", "poisson" or an object of `dpglm.losses`. The
        scale of a loss that is given by its name follows the declared range of targets.
    {penalty}
    {regression}
    >>> model = GLMRegressor(epsilon=2.0, loss="huber", bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    loss: str | Loss = "squared"

    def _loss(self) -> Loss:
        loss = losses.get(self.loss, self._bounds().target)
        if loss.kind == "classification":
            raise ValueError(f"{type(self).__name__} needs a loss for numbers, {loss.name} is for labels")
        return loss

    def _bounds(self) -> Bounds:
        bounds = super()._bounds()
        if bounds.target is None and self._is_private():
            return replace(bounds, target=self._default_range())
        return bounds

    def _default_range(self) -> tuple[float, float]:
        """The range that targets are clipped to if none is declared."""
        return (0.0, 1.0) if losses.get(self.loss).kind == "count" else (-1.0, 1.0)

    def plan(self, n_samples: int, n_features: int, *, resident: bool = True) -> Plan:
        """The whole plan of a fit to a table of this size, without any data.

        Parameters
        ----------
        n_samples, n_features : int
            With ``neighbours="add-remove"`` the number of records is a guess: the plan of the fit follows
            from a released count. The price does not depend on it.
        resident : bool
            Whether the table will be in memory; False for one that is read anew in every pass, as a `Stream`.
        """
        return self._recipe(n_samples, n_features, self._targets(), resident=resident).planned().plan

    def _targets(self, n_classes: int | None = None) -> Targets:
        return Targets(self._loss(), (_unchanged,))

    def _target_reader(self) -> TargetReader:
        return numeric_target

    def _read_targets(self, table: FitTable, bounds: Bounds) -> tuple[FitTable, Targets]:
        if table.has_targets and not self._is_private():
            self._largest_target = _largest(table.targets)
        if super()._bounds().target is None and self._is_private():
            self._warn_of_the_default_range()
        return table if table.has_targets else table.with_codes(numeric_target), self._targets()

    def _keep_coefficients(self, outcome: Outcome) -> None:
        (result,) = outcome.results
        self.coef_, self.intercept_ = self._split(result.w, outcome.plan.n_features)
        self.n_iter_ = result.steps

    @lazily
    def predict(self, X: object, offset: object = None, exposure: object = None) -> Vector:
        """The predicted target of each row, within the declared range of targets.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or str, optional
            Added to the linear predictor, as it is given.
        exposure : array of shape (n_samples,) or str, optional
            For models with a log link: its logarithm is added to the linear predictor.
        """
        margins = self._margins(X, RecordColumns(None, None, offset, exposure))[:, 0]
        return predicted(self._fitted_problem.loss, self._range, margins)

    @property
    def _range(self) -> tuple[float, float] | None:
        """The range of predictions."""
        problem = self._fitted_problem
        return problem.predicted or problem.bounds.target

    def score(
        self, X: object, y: object = None, sample_weight: ArrayLike | None = None, offset: object = None,
        exposure: object = None,
    ) -> float:  # fmt: skip
        """Coefficient of determination R² of the predictions; not private."""
        weights = None if sample_weight is None else numeric_target(sample_weight, "sample_weight")
        table, targets = self._read_again(X, y, numeric_target)
        predicted = in_memory(self.predict(table, offset=offset, exposure=exposure))
        return self._scored(targets, predicted, weights)

    def _scored(self, targets: Vector, predicted: Vector, weights: Vector | None) -> float:
        return float(r2_score(targets, predicted, sample_weight=weights))

    def _warn_of_the_default_range(self) -> None:
        low, high = self._default_range()
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

    def _plain(self, clip: bool) -> BaseEstimator:
        from sklearn import compose, linear_model  # slow to import, and seldom needed

        loss, target = self._fitted_problem.loss, self._range
        if clip and (target is not None or type(loss).mean is not Loss.mean):
            inner, mean = linear_model.LinearRegression(), partial(predicted, loss, target)
            plain = compose.TransformedTargetRegressor(
                inner, func=mean, inverse_func=mean, check_inverse=False
            )
        elif type(loss).mean is Loss.mean:
            plain = inner = self._plain_model(linear_model)
        else:
            plain = inner = linear_model.PoissonRegressor()
        # A fit to an empty table fills in all that scikit-learn expects.
        plain.fit(np.zeros((2, self.n_features_in_)), np.ones(2))
        inner = getattr(plain, "regressor_", inner)
        inner.coef_, inner.intercept_ = self._rows_of_coef()[0].copy(), np.float64(self.intercept_)
        return plain

    def _plain_model(self, linear_model: ModuleType) -> BaseEstimator:
        return linear_model.LinearRegression()


def _largest(targets: Vector) -> float:
    """The largest target that is a number, 1 if none is positive: for fits without noise."""
    found = float(targets[np.isfinite(targets)].max(initial=0.0))
    return found if 0 < found < LARGEST else 1.0


def _unchanged(targets: Vector) -> Vector:
    return targets
