"""The statement of a model: promise, releases with their shares, and coefficients, as one dictionary.

All of it was released by the fit or is public: nothing here can read a record. Everything else that is said
of a model, in HTML, YAML or Markdown, is made from this dictionary.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .. import strict
from ..plan import Plan
from ..privacy import Guarantee, StatedRelease
from .coefficients import fits_of
from .measures import counted, measures, shares

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
    scores = _given("evaluation", evaluation)
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
        "audit": _given("audit", audit),
        "ledger": None if ledger is None else strict.plain("ledger", ledger),
    }
    return strict.sealed(values)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a folder of sources
        return "of an unknown version"


def _releases(plan: Plan) -> list[dict[str, Any]]:
    """All releases as the promise states them; the first line of each has its share of the price."""
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


def _given(name: str, value: Any) -> Any:
    """What was given beside the model, as plain values."""
    if value is None:
        return None
    return strict.plain(name, value.to_dict() if hasattr(value, "to_dict") else strict.mapping(name, value))
