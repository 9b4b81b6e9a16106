"""A search among candidates with a random number of tries, paid for as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

from sklearn.base import is_classifier

from .. import strict
from ..bounds import Bounds
from ..data.columns import RecordColumns
from ..problem import Problem
from ..solvers.model_selection import Candidate, Searched
from .base import PrivateGLM
from .docs import documented
from .meta import PrivateChoice, choices_of, glm_of, with_params, with_solver
from .pipeline import PrivatePipeline
from .watched import all_or_nothing

_SHARED = ("epsilon", "delta", "neighbours", "classes", "ledger", "random_state", "verbose")
"""What a candidate cannot have for itself."""

_CANDIDATES = "a grid of parameters, a list of them, or a list of estimators of dpglm"


@documented
class PrivateSearch(PrivateChoice):
    """The best of a random number of tries among candidates, each tried with nearly the whole budget.

    A secret number of times a candidate is drawn, fitted to some of the rows and scored, with noise, on the
    rows that are held out by their positions; a record pays for one of both. Only the best try is put out.
    The price of the search hardly grows with the number of tries: ten tries leave each of them about three
    quarters of the budget of a single fit, an even split a third.

    Parameters
    ----------
    estimator : estimator of dpglm
        Or a schema and one, by `make_private_pipeline`.
    candidates : dict, list of dict, or list of estimators
        A grid of parameters of the estimator, as for scikit-learn's `GridSearchCV`; or the estimators
        themselves. They share bounds, intercept, classes and relation. Losses may differ: then labels are
        scored by errors.
    runs : float
        How many tries there are on average, from 2 on.
    epsilon, delta : float
        The budget of the whole search; that of the estimator is not used. Delta is 1/n² by default.
    law : {"auto", "logarithmic", "geometric", "poisson"}
        The law of the number of tries; "auto" takes, by public numbers, the one that leaves most to a try.
        A Poisson number may be 0: then the model is the public starting point.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 10 %, as much as a good choice needs.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen model.
    best_params_ : dict, or list of dict
        Its parameters; one for each class where there are more than two, which are searched one by one.
    best_index_ : int, or list of int
        Its place among the candidates.
    best_score_ : float, or list of float
        Its released score: minus the mean loss on the held-out rows, with noise.
    {chosen}
    How many tries there were is secret and not stored. Who can measure the running time can guess it; the
    promise does not cover running time.

    Examples
    --------
    >>> from dpglm import LogisticRegression, PrivateSearch
    >>> from dpglm.datasets import load_adult
    >>> adult = load_adult()
    >>> search = PrivateSearch(LogisticRegression(classes=[-1, 1]), {"C": [1e-4, 1e-2, 1.0]}, runs=4)
    >>> bool(search.fit(adult.X, adult.y).score(adult.X_test, adult.y_test) > 0.74)
    True
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        runs: float = 10,
        epsilon: float = 1.0,
        delta: float | None = None,
        law: str = "auto",
        share: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.runs = runs
        self.epsilon = epsilon
        self.delta = delta
        self.law = law
        self.share = share

    @all_or_nothing
    def fit(
        self, X: object, y: object = None, sample_weight: object = None, offset: object = None,
        exposure: object = None, units: object = None,
    ) -> Self:  # fmt: skip
        """Search with private records; all that is given is what ``fit`` of the estimator takes."""
        models, params = self._listed()
        carrier = self._fitted(X, y, RecordColumns(None, sample_weight, offset, exposure, units))
        found = [(0, None) if one is None else (one.index, one.score) for one in choices_of(carrier)]
        chosen = [
            {"best_index_": k, "best_params_": params[k], "best_score_": None if loss is None else -loss}
            for k, loss in found
        ]
        for name in chosen[0]:
            values = [one[name] for one in chosen]
            setattr(self, name, values[0] if len(values) == 1 else values)
        self.best_estimator_ = _as(models[found[0][0]], carrier)
        self.privacy_ = self.best_estimator_.privacy_
        return self

    def _carrier(self) -> Any:
        models, _ = self._listed()
        carrier = with_params(models[0])
        candidates = tuple(
            Candidate(_problem_beside(glm_of(_prepared(model)), glm_of(carrier)), glm_of(model).solver)
            for model in models
        )
        glm_of(carrier).solver = Searched(candidates, self.runs, self.law, self.share)
        return carrier

    def _listed(self) -> tuple[list[Any], list[dict[str, Any]]]:
        """The candidates with the budget of the search, and what sets each of them apart."""
        shared = {"epsilon": self.epsilon, "delta": self.delta}
        base = glm_of(self.estimator)
        grids = [self.candidates] if isinstance(self.candidates, Mapping) else self.candidates
        if not isinstance(grids, list | tuple) or not grids or self.candidates == {}:
            raise strict.wrong("candidates", self.candidates, f"{_CANDIDATES}, with at least one candidate")
        if all(isinstance(one, Mapping) for one in grids):
            from sklearn.model_selection import ParameterGrid  # slow to import

            try:
                params: list[dict[str, Any]] = list(ParameterGrid(grids))
            except TypeError as error:  # it says which parameter lacks a list
                raise ValueError(f"candidates must be {_CANDIDATES}: {error}") from None
            own = sorted({name for one in params for name in one} & set(_SHARED))
            if own:
                raise ValueError(f"candidates share {own}: set them in the search or its estimator")
            models = [with_params(self.estimator, **one, **shared) for one in params]
        else:
            if not all(isinstance(one, PrivateGLM | PrivatePipeline) for one in grids):
                raise strict.wrong("candidates", self.candidates, _CANDIDATES)
            models = [with_params(one, **shared) for one in grids]
            params = [{"estimator": one} for one in grids]
        for model in map(glm_of, models):
            if is_classifier(model) != is_classifier(base):
                raise ValueError("candidates must all be classifiers, or all be regressors")
            differ = [n for n in _SHARED[2:] if repr(getattr(model, n, None)) != repr(getattr(base, n, None))]
            if differ:
                raise ValueError(f"candidates must have the {differ} of the estimator")
        return models, params


