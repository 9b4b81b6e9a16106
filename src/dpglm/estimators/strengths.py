"""Strengths of penalties, as they are given."""

from __future__ import annotations

import math

from .. import strict
from ..penalties import Penalty, Zero


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
