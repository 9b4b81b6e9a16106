"""Coefficients of a fitted model as plain values, with intervals where the fit released its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Vector
from ..errors import NotReleased
from ..inference import INTERCEPT, Coefficients


def fits_of(model: Any, level: float) -> list[dict[str, Any]]:
    """A mapping for each fit: what it is for, and its coefficients in units of the columns.

    Each coefficient has ``range``, the declared width of its feature in units of the column, or None. Their
    product is the most by which the feature can change the linear predictor.
    """
    try:
        blocks = model._blocks("summary()")
    except NotReleased:
        return _without_errors(model)
    return [_with_errors(block, _widths(model, len(block.names)), level) for block in blocks]


def _without_errors(model: Any) -> list[dict[str, Any]]:
    estimator = getattr(model, "estimator_", model)
    if hasattr(model, "raw_coefficients"):
        found = model.raw_coefficients()
        several = found if isinstance(found, list) else [found]
        tables = [((*one.values, INTERCEPT), (*one.values.values(), one.intercept)) for one in several]
    else:
        rows, intercepts = model._rows_of_coef(), np.ravel(model.intercept_)
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
        tables = [((*names, INTERCEPT), (*w, b)) for w, b in zip(rows, intercepts, strict=True)]
    return [
        {
            "outcome": outcome,
            "determined": None,
            "reason": None,
            "estimand": None,
            "deviance": None,
            "coefficients": [
                _row(*row) for row in zip(names, values, _widths(model, len(names)), strict=True)
            ],
        }
        for (names, values), outcome in zip(tables, estimator._outcomes(), strict=True)
    ]


def _with_errors(block: Coefficients, widths: Sequence[float | None], level: float) -> dict[str, Any]:
    numbers = zip(
        block.names, block.values, widths, block.standard_errors, block.privacy_shares,
        block.intervals(level), strict=True,
    )  # fmt: skip
    return {
        "outcome": block.outcome,
        "determined": block.determined,
        "reason": block.reason or None,
        "estimand": block.estimand,
        "deviance": None if block.deviance is None else list(block.deviance),
        "coefficients": [
            _row(name, value, width, (error, share, *ends) if block.determined else None)
            for name, value, width, error, share, ends in numbers
        ],
    }


def _row(
    name: str, value: float, width: float | None, stated: Sequence[float] | None = None
) -> dict[str, Any]:
    numbers = (None,) * 4 if stated is None else stated
    error, share, low, high = (
        None if number is None or math.isnan(number) else float(number) for number in numbers
    )
    return {
        "name": str(name),
        "value": float(value),
        "standard_error": error,
        "privacy_share": share,
        "low": low,
        "high": high,
        "range": width,
    }


def _widths(model: Any, count: int) -> list[float | None]:
    """Declared widths of the coefficients; None where none is declared, and for the intercept."""
    bounds = getattr(model, "estimator_", model)._fitted_problem.bounds
    features = getattr(model, "estimator_", model).n_features_in_
    if bounds.feature is None:
        return [None] * count
    low, high = bounds.ranges(features)
    widths: Vector = high - low
    schema = getattr(model, "schema_", None)
    if schema is not None:  # encoded = scale * raw + rest
        scale = np.abs(schema.raw_map.diagonal()[:features])
        widths = np.divide(widths, scale, out=np.zeros_like(widths), where=scale > 0)
        widths = widths[[feature.used for feature in schema.layout]]
    found = [float(width) if 0 < width < math.inf else None for width in widths]
    return [*found, *[None] * (count - len(found))]
