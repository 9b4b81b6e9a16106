"""Labels of a classification, and their codes: each label is judged alone, whatever the others are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Vector
from ..silence import silent
from .inputs import Labels, column_of, kind_of, name_of


@np.errstate(all="ignore")
def labels_of(y: object, classes: Labels | None) -> Labels:
    """The labels as they are; declared classes that no label of this type can equal are refused."""
    values, dtype = column_of(y)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported in y")
    if classes is None:
        return values
    kinds = {kind_of(values.dtype if dtype is None else dtype), kind_of(classes.dtype)}
    if len(kinds - {"anything"}) > 1:
        raise ValueError(
            f"y holds labels of type {name_of(dtype)}, which never equal classes of type "
            f"{name_of(classes.dtype)}: declare classes of the type that the labels have"
        )
    return values


def class_set(classes: Any) -> Labels:
    """Declared classes in order, each once, in an array of the type that they have."""
    given = list(classes) if isinstance(classes, set | frozenset) else classes
    try:
        declared = np.asarray(given)
    except ValueError:  # lists of different lengths
        declared = np.empty((0, 0))
    alike = declared.dtype.kind not in "US" or all(isinstance(label, str | bytes) for label in given)
    try:
        if alike and declared.ndim == 1 and not any(map(is_missing, declared)):
            found = np.unique(declared)
            if len(found) < len(declared):
                raise ValueError(f"classes must hold each label once, got {classes!r}")
            return found
    except TypeError:  # objects that have no order
        pass
    raise ValueError(f"classes must be labels of one type, none of them missing, got {classes!r}")


@np.errstate(all="ignore")
def codes_of(labels: Labels, classes: Labels) -> Vector:
    """Index of each label among the classes; NaN for a label that is not one of them."""
    if labels.dtype != object:
        codes = np.full(len(labels), np.nan)
        for k, label in enumerate(classes):
            codes[labels == label] = k
        return codes
    times = classes.dtype.kind in "mM"
    values = classes.astype(np.int64).tolist() if times else classes.tolist()
    codes_by_value = {value: k for k, value in enumerate(values)}
    value_of = partial(_time, dtype=classes.dtype) if times else lambda label: label
    with silent():
        return np.array([_code(label, codes_by_value, value_of) for label in labels], dtype=np.float64)


def _code(label: object, codes: dict[object, int], value_of: Callable[[object], object]) -> float:
    try:
        return np.nan if is_missing(label) else codes.get(value_of(label), np.nan)
    except Exception:  # an object that cannot be hashed, or that raises anything else, is no class
        return np.nan


def _time(label: object, dtype: np.dtype[np.generic]) -> int | None:
    """A moment or a duration as a number of units of a type, None if it is no whole number of them."""
    exact = dtype.type(label)
    there = exact.astype(dtype)
    return int(there.astype(np.int64)) if there == exact else None


def is_missing(label: object) -> bool:
    """Whether a label is None, NaN, or an object that refuses to be compared, as pandas' marks do."""
    try:
        return label is None or type(label).__name__ == "NaTType" or bool(label != label)
    except Exception:  # an object may raise anything
        return True
