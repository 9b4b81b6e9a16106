"""The statement of a model: promise, releases with their shares, and coefficients, as one dictionary.

All of it was released by the fit or is public: nothing here can read a record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .. import strict
from ..errors import NotReleased
from ..inference import Coefficients
from ..mechanisms import Gaussian
from ..mechanisms.sampling import Everyone
from ..plan import Plan, Release
from ..privacy import StatedRelease

FORMAT, STATEMENT_VERSION = "dpglm statement", 1


def statement(model: Any, level: float = 0.95) -> dict[str, Any]:
    """The statement of a fitted pipeline of schema and estimator, as JSON-able values with a digest.

    Parameters
    ----------
    model : PrivatePipeline
    level : float
        Probability with which an interval covers its coefficient.
    """
    plan, privacy, schema = model.plan_, model.privacy_, model.schema_
    values = {
        "format": FORMAT,
        "version": STATEMENT_VERSION,
        "software": f"dpglm {_version()}",
        "model": type(model.estimator_).__name__,
        "target": schema.target,
        "classes": None if schema.classes is None else list(map(str, schema.classes)),
        "records": plan.n_records,
        "features": plan.n_features,
        "schema": schema.to_toml(),
        "headline": privacy.headline,
        "meaning": privacy.meaning if privacy.private else None,
        "relation": privacy.relation,
        "mu": _mu(plan),
        "releases": _releases(plan),
        "privacy": privacy.to_dict(),
        "level": level,
        "fits": _fits(model, level),
    }
    return strict.sealed(values)


def _version() -> str:
    try:
        return version("dpglm")
    except PackageNotFoundError:  # run from a folder of sources
        return "of an unknown version"


def _counted(plan: Plan) -> list[tuple[Release, int]]:
    """All releases, those of what was learnt first, and how many fits make each."""
    return [
        *((release, 1) for release in plan.learning),
        *((release, plan.fits) for release in plan.releases),
    ]


def _spent(plan: Plan) -> list[float | None]:
    """Squares of mu of the releases; None for one that is not Gaussian on all records."""
    found: list[float | None] = []
    for release, fits in _counted(plan):
        plain = isinstance(release.mechanism, Gaussian) and isinstance(release.sampling, Everyone)
        priced = plain and release.mechanism.noise > 0
        found.append(release.count * fits / release.mechanism.noise**2 if priced else None)
    return found


def _mu(plan: Plan) -> float | None:
    """The mu of a plan whose releases are all Gaussian."""
    spent = [one for one in _spent(plan) if one is not None]
    return sum(spent) ** 0.5 if spent and len(spent) == len(_counted(plan)) else None


def _releases(plan: Plan) -> list[dict[str, Any]]:
    spent = _spent(plan)
    known = [one for one in spent if one is not None]
    total = sum(known) if known and len(known) == len(spent) else None
    return [
        {**_plain(line), "share": one / total if total and one is not None else None}
        for (release, fits), one in zip(_counted(plan), spent, strict=True)
        for line in release.stated(fits)
    ]


def _plain(line: StatedRelease) -> dict[str, Any]:
    return {name: strict.plain(name, value) for name, value in line.items()}


def _fits(model: Any, level: float) -> list[dict[str, Any]]:
    """Coefficients of each fit in raw units, with intervals where the fit released its uncertainty."""
    try:
        return [_with_errors(block, level) for block in model._blocks("summary()")]
    except NotReleased:
        pass
    found = model.raw_coefficients()
    several = found if isinstance(found, list) else [found]
    return [
        {
            "outcome": outcome,
            "determined": None,
            "estimand": None,
            "coefficients": [
                _row(name, value) for name, value in (*one.values.items(), ("intercept", one.intercept))
            ],
        }
        for one, outcome in zip(several, model.estimator_._outcomes(), strict=True)
    ]


def _with_errors(block: Coefficients, level: float) -> dict[str, Any]:
    numbers = zip(
        block.names, block.values, block.standard_errors, block.privacy_shares, block.intervals(level),
        strict=True,
    )  # fmt: skip
    return {
        "outcome": block.outcome,
        "determined": block.determined,
        "estimand": block.estimand,
        "coefficients": [
            _row(name, value, (error, share, *ends) if block.determined else None)
            for name, value, error, share, ends in numbers
        ],
    }


def _row(name: str, value: float, stated: Sequence[float] | None = None) -> dict[str, Any]:
    numbers = (None,) * 4 if stated is None else stated
    error, share, low, high = (
        None if number is None or math.isnan(number) else float(number) for number in numbers
    )
    return {
        "name": name,
        "value": float(value),
        "standard_error": error,
        "privacy_share": share,
        "low": low,
        "high": high,
    }
