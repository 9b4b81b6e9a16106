"""Models of raw tables as JSON: readable, checked when they are read, and without code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from .. import strict
from ..arrays import Vector
from ..fit import budget_of
from ..plan import Plan
from ..privacy import Guarantee, Neighbours
from ..schema import Schema
from ..schema.learning import without_facts
from ..solvers.base import Uncertainty
from .classifiers import LogisticRegression
from .families import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    NegativeBinomialRegressor,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)
from .pipeline import PrivatePipeline

ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        LogisticRegression, LinearSVC, LinearRegression, Ridge, Lasso, ElasticNet, LinearSVR,
        PoissonRegressor, GammaRegressor, TweedieRegressor, NegativeBinomialRegressor, HuberRegressor,
        QuantileRegressor,
    )
}  # fmt: skip
"""Estimators whose models can be stored."""

FORMAT, VERSION = "dpglm model", 2

_PARAMETERS = (
    "epsilon", "delta", "neighbours", "fit_intercept", "C", "alpha", "l1_ratio", "penalty", "multi_class",
    "power", "link", "dispersion", "threshold", "quantile", "width", "positive", "means",
)  # fmt: skip
_FIELDS = (
    "format", "version", "estimator", "parameters", "schema", "learnt", "coef", "intercept", "uncertainty",
    "plan",
    "privacy", "digest",
)  # fmt: skip


def model_to_json(model: PrivatePipeline) -> str:
    """A fitted model as JSON text: schema, coefficients, what their errors are, plan and promise, sealed."""
    check_is_fitted(model)
    fitted = model.estimator_
    name = type(fitted).__name__
    given = {key: value for key, value in fitted.get_params().items() if key in _PARAMETERS}
    if ESTIMATORS.get(name) is not type(fitted) or not isinstance(given.get("penalty"), str | None):
        raise ValueError(f"a {name} with settings of its own cannot be stored: {', '.join(ESTIMATORS)} can")
    values = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": name,
        "parameters": strict.plain("parameters", given),
        "schema": model.schema.to_toml(),
        "learnt": model.schema_.to_toml() if model.schema.pending else None,
        "coef": fitted._rows_of_coef().tolist(),
        "intercept": np.ravel(fitted.intercept_).tolist(),
        "uncertainty": _errors_to_json(fitted._uncertainty),
        "plan": model.plan_.to_dict(),
        "privacy": model.privacy_.to_dict(),
    }
    return strict.to_json(strict.sealed(values))


def model_from_json(text: str) -> PrivatePipeline:
    """The fitted model of a JSON text; one that was edited, or contradicts itself, is refused."""
    try:
        values = strict.from_json(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError("this is no model of dpglm")
    if values.get("version") not in (1, VERSION):
        raise ValueError(f"this model has version {values.get('version')!r}, which this dpglm cannot read")
    fields = set(_FIELDS) - ({"learnt", "uncertainty"} if values["version"] == 1 else set())
    values = strict.mapping("model", values, fields)
    strict.require_sealed("the model", values)
    try:
        return _model_of(values)
    except (TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the model contradicts itself: {error}") from None


def _model_of(values: dict[str, Any]) -> PrivatePipeline:
    """The fitted model of values that are sealed."""
    kind = ESTIMATORS[strict.one_of("estimator", values["estimator"], ESTIMATORS)]
    stored_names = [name for name in kind().get_params(deep=False) if name in _PARAMETERS]
    given = strict.mapping("parameters", values["parameters"])
    if not set(given) <= set(stored_names):
        raise strict.wrong("parameters", given, f"a mapping with keys among {stored_names}")
    numbers = {key: value if key == "penalty" else strict.numeric(value) for key, value in given.items()}
    model = PrivatePipeline(Schema.from_toml(strict.text("schema", values["schema"])), kind(**numbers))
    learnt = _learnt(model.schema, values.get("learnt"))
    fitted: Any = PrivatePipeline(learnt, model.estimator)._prepared()
    plan, privacy = Plan.from_dict(values["plan"]), Guarantee.from_dict(values["privacy"])
    coef, intercept = (_numbers(values[name]) for name in ("coef", "intercept"))
    width, rows = model.schema.n_features, plan.fits
    if not is_regressor(fitted):
        classes = np.unique(np.asarray(model.schema.classes))
        if plan.fits > 1 and hasattr(fitted, "multi_class"):
            fitted.multi_class = "ovr"
        rows *= fitted._outputs_for(len(classes)) if plan.fits == 1 else 1
    if (
        (coef.shape, intercept.shape, plan.n_features) != ((rows, width), (rows,), width)
        or privacy.public.get("schema") != model.stated_schema
        or not math.isclose(privacy.epsilon, plan.epsilon)
        or (privacy.delta, privacy.neighbours) != (plan.budget.delta, plan.neighbours.value)
    ):
        raise ValueError("the model contradicts itself: its schema, plan, promise and coefficients differ")
    _require_budget(fitted, plan)
    fitted._fitted_problem = fitted._problem(plan.n_records, width)
    _require_penalty(fitted, privacy)
    d = fitted._fitted_problem.dimension(width)
    fitted._uncertainty = _errors_from_json(values.get("uncertainty"), plan.fits, d)
    fitted.n_features_in_, fitted.plan_ = width, plan
    fitted.privacy_ = privacy
    if is_regressor(fitted):
        fitted.coef_, fitted.intercept_ = coef[0], float(intercept[0])
    else:
        fitted.coef_, fitted.intercept_ = coef, intercept
        model.classes_ = fitted.classes_ = classes
    model.schema_, model.estimator_, model.plan_, model.privacy_ = learnt, fitted, plan, privacy
    return model


def _require_penalty(fitted: Any, privacy: Guarantee) -> None:
    """Refuse parameters whose penalty is not the one that the promise states."""
    # Weights of classes enter the strength of a penalty, and are no parameters of a stored model.
    penalty = repr(fitted._fitted_problem.penalty)
    if "class weights" not in privacy.public and privacy.public["penalty"] != penalty:
        raise ValueError("the model contradicts itself: its parameters have another penalty than its promise")


def _require_budget(fitted: Any, plan: Plan) -> None:
    """Refuse parameters that a fit by the plan cannot have had."""
    neighbours = Neighbours.from_name(fitted.neighbours)
    budget = budget_of(fitted.epsilon, fitted.delta, plan.n_records, neighbours)
    if (budget, neighbours) != (plan.budget, plan.neighbours):
        raise ValueError(
            "the model contradicts itself: its parameters epsilon, delta and neighbours are not those of its "
            "plan"
        )


def _numbers(values: object) -> Vector:
    """An array of finite numbers."""
    found = strict.doubles(values)
    if found is None or not np.isfinite(found).all():
        raise ValueError("the model has coefficients or errors that are no finite numbers")
    return found


def _learnt(declared: Schema, text: object) -> Schema:
    """The schema with what was learnt, if it differs from the declared one in nothing else."""
    if not declared.pending and text is None:
        return declared
    learnt = Schema.from_toml(strict.text("learnt", text))
    if learnt.pending or without_facts(learnt, declared) != declared:
        raise ValueError("the model contradicts itself: what was learnt does not fit its schema")
    return learnt


def _errors_to_json(found: tuple[Uncertainty, ...] | None) -> Any:
    """The released covariances as lists; of a fit that is not determined, none."""
    if found is None:
        return None
    return [
        {
            "covariance": one.covariance.tolist() if one.determined else None,
            "privacy": one.privacy.tolist() if one.determined else None,
            "determined": one.determined,
            "reason": one.reason,
            "estimand": one.estimand,
            "deviance": None if one.deviance is None else list(one.deviance),
        }
        for one in found
    ]


def _errors_from_json(values: Any, fits: int, d: int) -> tuple[Uncertainty, ...] | None:
    """The inverse of ``_errors_to_json``; matrices of another shape are refused."""
    if values is None:
        return None
    found = []
    for one in strict.sequence("uncertainty", values):
        parts = strict.mapping("uncertainty", one, strict.names(Uncertainty))
        determined = strict.flag("determined", parts["determined"])
        nothing = np.zeros((d, d))
        covariance, privacy = (
            _numbers(parts[name]) if determined else nothing for name in ("covariance", "privacy")
        )
        deviance = None if parts["deviance"] is None else tuple(_numbers(parts["deviance"]).ravel().tolist())
        if any(m.shape != (d, d) for m in (covariance, privacy)) or (
            deviance is not None and len(deviance) != 2
        ):
            raise ValueError("the model contradicts itself: its errors are not those of its coefficients")
        pair = None if deviance is None else (deviance[0], deviance[1])
        words = str(parts["reason"]), str(parts["estimand"])
        found.append(Uncertainty(covariance, privacy, determined, *words, pair))
    if len(found) != fits:
        raise ValueError("the model contradicts itself: its errors are not those of its coefficients")
    return tuple(found)
