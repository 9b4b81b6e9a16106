"""Models of raw tables as JSON: readable, checked when they are read, and without code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from .. import strict
from ..plan import Plan
from ..privacy import Guarantee
from ..schema import Schema
from ..schema.learning import without_facts
from .classifiers import LogisticRegression
from .families import (
    GammaRegressor,
    HuberRegressor,
    NegativeBinomialRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from .linear import ElasticNet, Lasso, LinearRegression, Ridge
from .pipeline import PrivatePipeline
from .svm import LinearSVC, LinearSVR

ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        LogisticRegression, LinearSVC, LinearRegression, Ridge, Lasso, ElasticNet, LinearSVR,
        PoissonRegressor, GammaRegressor, TweedieRegressor, NegativeBinomialRegressor, HuberRegressor,
        QuantileRegressor,
    )
}  # fmt: skip
"""Estimators whose models can be stored."""

FORMAT, VERSION = "dpglm model", 1

_PARAMETERS = (
    "epsilon", "delta", "neighbours", "fit_intercept", "C", "alpha", "l1_ratio", "penalty", "multi_class",
    "power", "link", "dispersion", "threshold", "quantile", "width", "positive", "means",
)  # fmt: skip
_FIELDS = (
    "format", "version", "estimator", "parameters", "schema", "learnt", "coef", "intercept", "plan",
    "privacy", "digest",
)  # fmt: skip


def stored(model: PrivatePipeline) -> str:
    """A fitted model as JSON text: schema, coefficients, plan and promise, sealed by a digest.

    Standard errors are not stored.
    """
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
        "plan": model.plan_.to_dict(),
        "privacy": model.privacy_.to_dict(),
    }
    return strict.to_json(strict.sealed(values))


def restored(text: str) -> PrivatePipeline:
    """The fitted model of a JSON text; one that was edited, or contradicts itself, is refused."""
    try:
        values = strict.from_json(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError("this is no model of dpglm")
    if values.get("version") != VERSION:
        raise ValueError(f"this model has version {values.get('version')!r}, which this dpglm cannot read")
    values = strict.mapping("model", values, _FIELDS)
    strict.require_sealed("the model", values)
    kind = ESTIMATORS[strict.one_of("estimator", values["estimator"], ESTIMATORS)]
    given = strict.mapping("parameters", values["parameters"])
    numbers = {key: value if key == "penalty" else strict.numeric(value) for key, value in given.items()}
    model = PrivatePipeline(Schema.from_toml(strict.text("schema", values["schema"])), kind(**numbers))
    learnt = _learnt(model.schema, values["learnt"])
    fitted: Any = PrivatePipeline(learnt, model.estimator)._prepared()
    plan, privacy = Plan.from_dict(values["plan"]), Guarantee.from_dict(values["privacy"])
    coef, intercept = (np.array(values[name], dtype=np.float64) for name in ("coef", "intercept"))
    width, rows = model.schema.n_features, plan.fits
    if not is_regressor(fitted):
        classes = np.unique(np.asarray(model.schema.classes))
        if plan.fits == 1:
            fitted._outputs = fitted._outputs_for(len(classes))
        rows *= fitted._outputs
    if (
        coef.shape != (rows, width)
        or intercept.shape != (rows,)
        or plan.n_features != width
        or privacy.public.get("schema") != model.stated_schema
        or not math.isclose(privacy.epsilon, plan.epsilon)
    ):
        raise ValueError("the model contradicts itself: its schema, plan, promise and coefficients differ")
    fitted._fitted_problem, fitted._uncertainty = fitted._problem(plan.n_records, width), None
    fitted.n_features_in_, fitted.plan_ = width, plan
    fitted.privacy_ = privacy
    if is_regressor(fitted):
        fitted.coef_, fitted.intercept_ = coef[0], float(intercept[0])
    else:
        fitted.coef_, fitted.intercept_ = coef, intercept
        model.classes_ = fitted.classes_ = classes
    model.schema_, model.estimator_, model.plan_, model.privacy_ = learnt, fitted, plan, privacy
    return model


def _learnt(declared: Schema, text: object) -> Schema:
    """The schema with what was learnt, if it differs from the declared one in nothing else."""
    if not declared.pending and text is None:
        return declared
    learnt = Schema.from_toml(strict.text("learnt", text))
    if learnt.pending or without_facts(learnt, declared) != declared:
        raise ValueError("the model contradicts itself: what was learnt does not fit its schema")
    return learnt
