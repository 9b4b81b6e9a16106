"""Support vector machines: linear classification and regression."""

from __future__ import annotations

from dataclasses import field
from types import ModuleType
from typing import Self

from sklearn.base import BaseEstimator

from ..losses import EpsilonInsensitive, Loss
from ..penalties import L2, Penalty
from .classifiers import GLMClassifier
from .docs import estimator
from .regressors import GLMRegressor
from .strengths import inverse_strength


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
