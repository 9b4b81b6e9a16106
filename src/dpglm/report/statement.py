"""The statement of a model: guarantee, releases with their shares, and coefficients, in one dictionary.

All of it was released by the fit or is public: nothing here can read a record. Pages, model cards and
registry entries are made from this dictionary.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

import numpy as np

from .. import accounting, strict
from ..accounting import Event, Repeated
from ..arrays import Vector
from ..errors import NotReleased
from ..inference import INTERCEPT, Coefficients
from ..plan import Plan, Release
from ..privacy import Guarantee, StatedRelease

POINTS = 49
"""Number of points of the stated curve."""

LEAST_DELTA = 1e-12
"""Delta at which the stated curve ends."""

FALSE_ALARMS = 0.01
"""False positive rate at which the true positive rate of an attacker is stated."""

_SLACK_SHARE = 0.1


def measures(plan: Plan, records: int | None) -> dict[str, Any] | None:
    """What a plan with noise promises, in all usual parameters; None without noise.

    Every number is an upper bound on the truth.

    Parameters
    ----------
    plan : Plan
    records : int or None
        Number of records, for the deltas that are made from it; None if there is no public one.

    Returns
    -------
    dict
        ``mu`` with ``exact`` (whether the whole curve is that of a Gaussian mechanism) and ``slack`` (what is
        added to delta), ``rho`` (None unless all noise is Gaussian), ``epsilons`` at usual deltas, ``curve``
        as pairs of epsilon and delta, and ``guess``: how often someone who guesses which of two neighbouring
        tables was used, equally likely before, is right at most.
    """
    if not plan.budget.private:
        return None
    curve = accounting.compose(plan.event)
    covering = accounting.cover(plan.event, _SLACK_SHARE * plan.budget.delta)
    # What follows from a private count is paid for by a reserve, of which something may be left.
    exact = plan.count is None and all(
        isinstance(event, accounting.Gaussian | accounting.Imprecision) for event in plan.price
    )
    finite = math.isfinite(covering.mu)
    deltas = [("the delta of the fit", plan.budget.delta), *_usual(plan.budget.delta, records)]
    farthest = curve.epsilon(LEAST_DELTA)
    if not math.isfinite(farthest):
        farthest = 2 * plan.budget.epsilon
    epsilons = np.linspace(0.0, farthest, POINTS) if farthest > 0 else np.zeros(1)
    points = [[float(epsilon), curve.delta(float(epsilon))] for epsilon in epsilons]
    values = {
        "mu": covering.mu if finite else None,
        "exact": exact,
        "slack": covering.slack if finite else None,
        "rho": covering.mu**2 / 2 if exact and finite else None,
        "epsilons": [
            {"name": name, "delta": delta, "epsilon": plan.epsilon if k == 0 else curve.epsilon(delta)}
            for k, (name, delta) in enumerate(deltas)
        ],
        "curve": points,
        "guess": guesses(points, plan.epsilon, plan.budget.delta),
    }
    return {name: strict.plain(name, value) for name, value in values.items()}


def _usual(own: float, records: int | None) -> list[tuple[str, float]]:
    """Names and values of the deltas that readers look for, other than the fit's own."""
    deltas = [("a usual delta", 1e-5)]
    if records is not None and records > 1:
        deltas += [("1/n", 1 / records), ("1/n²", 1 / records**2)]
    return [(name, delta) for name, delta in deltas if not math.isclose(delta, own)]


def guesses(points: list[list[float]], epsilon: float, delta: float) -> dict[str, float]:
    """Upper bounds on how often an attacker is right, from a curve that begins at epsilon 0.

    Of two tables that are equally likely, any rule names the right one with probability (1 + TV) / 2 at most,
    and the total variation TV is delta(0). A rule that accuses with probability a under one table accuses
    with at most e^epsilon a + delta(epsilon) under the other, for every epsilon.
    """
    caught = min(math.exp(min(x, 700.0)) * FALSE_ALARMS + d for x, d in points)
    return {
        "right": (1 + points[0][1]) / 2,
        "right_by_epsilon": 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700.0))),
        "false_alarms": FALSE_ALARMS,
        "caught": min(1.0, caught),
    }


def counted(plan: Plan) -> list[tuple[Release, int]]:
    """All releases of a plan, those before the fits first, and the number of fits that make each."""
    return [
        *((release, 1) for release in plan.learning),
        *((release, plan.fits) for release in plan.releases),
    ]


def shares(plan: Plan) -> list[float] | None:
    """Share of each release in the privacy cost, in squared mu; None if they cannot be separated.

    A release that is not Gaussian counts as the smallest Gaussian that dominates it.
    """
    if not plan.budget.private or plan.parts:
        return None
    slack = _SLACK_SHARE * plan.budget.delta / len(counted(plan))
    squares = [_squared(release, fits, plan, slack) for release, fits in counted(plan)]
    total = sum(squares)
    return [square / total for square in squares] if 0 < total < math.inf else None


