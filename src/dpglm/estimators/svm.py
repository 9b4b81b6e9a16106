"""Support vector machines: linear classification and regression."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ..bounds import Bounds
from ..losses import EpsilonInsensitive, Loss
from ..penalties import L2, Penalty
from ..solvers import Solver
from .base import inverse_strength
from .classifiers import GLMClassifier
from .docs import documented
from .regressors import GLMRegressor


@documented
class LinearSVC(GLMClassifier):
    """Linear support vector classification under differential privacy.

    The objective is mean hinge loss + norm(w)² / (2 C n), that of scikit-learn's ``LinearSVC(loss="hinge")``
    but for the intercept, which is not penalised. More than two classes are fitted one against the rest.

    Parameters
    ----------
    {epsilon}
    {delta}
    {inverse_strength}
    loss : str or Loss
        "hinge", "smoothed_hinge" or an object of `dpglm.losses`. The squared hinge is not offered: its slopes
        have no bound.
    {solver}
    {bounds_of_rows}
    {neighbours}
    {fit_intercept}
    {classes}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coefficients_of_classes}
    {promise}

    Notes
    -----
    {guarantee}

    Examples
    --------
    >>> from dpglm import LinearSVC
    >>> from dpglm.datasets import load_adult
    >>> adult = load_adult()
    >>> model = LinearSVC(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        C: float = 1.0,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        bounds: Bounds | None = None,
        neighbours: str = "replace-one",
        fit_intercept: bool = True,
        classes: ArrayLike | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            loss=loss,
            solver=solver,
            bounds=bounds,
            neighbours=neighbours,
            fit_intercept=fit_intercept,
            classes=classes,
            random_state=random_state,
            verbose=verbose,
        )
        self.C = C

    def _penalty(self, n_samples: int) -> Penalty:
        return L2(inverse_strength(self.C, n_samples))


@documented
class LinearSVR(GLMRegressor):
    """Linear support vector regression under differential privacy.

    The objective is mean epsilon-insensitive loss + norm(w)² / (2 C n), that of scikit-learn's ``LinearSVR``
    but for the intercept, which is not penalised. What scikit-learn calls epsilon is ``tube`` here.

    Parameters
    ----------
    {epsilon}
    {delta}
    {inverse_strength}
    tube : float
        Errors up to this size cost nothing; with 0 the loss is the absolute error.
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
    >>> from dpglm import Bounds, LinearSVR
    >>> x = np.linspace(-1, 1, 5000)[:, None]
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = LinearSVR(epsilon=2.0, bounds=bounds).fit(x, 0.5 * x[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        C: float = 1.0,
        tube: float = 0.0,
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
        self.C = C
        self.tube = tube

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.tube)

    def _penalty(self, n_samples: int) -> Penalty:
        return L2(inverse_strength(self.C, n_samples))

    def _plain_model(self, linear_model: Any) -> Any:
        from sklearn.svm import LinearSVR as Plain  # slow to import, and seldom needed

        return Plain(epsilon=self.tube, C=self.C)
