"""Private choice among models: one along a fit, or the best of a random number of tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import strict
from ..arrays import Vector
from ..bounds import Bounds
from ..data.columns import NAMES, RecordColumns
from ..errors import UnsupportedProblem
from ..fit.inputs import Labels
from ..plan import Plan
from ..problem import Problem
from ..solvers.base import AnySolver, Choice
from ..solvers.model_selection import Candidate, IterateChoice, RandomSearch
from .base import PrivateGLM
from .mixins import Reported
from .parameters import documented
from .pipeline import PrivatePipeline
from .sklearn_checks import all_or_nothing


def _has(name: str) -> Any:
    """Available where the fitted model has it, or before the fit the estimator."""

    def has(self: PrivateChoice) -> bool:
        getattr(self.best_estimator_ if hasattr(self, "best_estimator_") else self._template(), name)
        return True

    return available_if(has)


class PrivateChoice(Reported, MetaEstimatorMixin, BaseEstimator):
    """Common part: ``best_estimator_`` is the chosen model, and everything is asked of it."""

    estimator: Any
    best_estimator_: Any

    def _template(self) -> Any:
        """An estimator that says what kind of model this is."""
        glm_of(self.estimator)
        return self.estimator

    def _carrier(self) -> Any:
        """An unfitted copy of the template with the solver that makes the choice."""
        raise NotImplementedError

    def plan(self, n_samples: int, *size: int, **more: Any) -> Plan:
        """The whole plan of a fit to a table of this size, without any data, as ``plan`` of the estimator."""
        plan: Plan = self._carrier().plan(n_samples, *size, **more)
        return plan

    def _fitted(self, X: object, y: object, beside: RecordColumns) -> Any:
        """The carrier, fitted."""
        model = self._carrier()
        names = zip(NAMES[1:], beside[1:], strict=True)
        model.fit(X, y, **{name: part for name, part in names if part is not None})
        for name in ("n_features_in_", "feature_names_in_", "classes_", "plan_", "privacy_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            elif hasattr(self, name):
                delattr(self, name)
        return model

    @_has("predict")
    def predict(self, X: object, **offsets: object) -> Labels:
        """The prediction of the chosen model for each row; offsets are those that its ``predict`` takes."""
        check_is_fitted(self)
        predicted: Labels = self.best_estimator_.predict(X, **offsets)
        return predicted

    @_has("decision_function")
    def decision_function(self, X: object, **offsets: object) -> Vector:
        """Margins of the chosen model."""
        check_is_fitted(self)
        margins: Vector = self.best_estimator_.decision_function(X, **offsets)
        return margins

    @_has("predict_proba")
    def predict_proba(self, X: object, **offsets: object) -> Vector:
        """Probability of each class by the chosen model."""
        check_is_fitted(self)
        probabilities: Vector = self.best_estimator_.predict_proba(X, **offsets)
        return probabilities

    def score(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of a classifier, R² of a regressor; **not private**."""
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.best_estimator_.score(X, y, **weights))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self._template().__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def glm_of(estimator: object) -> PrivateGLM:
    """The estimator of dpglm itself, or the one behind a schema."""
    inner = estimator.estimator if isinstance(estimator, PrivatePipeline) else estimator
    if not isinstance(inner, PrivateGLM):
        raise ValueError(f"estimator must be one of dpglm, got a {type(inner).__name__}")
    return inner


def with_params(estimator: Any, **values: object) -> Any:
    """A copy of an estimator of dpglm, or of a schema and one, with other parameters of the estimator."""
    copy = clone(estimator)
    glm_of(copy).set_params(**values)
    if getattr(glm_of(copy), "class_weight", None) is not None:
        raise UnsupportedProblem("a search or a choice among models takes no class_weight: fit the estimator")
    return copy


def choices_of(model: object) -> list[Choice | None]:
    """What a fitted carrier has chosen, for each of its fits."""
    fitted = model.estimator_ if isinstance(model, PrivatePipeline) else model
    found: list[Choice | None] = fitted._chosen  # type: ignore[attr-defined]
    return found


def with_solver(model: Any, solver: str | AnySolver) -> Any:
    """The fitted carrier with the solver that its user gave."""
    for holder in (model, getattr(model, "estimator", None), getattr(model, "estimator_", None)):
        if isinstance(holder, PrivateGLM):
            holder.solver = solver
    return model


