"""Values that are kept in files: checked when they are made, and strict JSON both ways.

JSON has no infinity and no NaN. Infinity is written as the text "inf" wherever a number may be infinite, and
read back from it; NaN is neither written nor read. A check returns the value as plain Python, or raises a
``ValueError`` that says which field is wrong, what it needs and what it got.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST = 2**63 - 1
"""No count is larger."""

Check = Callable[[str, object], object]
"""Takes the name and the value of a field; returns the value as plain Python, or raises a ValueError."""

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
"""What JSON text can hold."""

T = TypeVar("T")


def number(name: str, value: object, needed: str, holds: Callable[[float], bool]) -> float:
    """The value as a float, if it is a real number for which the condition holds."""
    if type(value) is not float and (not isinstance(value, Real) or isinstance(value, bool)):
        raise wrong(name, value, needed)
    try:
        found = float(value)
    except OverflowError:
        raise wrong(name, value, needed) from None
    if not holds(found):
        raise wrong(name, value, needed)
    return found


def whole(name: str, value: object, least: int = 1) -> int:
    """The value as an int that is at least so large."""
    needed = f"a whole number from {least} on"
    if type(value) is int or isinstance(value, Integral) and not isinstance(value, bool):
        found = int(value)
        if least <= found <= MOST:
            return found
        if found > MOST:
            needed = f"a whole number from {least} to {MOST:,}"
    raise wrong(name, value, needed)


def between(name: str, value: object, least: float, largest: float, needed: str) -> tuple[float, float]:
    """The value as two numbers (low, high) with low < high, within these ends."""
    try:
        ends = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(ends, list | tuple) and len(ends) == 2:
            low, high = (number(name, end, needed, math.isfinite) for end in ends)
            if least <= low < high <= largest:
                return low, high
    except ValueError:
        pass
    raise wrong(name, value, needed)


def doubles(value: object) -> NDArray[np.float64] | None:
    """The value as an array of doubles; None if there is something in it that is no number, or a flag."""
    try:
        found = np.asarray(value)
        if found.dtype == object and not all(
            isinstance(one, Real) and not isinstance(one, bool) for one in found.ravel()
        ):
            return None
        return np.array(found, dtype=np.float64) if found.dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError):  # rows of different lengths, numbers beyond doubles
        return None


def verbosity(name: str, value: object) -> int:
    """The value as an int from 0 on; False and True are 0 and 1."""
    return int(value) if isinstance(value, bool | np.bool_) else whole(name, value, 0)


def within(needed: str, holds: Callable[[float], bool]) -> Callable[[str, object], float]:
    """The check for a number for which a condition holds."""
    return lambda name, value: number(name, value, needed, holds)


level = within("finite and >= 0", lambda found: 0 <= found < math.inf)
positive = within("positive and finite", lambda found: 0 < found < math.inf)


def named(known: Collection[str]) -> Callable[[str, object], str]:
    """The check for one of the known names."""
    return lambda name, value: one_of(name, value, known)


def flag(name: str, value: object) -> bool:
    """The value as a bool."""
    if not isinstance(value, bool | np.bool_):
        raise wrong(name, value, "True or False")
    return bool(value)


def text(name: str, value: object) -> str:
    """The value as text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise wrong(name, value, "text that is not empty")
    return str(value)


def two_texts(name: str, value: object) -> tuple[str, str]:
    """The value as two texts, one for each part of a round."""
    texts = sequence(name, value)
    if len(texts) != 2:
        raise wrong(name, value, "two texts, one for each part of a round")
    return text(name, texts[0]), text(name, texts[1])


def one_of(name: str, value: object, known: Collection[str]) -> str:
    """The value as one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise wrong(name, value, f"one of {sorted(known)}")
    return str(value)


def mapping(name: str, value: object, keys: Collection[str] | None = None) -> dict[str, Any]:
    """The value as a dict whose keys are text; if keys are given, exactly these."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(name, value, "a mapping with names as keys")
    if keys is not None and set(value) != set(keys):
        lacks, extra = sorted(set(keys) - set(value)), sorted(set(value) - set(keys))
        raise ValueError(f"{name} must have the keys {sorted(keys)}: missing {lacks}, unknown {extra}")
    return dict(value)