def _squared(release: Release, fits: int, plan: Plan, slack: float) -> float:
    event: Event = Repeated(release.event(plan.neighbours), release.count * fits)
    return accounting.cover(event, slack).mu ** 2


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
        raw = model.raw_coefficients()
        several = raw if isinstance(raw, list) else [raw]
        tables = [
            ((*table.values, INTERCEPT), (*table.values.values(), table.intercept)) for table in several
        ]
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
    """Declared widths of the features; None for the intercept and where no range is declared."""
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
    declared = [float(width) if 0 < width < math.inf else None for width in widths]
    return [*declared, *[None] * (count - len(declared))]


FORMAT, STATEMENT_VERSION = "dpglm statement", 2

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "randomgen")


def statement(
    model: Any,
    level: float = 0.95,
    *,
    evaluation: Any = None,
    audit: Any = None,
    ledger: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """The statement of a fitted model, as JSON-able values with a digest.

    Parameters
    ----------
    model : fitted estimator, pipeline, search or path of dpglm
    level : float
        Probability with which an interval covers its coefficient.
    evaluation : Evaluation or dict, optional
        Private scores, from `dpglm.evaluate`, or what its ``to_dict`` gave.
    audit : dpglm.audit.Report or dict, optional
        What an audit found, or what its ``to_dict`` gave.
    ledger : dict, optional
        What `dpglm.ledger.summary` gave of the account that paid.
    """
    plan, privacy = model.plan_, model.privacy_
    chosen = getattr(model, "best_estimator_", model)
    estimator, schema = getattr(chosen, "estimator_", chosen), getattr(chosen, "schema_", None)
    classes = getattr(model, "classes_", None)
    scores = _attached("evaluation", evaluation)
    values: dict[str, Any] = {
        "format": FORMAT,
        "version": STATEMENT_VERSION,
        "software": f"dpglm {_version('dpglm')}",
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _LIBRARIES},
        "model": type(estimator).__name__,
        "chosen_by": None if chosen is model else type(model).__name__,
        "kind": "regression" if classes is None else "classification",
        "solver": plan.solver,
        "target": None if schema is None else schema.target,
        "classes": None if classes is None else [str(label) for label in classes],
        "records": plan.n_records,
        "records_are": "public" if plan.count is None else "released",
        "features": plan.n_features,
        "passes": None if plan.passes is None else str(plan.passes),
        "schema": None if schema is None else schema.to_toml(),
        "private": privacy.private,
        "headline": privacy.headline,
        "meaning": privacy.meaning or None,
        "unit": privacy.unit,
        "doubt": privacy.doubt,
        "relation": privacy.relation,
        "measures": measures(plan, plan.n_records if plan.count is None else None),
        "releases": _releases(plan),
        "privacy": privacy.to_dict(),
        "level": level,
        "fits": fits_of(chosen, level),
        "evaluation": scores,
        "evaluation_headline": None if scores is None else Guarantee.from_dict(scores["privacy"]).headline,
        "audit": _attached("audit", audit),
        "ledger": None if ledger is None else strict.plain("ledger", ledger),
    }
    return strict.sealed(values)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a folder of sources
        return "of an unknown version"


def _releases(plan: Plan) -> list[dict[str, Any]]:
    """All releases as the guarantee states them; the first line of each has its share of the cost."""
    if plan.parts or not plan.budget.private:
        lines = plan.stated_releases() if plan.budget.private else []
        return [_plain(line) | {"share": None} for line in lines]
    parts = shares(plan) or (None,) * len(counted(plan))
    return [
        _plain(line) | {"share": None if line["follows"] else share}
        for (release, fits), share in zip(counted(plan), parts, strict=True)
        for line in release.stated(fits)
    ]


def _plain(line: StatedRelease) -> dict[str, Any]:
    return {name: strict.plain(name, value) for name, value in line.items()}


def _attached(name: str, value: Any) -> Any:
    """An attachment of the report as plain values."""
    if value is None:
        return None
    return strict.plain(name, value.to_dict() if hasattr(value, "to_dict") else strict.mapping(name, value))


SCHEMAS = {"promise": "promise-1.json", "statement": "statement-2.json"}
"""Newest version of each schema, by what it describes."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON schema of what ``privacy_.to_dict()`` ("promise") or `statement` ("statement") gives.

    Examples
    --------
    >>> json_schema("promise")["properties"]["version"]
    {'const': 1}
    """
    if name not in SCHEMAS:
        raise ValueError(f"name must be one of {sorted(SCHEMAS)}, got {name!r}")
    schema: dict[str, Any] = json.loads(
        (files(__package__) / "schemas" / SCHEMAS[name]).read_text(encoding="utf-8")
    )
    return schema
