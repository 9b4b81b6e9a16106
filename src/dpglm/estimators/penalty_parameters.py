"""Penalties from the parameters of estimators: strengths, and constraints on coefficients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .. import strict
from ..arrays import Vector
from ..errors import UnsupportedProblem
from ..penalties import Bounded, Penalty, Separable, Zero

_SIGNS = {"increasing": 1, "decreasing": -1, 1: 1, -1: -1}


def constrained(
    penalty: Penalty, positive: object, lower: object, upper: object, monotone: object, n_features: int,
    names: Sequence[object] | None,
) -> Penalty:  # fmt: skip
    """The penalty with coefficients kept in intervals; itself if there are no constraints.

    Parameters
    ----------
    penalty : Penalty
    positive : bool
        Whether no coefficient may be negative.
    lower, upper : float, array of shape (n_features,) or None
        The ends of intervals.
    monotone : mapping or None
        For some features, by name or index, "increasing" or "decreasing".
    n_features : int
    names : sequence or None
        The names of the features, if they have any.
    """
    directions = _directions(monotone)
    if not (strict.flag("positive", positive) or directions) and lower is None and upper is None:
        return penalty
    low, high = _ends("lower", lower, -math.inf, n_features), _ends("upper", upper, math.inf, n_features)
    if positive:
        low = np.maximum(low, 0.0)
    for feature, direction in directions.items():
        index = _place(feature, n_features, names)
        if direction > 0:
            low[index] = max(low[index], 0.0)
        else:
            high[index] = min(high[index], 0.0)
    if np.all(low == -math.inf) and np.all(high == math.inf):
        return penalty
    if not np.all(low <= high):
        raise ValueError("positive, lower, upper and monotone leave no value for some coefficient")
    if not isinstance(penalty, Separable):
        raise UnsupportedProblem(
            f"constraints on coefficients go with penalties that are sums over coordinates, not with "
            f"{type(penalty).__name__}"
        )
    l1, l2, bottom, top = penalty.coordinate_form()
    return Bounded(_shared(np.maximum(low, bottom)), _shared(np.minimum(high, top)), l1, l2)


def _ends(name: str, value: Any, default: float, n_features: int) -> Vector:
    ends = strict.doubles(default if value is None else value)
    if ends is None or ends.shape not in ((), (n_features,)) or np.isnan(ends).any():
        raise strict.wrong(name, value, f"a number or {n_features} numbers, one for each feature")
    return np.array(np.broadcast_to(ends, n_features))


def _directions(monotone: object) -> dict[object, int]:
    if monotone is None:
        return {}
    if not isinstance(monotone, Mapping) or any(
        not isinstance(way, str | Integral) or isinstance(way, bool) or way not in _SIGNS
        for way in monotone.values()
    ):
        raise strict.wrong("monotone", monotone, 'a mapping from features to "increasing" or "decreasing"')
    return {feature: _SIGNS[way] for feature, way in monotone.items()}


def _place(feature: object, n_features: int, names: Sequence[object] | None) -> int:
    if isinstance(feature, Integral) and not isinstance(feature, bool) and 0 <= int(feature) < n_features:
        return int(feature)
    known = [] if names is None else list(names)
    if feature in known:
        return known.index(feature)
    raise ValueError(
        f"monotone names the feature {feature!r}: give an index below {n_features}"
        + (", since names are known only from a table with names" if names is None else f" or one of {known}")
    )


def _shared(ends: Vector) -> float | tuple[float, ...]:
    """One end for all, if it is the same."""
    return float(ends[0]) if np.all(ends == ends[0]) else tuple(ends.tolist())


def given(penalty: object) -> Penalty:
    """The penalty itself, or none."""
    if penalty is None:
        return Zero()
    if not isinstance(penalty, Penalty):
        raise ValueError(
            "penalty must be None or an object of dpglm.penalties, which says its strength, such as L1(0.01) "
            f"or L2(0.01): got {penalty!r}"
        )
    return penalty


def require_strength(name: str, value: object) -> None:
    """Refuse a strength that is no finite number of at least 0."""
    strict.number(name, value, "a finite number of at least 0", lambda found: 0 <= found < math.inf)


def require_share(name: str, value: object) -> None:
    """Refuse a share that is no number from 0 to 1."""
    strict.number(name, value, "a number from 0 to 1", lambda found: 0 <= found <= 1)


def inverse_strength(C: object, n_samples: int) -> float:
    """Strength of a penalty relative to the mean loss, for C the weight of the sum of losses."""
    return 1.0 / (strict.number("C", C, "a positive number", lambda found: found > 0) * n_samples)