def sequence(name: str, value: object) -> tuple[Any, ...]:
    """The value as a tuple, if it is a list or a tuple."""
    if not isinstance(value, list | tuple):
        raise wrong(name, value, "a list")
    return tuple(value)


def either(scalar: Check | None, numbers: bool, none: bool) -> Check:
    """The check for a value of one kind, or finite numbers, or None, where these are allowed."""

    def check(name: str, value: object) -> object:
        if value is None and none:
            return None
        if numbers and (scalar is None or isinstance(value, list | tuple)):
            if not isinstance(value, list | tuple):
                raise wrong(name, value, "finite numbers")
            return tuple(number(name, item, "finite numbers", math.isfinite) for item in value)
        return scalar(name, value) if scalar else value

    return check


def each(check: Check) -> Check:
    """The check for a list, all entries of which pass a check."""
    return lambda name, value: tuple(check(name, item) for item in sequence(name, value))


def record(checks: Mapping[str, Check]) -> Check:
    """The check for a mapping with exactly these fields, each of which passes its check."""

    def check(name: str, value: object) -> object:
        values = mapping(name, value, checks)
        return plain(name, {key: checks[key](key, values[key]) for key in checks})

    return check


def plain(name: str, value: object) -> Json:
    """The value as what JSON holds: NumPy scalars as Python ones, tuples as lists, infinity as "inf"."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [plain(name, item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(key, item) for key, item in mapping(name, value).items()}
    raise wrong(
        name, value, "a number other than NaN, text, True, False, None, or a list or mapping of these"
    )


def numeric(value: T) -> T | float:
    """Infinity for its text, any other value as it is: for fields that hold a number."""
    return math.inf if isinstance(value, str) and value == "inf" else value


def sealed(values: Mapping[str, object]) -> dict[str, object]:
    """The values with a digest of all of them, so that an edit is seen when they are read."""
    return {**values, "digest": _digest(values)}


def require_sealed(name: str, values: Mapping[str, object]) -> None:
    """Refuse values whose digest is not theirs. Whoever writes them anew can also compute it anew."""
    if values["digest"] != _digest({key: value for key, value in values.items() if key != "digest"}):
        raise ValueError(f"{name} was edited after it was written: its digest is that of other values")


def _digest(values: Mapping[str, object]) -> str:
    canonical = json.dumps(plain("values", values), sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def to_json(values: object) -> str:
    """The values as JSON text that every strict reader accepts."""
    return json.dumps(values, indent=2, allow_nan=False)


def from_json(content: str) -> Any:
    """The values of JSON text; NaN, Infinity, numbers beyond doubles and doubled keys are refused."""
    return json.loads(content, parse_constant=_refused, parse_float=_finite, object_pairs_hook=_unique)


def keep(holder: object, **checks: Check) -> None:
    """Check fields of a frozen dataclass while it is made, and set each to what its check returns."""
    for name, check in checks.items():
        object.__setattr__(holder, name, check(name, getattr(holder, name)))


def names(kind: type) -> tuple[str, ...]:
    """The fields that a dataclass is made of."""
    return tuple(field.name for field in fields(kind) if field.init)


def wrong(name: str, value: object, needed: str) -> ValueError:
    """The error for a value that is not what is needed."""
    return ValueError(f"{name} must be {needed}, got {value!r}")


def _refused(token: str) -> None:
    raise ValueError(f"{token} is no JSON: infinity is written as the text 'inf', and NaN is never written")


def _finite(token: str) -> float:
    value = float(token)
    if math.isinf(value):
        raise ValueError(f"{token} is larger than any double")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a key occurs twice: {sorted({n for n in names if names.count(n) > 1})}")
    return values
