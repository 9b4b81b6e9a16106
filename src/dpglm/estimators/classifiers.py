"""Classifiers: binary, multinomial, and one-vs-rest."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import field
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .. import losses, strict
from ..arrays import Vector
from ..bounds import Bounds
from ..data.cluster import in_memory
from ..data.columns import RecordColumns
from ..errors import PrivacyWarning
from ..fit import (
    ClassCounting,
    ClassWeights,
    FitTable,
    Outcome,
    TargetMap,
    TargetReader,
    class_set,
    codes_of,
    is_missing,
    labels_of,
    numeric_target,
)
from ..fit.inputs import Labels
from ..fit.readers import lazily
from ..losses import Logistic, Loss, Multinomial
from ..penalties import L1, L2, ElasticNet, Penalty, Separable
from ..plan import Plan
from ..solvers import SOLVERS
from ..solvers.base import positive_count
from .base import PrivateGLM, Targets
from .parameters import estimator, given, inverse_strength, require_share

_KINDS = (str, bytes, Real | np.bool_)
"""Types of labels in an array of objects, within each of which all labels can be compared."""

_MULTI_CLASS = ("auto", "multinomial", "ovr")


@estimator
class GLMClassifier(ClassifierMixin, PrivateGLM):
    """Classifier for any loss of a margin and a label in {-1, 1}, with any penalty.

    More than two classes are fitted one against the rest; the budget pays for all of these fits.

    Parameters
    ----------
    {budget}
    loss : str or Loss
        "logistic", "hinge", "smoothed_hinge" or an object of `dpglm.losses`.
    {penalty}
    {class_weight}
    {classification}
    >>> model = GLMClassifier(epsilon=1.0, loss="smoothed_hinge", classes=[-1, 1]).fit(adult.X, adult.y)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    loss: str | Loss = "logistic"
    classes: ArrayLike | None = None
    class_weight: Mapping[Any, float] | str | None = None

    def _outputs_for(self, n_classes: int) -> int:
        """How many predictions of a record one model has: 1 if classes are fitted one against the rest."""
        return 1

    def _loss(self) -> Loss:
        loss = losses.get(self.loss)
        if loss.kind != "classification" or loss.outputs > 1:
            raise ValueError(
                f"{type(self).__name__} needs a loss of one prediction and a label, {loss.name} is another"
            )
        return loss

    def _bounds(self) -> Bounds:
        bounds = super()._bounds()
        if bounds.target is not None:
            raise ValueError(f"bounds.target is the range of a regression, {type(self).__name__} has labels")
        return bounds

    def plan(
        self, n_samples: int, n_features: int, n_classes: int | None = None, *, resident: bool = True
    ) -> Plan:
        """The whole plan of a fit to a table of this size, without any data.

        Parameters
        ----------
        n_samples, n_features : int
            With ``neighbours="add-remove"`` the number of records is a guess: the plan of the fit follows
            from a released count. The price does not depend on it.
        n_classes : int, optional
            Number of classes; by default that of ``classes``, or 2.
        resident : bool
            Whether the table will be in memory; False for one that is read anew in every pass, as a `Stream`.
        """
        targets = self._targets(n_classes)
        return self._recipe(n_samples, n_features, targets, resident=resident).planned().plan

    def _targets(self, n_classes: int | None = None) -> Targets:
        declared = None if self.classes is None else class_set(self.classes)
        if n_classes is None:
            n_classes = 2 if declared is None else len(declared)
        positive_count(n_classes=n_classes)
        _require_two_for_offsets(n_classes, self._bounds())
        return self._targets_of(n_classes, declared)

    def _targets_of(self, n_classes: int, classes: Labels | None, origin: str = "declared") -> Targets:
        outputs = self._outputs_for(n_classes)
        if outputs > 1:
            maps: tuple[TargetMap, ...] = (_unchanged,)
        else:
            maps = tuple(partial(_against_the_rest, k) for k in ([1] if n_classes <= 2 else range(n_classes)))
        weights = ClassWeights.of(self.class_weight, n_classes, classes)
        return Targets(
            Multinomial(outputs) if outputs > 1 else self._loss(),
            maps,
            () if weights is None else (weights,),
            () if weights is None or weights.factors is not None else (ClassCounting(n_classes),),
            (("labels", f"{n_classes} classes, {origin}"),),
        )

    def _target_reader(self) -> TargetReader:
        return partial(labels_of, classes=None if self.classes is None else class_set(self.classes))

    def _read_targets(self, table: FitTable, bounds: Bounds) -> tuple[FitTable, Targets]:
        if table.has_targets:
            classes = self._label_set(table.targets)
            table = table.with_targets(codes_of(table.targets, classes))
        elif self.classes is None:
            raise ValueError(
                f"classes must be declared for a {table.kind}: to find them would take a pass over all "
                "records, and reveal which labels occur"
            )
        else:
            classes = self._label_set(class_set(self.classes))
            table = table.with_codes(partial(codes_among, classes))
        _require_two_for_offsets(len(classes), bounds)
        self.classes_ = classes
        origin = "read off y" if self.classes is None else "declared"
        return table, self._targets_of(len(classes), classes, origin)

    def _keep_coefficients(self, outcome: Outcome) -> None:
        outputs = outcome.problem.outputs
        vectors = [w for result in outcome.results for w in result.w.reshape(-1, outputs).T]
        split = [self._split(w, outcome.plan.n_features) for w in vectors]
        self.coef_ = np.array([coefficients for coefficients, _ in split])
        self.intercept_ = np.array([intercept for _, intercept in split])
        self.n_iter_ = np.array([result.steps for result in outcome.results])

    @np.errstate(all="ignore")
    def _label_set(self, labels: Labels) -> Labels:
        if self.classes is not None:
            classes = class_set(self.classes)
        else:
            labels = _checked(labels[[not is_missing(label) for label in labels]])
            warnings.warn(
                "classes is not given: the labels that occur in y are taken as public",
                PrivacyWarning,
                stacklevel=3,
            )
            classes = np.unique(labels)
        if len(classes) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got 1 class")
        return classes

    @lazily
    def decision_function(self, X: object, offset: object = None) -> Vector:
        """Margins of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        margins = self._margins(X, RecordColumns(offset=offset))
        return margins[:, 0] if len(self.classes_) == 2 else margins

    @lazily
    def predict(self, X: object, offset: object = None) -> Labels:
        """The most likely class of each row, with the offset that is added to its margin."""
        margins = self.decision_function(X, offset=offset)
        chosen = (margins > 0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
        predicted: Labels = self.classes_[chosen]
        return predicted

    def _has_probabilities(self) -> bool:
        return type(losses.get(self.loss)) is Logistic  # another loss has other probabilities

    @available_if(_has_probabilities)
    @lazily
    @np.errstate(all="ignore")
    def predict_proba(self, X: object, offset: object = None) -> Vector:
        """Probability of each class: for more than two, softmax or the one-vs-rest ones normalised."""
        margins = self.decision_function(X, offset=offset)
        if self._fitted_problem.outputs > 1:
            shares: Vector = softmax(margins, axis=1)
            return shares
        positive: Vector = expit(margins)
        if margins.ndim == 1:
            return np.column_stack([1 - positive, positive])
        total = positive.sum(axis=1, keepdims=True)
        return np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / margins.shape[1])

    def score(
        self, X: object, y: object = None, sample_weight: ArrayLike | None = None, offset: object = None
    ) -> float:
        """Share of the rows whose label is predicted; not private. Labels of no class count as wrong."""
        check_is_fitted(self)
        table, codes = self._read_again(X, y, partial(codes_among, self.classes_))
        predicted = codes_of(in_memory(self.predict(table, offset=offset)), self.classes_)
        weights = None if sample_weight is None else numeric_target(sample_weight, "sample_weight")
        check_consistent_length(predicted, codes, weights)
        return float(np.average(predicted == codes, weights=weights))

    def _plain(self, clip: bool) -> BaseEstimator:
        from sklearn import linear_model  # slow to import, and seldom needed
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        plain = linear_model.LogisticRegression() if self._has_probabilities() else LinearSVC()
        several = len(self.classes_) > 2 and self._fitted_problem.outputs == 1
        whole = OneVsRestClassifier(plain) if several else plain
        # A fit to an empty table, one row for each class, fills in all that scikit-learn expects.
        whole.fit(np.zeros((len(self.classes_), self.n_features_in_)), self.classes_)
        if self._fitted_problem.outputs > 1:
            whole.coef_, whole.intercept_ = self._rows_of_coef().copy(), self.intercept_.copy()
            return whole
        for one, w, b in zip(
            whole.estimators_ if several else [whole], self._rows_of_coef(), self.intercept_, strict=True
        ):
            one.coef_, one.intercept_ = w[None, :].copy(), np.array([b])
        return whole


def _require_two_for_offsets(n_classes: int, bounds: Bounds) -> None:
    if n_classes > 2 and bounds.offset is not None:
        raise ValueError("an offset is for two classes: with more, it would be that of each of them")


def codes_among(classes: Labels, targets: object) -> Vector:
    """Codes of the labels of a block."""
    return codes_of(labels_of(targets, classes), classes)


def _unchanged(codes: Vector) -> Vector:
    return codes


def _against_the_rest(k: int, codes: Vector) -> Vector:
    return np.where(codes == k, 1.0, -1.0)


def _checked(labels: Labels) -> Labels:
    """Labels of one kind, in an array of that type; objects of other types may do anything if asked."""
    if labels.dtype == object:
        kinds = {next((kind for kind in _KINDS if issubclass(type(label), kind)), None) for label in labels}
        if len(kinds) != 1 or None in kinds:
            raise ValueError("the labels in y have no order: declare classes")
        labels = np.array(labels.tolist())  # the type that NumPy finds for all of them
    check_classification_targets(labels)
    return labels


@estimator
class LogisticRegression(GLMClassifier):
    """Logistic regression under differential privacy.

    The objective is mean logistic loss + penalty. More than two classes have one multinomial model, whose
    privacy cost does not depend on their number.

    Parameters
    ----------
    {budget}
    {inverse_strength}
    penalty : "l2", "l1", "elasticnet", Penalty or None
        The kind of penalty, of strength 1 / (C n); or an object of `dpglm.penalties` to be used instead of C;
        or None for no penalty.
    l1_ratio : float
        Share of L1 in "elasticnet", from 0 to 1.
    multi_class : "auto", "multinomial" or "ovr"
        How more than two classes are fitted: as one softmax model; or one against the rest, where the budget
        pays for a fit of each class. "auto" takes the former if the solver and the penalty serve it:
        `GradientDescent` and `PreconditionedDescent`, with L1, L2, both, a box or no penalty.
    {class_weight}
    {classification}
    >>> model = LogisticRegression(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.83)
    True
    """

    loss: str | Loss = field(default="logistic", init=False)
    C: float = 1.0
    penalty: str | Penalty | None = "l2"  # type: ignore[assignment]  # or the kind of penalty
    l1_ratio: float = 0.5
    multi_class: str = "auto"

    def _outputs_for(self, n_classes: int) -> int:
        strict.one_of("multi_class", self.multi_class, _MULTI_CLASS)
        wanted = self.multi_class == "multinomial" or (self.multi_class == "auto" and self._can_all_at_once())
        return n_classes if wanted and n_classes > 2 else 1

    def _can_all_at_once(self) -> bool:
        """Whether solver and penalty serve several predictions a record."""
        solver = SOLVERS.get(self.solver) if isinstance(self.solver, str) else self.solver
        is_auto = isinstance(self.solver, str) and self.solver == "auto"
        served = is_auto or getattr(solver, "takes_outputs", False)
        return served and (self.penalty is None or isinstance(self.penalty, str | Separable))

    def _penalty(self, n_samples: int) -> Penalty:
        if not isinstance(self.penalty, str):
            return given(self.penalty)
        kinds = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}
        if self.penalty not in kinds:
            raise ValueError(
                f"penalty must be one of {list(kinds)}, an object of dpglm.penalties or None, got "
                f"{self.penalty!r}"
            )
        require_share("l1_ratio", self.l1_ratio)
        strength, l1 = inverse_strength(self.C, n_samples), kinds[self.penalty]
        if l1 == 0:
            return L2(strength)
        return L1(strength) if l1 == 1 else ElasticNet(l1=l1 * strength, l2=(1 - l1) * strength)
