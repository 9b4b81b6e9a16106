"""Weights, offsets and exposures as users give them, turned into numbers beside the targets."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from ..arrays import Vector
from ..bounds import ROWS_PER_UNIT, Bounds
from ..data.columns import RecordColumns
from ..errors import PrivacyWarning
from .inputs import numeric_target
from .sources import Codes, codes_in_block

NAMES = RecordColumns("y", "sample_weight", "offset", "exposure", "units")


def numbers_beside(
    several: RecordColumns, codes: Codes, folded: Bounds | None, offset_middle: float = 0.0
) -> Vector:
    """Targets, weights and offsets of records, in three columns; NaN for what is no number.

    Numbers of persons are a fourth column, if there are any.
    An exposure adds its logarithm to the offset. If bounds are given, the loss depends on margin minus target
    alone: offsets, inside their bounds, are taken off the targets instead. ``offset_middle`` is taken off the
    offsets.
    """
    target = codes_in_block(several.target, codes)
    values = np.column_stack([target, np.ones(len(target)), np.zeros(len(target))])
    with np.errstate(all="ignore"):
        for place, part, name in (
            (1, several.weight, NAMES.weight), (2, several.offset, NAMES.offset),
            (2, several.exposure, NAMES.exposure),
        ):  # fmt: skip
            if part is None:
                continue
            found = codes_in_block(part, partial(numeric_target, name=name))
            check_consistent_length(target, found)
            values[:, place] = found if place == 1 else values[:, 2] + _offsets(found, name)
        if folded is not None:
            low, high = folded.target or (-math.inf, math.inf)
            nothing = 0.0 * values[:, [0, 2]]  # NaN where a target or an offset is not finite
            values[:, 0] = np.clip(values[:, 0], low, high) - np.clip(values[:, 2], *folded.offset_range)
            values[:, 2] = nothing.sum(axis=1)
        values[:, 2] -= offset_middle
    return values if several.unit is None else np.column_stack([values, several.unit])


def _offsets(found: Vector, name: str) -> Vector:
    return np.log(found) if name == NAMES.exposure else found


class CodesBeside:
    """How targets, weights and offsets of a block become three columns; it can be sent elsewhere.

    Parameters
    ----------
    codes : callable
        Turns targets into numbers.
    folded : Bounds, optional
    offset_middle : float
        As in `numbers_beside`.
    """

    takes_levels = True

    def __init__(self, codes: Codes, folded: Bounds | None, offset_middle: float) -> None:
        self._codes, self._folded, self._offset_middle = codes, folded, offset_middle

    def __call__(self, targets: object) -> Vector:
        several = targets if isinstance(targets, RecordColumns) else RecordColumns(targets)
        return numbers_beside(several, self._codes, self._folded, self._offset_middle)


def declared(bounds: Bounds, several: RecordColumns, private: bool) -> Bounds:
    """The bounds with those of weights and offsets, if these are given and not bounded yet.

    A private fit takes weights up to 1, with a warning, and refuses offsets. A fit without noise takes the
    largest that there are. Of each person, 1,000 records count.
    """
    more: dict[str, Any] = {}
    if several.unit is not None and bounds.rows_per_unit is None:
        more["rows_per_unit"] = ROWS_PER_UNIT
    if several.weight is not None and bounds.weight is None:
        if private:
            warnings.warn(
                "no largest weight is declared, so weights are clipped to [0, 1]: give weight=... in the "
                "bounds",
                PrivacyWarning,
                stacklevel=4,
            )
        more["weight"] = 1.0 if private else _largest(several.weight, NAMES.weight)
    if several.has_offset and bounds.offset is None:
        if private:
            raise ValueError(
                "no range of offsets is declared: give offset=(low, high) in the bounds, the range of "
                "logarithms for an exposure"
            )
        parts = [(several.offset, NAMES.offset), (several.exposure, NAMES.exposure)]
        size = sum(_largest(part, name) for part, name in parts if part is not None)
        more["offset"] = -size, size
    return replace(bounds, **more) if more else bounds


def _largest(part: object, name: str) -> float:
    """The largest absolute value of what is given as an array: not private."""
    if isinstance(part, str):
        raise ValueError(
            f"{name} is the name of a column: give weight=... or offset=... in the bounds, since nobody "
            "looks for the largest value in a column"
        )
    with np.errstate(all="ignore"):
        found = np.abs(_offsets(numeric_target(part, name), name))
    found = found[np.isfinite(found)]
    return max(float(found.max(initial=0.0)), 1e-6)