@documented
class PrivatePath(PrivateChoice):
    """The model along one private fit that has the least loss.

    A fit by most solvers passes many models: its iterates, a ridge path, and sparse models with some of its
    features. All of them follow from what is released, so they cost nothing more. One of them is chosen by
    its loss, by the exponential mechanism: the whole fit, unless the loss of another is clearly less.

    The loss is that on rows which are held out by their positions: a record is either in the fit or held
    out, so it pays for one of both, and fit and choice each have the whole budget. Where the solver releases
    a Gram matrix, as the default does for narrow tables, no row is held out. The loss is that on all rows,
    corrected for what the whole fit gains on its own rows alone, and the choice takes 1 to 5 % of the budget.
    If a choice would take more rows or more of the budget, the whole fit is returned.

    Parameters
    ----------
    estimator : estimator of dpglm
        Or a schema and one, by `make_private_pipeline`. Its epsilon is that of the whole.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 5 %, as much as a good choice needs, or none
        if there is a Gram matrix.
    budget_share : float, optional
        Share of the budget, in squared mu, for a choice on all rows, instead of a share of the rows.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen model.
    best_params_ : dict or list of dict
        Which model it is; one for each class where there are more than two.
    {chosen}

    Examples
    --------
    >>> from dpglm import LogisticRegression, PrivatePath
    >>> from dpglm.datasets import load_adult
    >>> adult = load_adult()
    >>> model = PrivatePath(LogisticRegression(epsilon=1.0, classes=[-1, 1])).fit(adult.X, adult.y)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.83)
    True
    """

    def __init__(self, estimator: Any, share: float | None = None, budget_share: float | None = None) -> None:
        self.estimator = estimator
        self.share = share
        self.budget_share = budget_share

    @all_or_nothing
    def fit(
        self, X: object, y: object = None, sample_weight: object = None, offset: object = None,
        exposure: object = None, units: object = None,
    ) -> Self:  # fmt: skip
        """Fit to private records, and choose; all that is given is what ``fit`` of the estimator takes."""
        model = self._fitted(
            X, y, RecordColumns(weight=sample_weight, offset=offset, exposure=exposure, unit=units)
        )
        found = [{"model": "the whole fit" if one is None else one.name} for one in choices_of(model)]
        self.best_params_ = found[0] if len(found) == 1 else found
        self.best_estimator_ = with_solver(model, glm_of(self.estimator).solver)
        return self

    def _carrier(self) -> Any:
        along = IterateChoice(glm_of(self.estimator).solver, self.share, self.budget_share)
        return with_params(self.estimator, solver=along)


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
        carrier = self._fitted(
            X, y, RecordColumns(weight=sample_weight, offset=offset, exposure=exposure, unit=units)
        )
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
        glm_of(carrier).solver = RandomSearch(candidates, self.runs, self.law, self.share)
        return carrier

    def _listed(self) -> tuple[list[Any], list[dict[str, Any]]]:
        """The candidates with the budget of the search, and what sets each of them apart."""
        shared = {"epsilon": self.epsilon, "delta": self.delta}
        base = glm_of(self.estimator)
        grids = [self.candidates] if isinstance(self.candidates, Mapping) else self.candidates
        if not isinstance(grids, list | tuple) or not grids or self.candidates == {}:
            raise strict.wrong("candidates", self.candidates, f"{_CANDIDATES}, with at least one candidate")
        if all(isinstance(each, Mapping) for each in grids):
            params = _grid(grids)
            models = [with_params(self.estimator, **each, **shared) for each in params]
        elif all(isinstance(each, PrivateGLM | PrivatePipeline) for each in grids):
            models = [with_params(each, **shared) for each in grids]
            params = [{"estimator": each} for each in grids]
        else:
            raise strict.wrong("candidates", self.candidates, _CANDIDATES)
        for model in map(glm_of, models):
            _require_alike(model, base)
        return models, params


def _grid(grids: Sequence[Any]) -> list[dict[str, Any]]:
    """All combinations of the parameters of grids."""
    from sklearn.model_selection import ParameterGrid  # slow to import

    try:
        params: list[dict[str, Any]] = list(ParameterGrid(grids))
    except TypeError as error:  # it says which parameter lacks a list
        raise ValueError(f"candidates must be {_CANDIDATES}: {error}") from None
    own = sorted({name for each in params for name in each} & set(_SHARED))
    if own:
        raise ValueError(f"candidates share {own}: set them in the search or its estimator")
    return params


def _require_alike(model: PrivateGLM, base: PrivateGLM) -> None:
    """Refuse a candidate whose records or targets are not those of the estimator."""
    if is_classifier(model) != is_classifier(base):
        raise ValueError("candidates must all be classifiers, or all be regressors")
    differ = [n for n in _SHARED[2:] if repr(getattr(model, n, None)) != repr(getattr(base, n, None))]
    if differ:
        raise ValueError(f"candidates must have the {differ} of the estimator")


def _problem_beside(model: PrivateGLM, carrier: PrivateGLM) -> Callable[[int, int], Problem]:
    """The problem of a model for a table of a size, with the bounds of weights that its carrier was given."""

    def problem(n_samples: int, n_features: int) -> Problem:
        return _problem_of_one(model, n_samples, n_features, carrier)

    return problem


def _problem_of_one(model: PrivateGLM, n_samples: int, n_features: int, carrier: PrivateGLM) -> Problem:
    """The problem of one fit of a search, which fits more than two classes one against the rest."""
    return model._problem(n_samples, n_features, _bounds_beside(model, carrier), n_classes=2)


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
    problem = _problem_of_one(best, plan.n_records, plan.n_features, learnt)
    best._fitted_problem = problem
    facts = {"loss": repr(problem.loss), "penalty": repr(problem.penalty)}
    best.privacy_ = replace(learnt.privacy_, public={**learnt.privacy_.public, **facts})
    if not isinstance(fitted, PrivatePipeline):
        return best
    fitted.estimator, fitted.estimator_ = glm_of(model), best
    fitted.privacy_ = replace(fitted.privacy_, public={**fitted.privacy_.public, **facts})
    return fitted
