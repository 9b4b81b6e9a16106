"""Standard errors, intervals and tests of estimators, for fits whose solver releases a covariance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..arrays import Vector
from ..errors import NotReleased
from ..inference import INTERCEPT, Coefficients, Summary, WaldTest
from ..losses import LOSSES
from ..penalties import Zero
from ..plan import Plan
from ..privacy import Guarantee
from ..problem import Problem
from ..solvers import Result
from ..solvers.base import Uncertainty
from ..solvers.newton import serves


def uncertainty_of(results: Sequence[Result]) -> tuple[Uncertainty, ...] | None:
    """What the fits of all classes state of their errors, if they do."""
    stated = tuple(result.uncertainty for result in results if result.uncertainty is not None)
    return stated if len(stated) == len(results) else None


class Inference:
    """The part of an estimator that states how far its coefficients may be off.

    Nothing here reads a record. Only `Newton`, without a penalty, releases what is needed; fits by other
    solvers refuse with `NotReleased`, which is an AttributeError, so that ``hasattr`` works.
    """

    _fitted_problem: Problem
    _uncertainty: tuple[Uncertainty, ...] | None
    plan_: Plan
    privacy_: Guarantee
    n_features_in_: int
    intercept_: Any

    @abstractmethod
    def _rows_of_coef(self) -> Vector: ...

    @property
    def covariance_(self) -> Vector:
        """Covariance of the coefficients: features first, then the intercept if there is one."""
        return _stacked([block.covariance for block in self._blocks("covariance_")])

    @property
    def privacy_covariance_(self) -> Vector:
        """The part of ``covariance_`` that noise causes."""
        return _stacked([block.privacy for block in self._blocks("privacy_covariance_")])

    @property
    def standard_errors_(self) -> Vector:
        """Standard errors of the coefficients, from sampling and noise; infinite if not determined."""
        return _stacked([block.standard_errors for block in self._blocks("standard_errors_")])

    @property
    def determined_(self) -> bool | Vector:
        """Whether noise left enough of the records to state intervals; of each class if there are several."""
        found = [block.determined for block in self._blocks("determined_")]
        return found[0] if len(found) == 1 else np.array(found)

    def confidence_intervals(self, level: float = 0.95) -> Vector:
        """Confidence intervals of the coefficients; (-inf, inf) if the fit is not determined.

        Parameters
        ----------
        level : float
            Probability that an interval covers what its coefficient estimates.

        Returns
        -------
        array of shape (d, 2) or (n_classes, d, 2)
            Lower and upper ends: features first, then the intercept if there is one.
        """
        blocks = self._blocks("confidence_intervals()")
        return _stacked([block.intervals(level) for block in blocks])

    def wald_test(self, hypothesis: object, values: ArrayLike | None = None) -> WaldTest | list[WaldTest]:
        """Wald's test that coefficients are 0, or of other linear conditions.

        Parameters
        ----------
        hypothesis : str, int, list of these, or array of shape (k, d)
            A feature by name or index, or several, which are tested jointly; or a matrix R with a column for
            each coefficient, for the conditions R w = values. The intercept is the last coefficient, and has
            the name "intercept".
        values : array of shape (k,), optional
            What the conditions state; by default 0.

        Returns
        -------
        WaldTest or list of WaldTest
            With more than two classes one test for each.
        """
        tests = [block.wald_test(hypothesis, values) for block in self._blocks("wald_test()")]
        return replace(tests[0], outcome="") if len(tests) == 1 else tests

    def summary(self, level: float = 0.95) -> Summary:
        """The table of coefficients with standard errors, p-values and intervals, and the promise.

        Parameters
        ----------
        level : float
            Probability that an interval covers what its coefficient estimates.
        """
        blocks = self._blocks("summary()")
        plan = self.plan_
        return Summary(
            type(self).__name__, plan.solver, plan.n_records, plan.n_features, blocks, self.privacy_, level
        )

    def deviance(self) -> tuple[float, float] | list[tuple[float, float]]:
        """The deviance and the standard error of its noise, if the fit paid for them.

        With more than two classes one pair for each.
        """
        found = [block.deviance for block in self._blocks("deviance()")]
        paid = [pair for pair in found if pair is not None]
        if len(paid) < len(found):
            raise NotReleased(
                "deviance is a statistic of the records that nobody paid for in this fit: "
                "solver=Newton(deviance_share=0.05) spends a twentieth of the budget on it"
            )
        return paid[0] if len(paid) == 1 else paid

    def _blocks(self, asked: str) -> tuple[Coefficients, ...]:
        """Coefficients with their errors on the scale of the columns; one block for each fit."""
        check_is_fitted(self)
        stated, problem = getattr(self, "_uncertainty", None), self._fitted_problem
        if stated is None:
            raise NotReleased(
                f"this {type(self).__name__} has no {asked}: {self.plan_.solver} with penalty "
                f"{problem.penalty!r} does not release how far coefficients may be off. {_way_out(problem)}"
            )
        names = tuple(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))
        rows, intercepts = self._rows_of_coef(), np.ravel(self.intercept_)
        scale = problem.join(np.ones(len(names)), problem.constant(self.n_features_in_))
        if problem.fit_intercept:
            names, rows = (*names, INTERCEPT), np.column_stack([rows, intercepts])
        scales = np.outer(scale, scale)
        return tuple(
            Coefficients(
                names, values, scales * one.covariance, scales * one.privacy, one.determined, one.reason,
                one.estimand, one.deviance, outcome,
            )
            for values, one, outcome in zip(rows, stated, self._outcomes(), strict=True)
        )  # fmt: skip

    def _outcomes(self) -> list[str]:
        """What the coefficients of each fit are for."""
        classes = getattr(self, "classes_", None)
        if classes is None:
            return [""]
        if len(classes) == 2:
            return [f"{classes[1]} against {classes[0]}"]
        return [f"{label} against the rest" for label in classes]


def _way_out(problem: Problem) -> str:
    """What releases how far the coefficients of a problem may be off."""
    if serves(problem.loss, Zero()):
        return (
            "solver=Newton() of dpglm.solvers does, without a penalty: "
            'C=float("inf"), alpha=0, penalty=None or LinearRegression'
        )
    served = sorted({loss.name for loss in LOSSES if serves(loss(), Zero())})
    return f"Newton of dpglm.solvers does, but not for the {problem.loss.name} loss: for {', '.join(served)}"


def _stacked(arrays: Sequence[Vector]) -> Vector:
    """The only array, or all of them along a new first axis."""
    return arrays[0] if len(arrays) == 1 else np.stack(arrays)
