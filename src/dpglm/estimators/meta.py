"""What estimators that choose among models share: they fit a copy of an estimator, and speak for it."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..arrays import Vector
from ..data.columns import RecordColumns
from ..errors import UnsupportedProblem
from ..fit.inputs import Labels
from ..plan import Plan
from ..solvers.base import AnySolver, Choice
from .base import PrivateGLM
from .mixins import Reported
from .pipeline import PrivatePipeline


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
        names = zip(("sample_weight", "offset", "exposure", "units"), beside[1:], strict=True)
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