def _problem_beside(model: PrivateGLM, carrier: PrivateGLM) -> Callable[[int, int], Problem]:
    """The problem of a model for a table of a size, with the bounds of weights that its carrier was given."""

    def problem(n_samples: int, n_features: int) -> Problem:
        return model._problem(n_samples, n_features, _bounds_beside(model, carrier))

    return problem


def _bounds_beside(model: PrivateGLM, carrier: PrivateGLM) -> Bounds:
    """The bounds of a model, with those of weights, offsets and units that its carrier fits with."""
    fitted = getattr(carrier, "_fitted_bounds", model._bounds())
    return replace(
        model._bounds(), weight=fitted.weight, offset=fitted.offset, rows_per_unit=fitted.rows_per_unit
    )


def _prepared(model: Any) -> Any:
    """The estimator with all facts that its problem needs."""
    return model._prepared() if isinstance(model, PrivatePipeline) else model


def _as(model: Any, carrier: Any) -> Any:
    """The chosen candidate with what the carrier has learnt."""
    fitted = with_solver(carrier, glm_of(model).solver)
    own, learnt = glm_of(copy(model)), fitted.estimator_ if isinstance(fitted, PrivatePipeline) else fitted
    if isinstance(fitted, PrivatePipeline):
        own = _prepared(model)
    best: PrivateGLM = copy(own)
    settings = own.get_params(deep=False)
    for name, value in vars(learnt).items():
        if name not in settings:
            setattr(best, name, value)
    plan = learnt.plan_
    problem = best._problem(plan.n_records, plan.n_features, _bounds_beside(best, learnt))
    best._fitted_problem = problem
    facts = {"loss": repr(problem.loss), "penalty": repr(problem.penalty)}
    best.privacy_ = replace(learnt.privacy_, public={**learnt.privacy_.public, **facts})
    if not isinstance(fitted, PrivatePipeline):
        return best
    fitted.estimator, fitted.estimator_ = glm_of(model), best
    fitted.privacy_ = replace(fitted.privacy_, public={**fitted.privacy_.public, **facts})
    return fitted
