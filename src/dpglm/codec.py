"""Frozen dataclasses whose annotations say what their fields may be, also as JSON.

A field of ``Annotated[float, check]`` must pass that check; other annotations have the check of their type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from . import strict
from .strict import Check

Level = Annotated[float, strict.level]
"""Finite and at least 0."""

Readers = Mapping[object, Callable[[Any], Any]]
"""How values of a type are read from what JSON holds, where the type has no ``from_dict`` of its own."""

NO_READERS: Readers = MappingProxyType({})

SCALARS: Mapping[object, Check] = {bool: strict.flag, int: strict.whole, str: strict.text}
"""The usual checks: a flag, a count of at least 1, text that is not empty."""

_NUMBERS = tuple[float, ...]

T = TypeVar("T")


def plain_mapping(name: str, value: object) -> object:
    """The value as a mapping of what JSON holds."""
    return strict.plain(name, strict.mapping(name, value))


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields that a dataclass is made of, with their annotations."""
    known = get_type_hints(kind, include_extras=True)
    return {name: known[name] for name in strict.names(kind)}


@cache
def _checks(kind: type) -> dict[str, Check]:
    return {name: check_of(name, hint) for name, hint in hints(kind).items()}


def check(holder: Any) -> None:
    """Check all fields of a frozen dataclass while it is made, and set each to what its check returns."""
    kind: type = type(holder)
    strict.keep(holder, **_checks(kind))


def parts_of(hint: Any) -> tuple[Any, ...]:
    """The types of which an annotation allows one."""
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def check_of(name: str, hint: Any, scalars: Mapping[object, Check] = SCALARS) -> Check:
    """The check for a field with this annotation."""
    kinds = parts_of(hint)
    others = [kind for kind in kinds if kind not in (NoneType, _NUMBERS)]
    if len(others) > 1:
        raise TypeError(f"a field has one type, or that and None or finite numbers, but {name} has {hint}")
    one = _check_of_one(name, others[0], scalars) if others else None
    if len(kinds) == 1 and one is not None:
        return one
    return strict.either(one, numbers=_NUMBERS in kinds, none=NoneType in kinds)


def _check_of_one(name: str, hint: Any, scalars: Mapping[object, Check]) -> Check:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        chosen: Check = parts[1]
        return chosen
    if hint in scalars:
        return scalars[hint]
    if origin is Literal:
        return strict.named(parts)
    if origin is tuple and parts[1:] == (...,):
        return strict.each(strict.text) if parts[0] is str else _all_of(parts[0])
    if is_typeddict(hint):
        return strict.record(
            {key: check_of(key, one) for key, one in get_type_hints(hint, include_extras=True).items()}
        )
    if isinstance(hint, type) and hint is not float:
        return _instance_of(hint)
    raise TypeError(f"no check is known for {name}: {hint}")


def _instance_of(kind: type) -> Check:
    def check(name: str, value: object) -> object:
        if not isinstance(value, kind):
            raise strict.wrong(name, value, f"a {kind.__name__}")
        return value

    return check


def _all_of(kind: type) -> Check:
    def check(name: str, value: object) -> object:
        if not isinstance(value, tuple) or not all(isinstance(item, kind) for item in value):
            raise strict.wrong(name, value, f"a tuple of {kind.__name__}")
        return value

    return check


class Tagged:
    """A dataclass that is checked when it is made, and states its kind when it is written."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        check(self)

    def to_dict(self) -> dict[str, object]:
        """The fields with the kind as JSON-able values."""
        return {"kind": self.kind, **to_dict(self)}


def to_dict(holder: object) -> dict[str, object]:
    """The fields of a dataclass as JSON-able values; an infinite number is the text "inf"."""
    return {name: to_plain(name, getattr(holder, name)) for name in strict.names(type(holder))}


def to_plain(name: str, value: Any) -> object:
    """A value as JSON-able ones; what has fields or a ``to_dict`` as a mapping."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [to_plain(name, item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return to_dict(value)
    return strict.plain(name, value)


def from_dict(kind: type[T], name: str, values: object, readers: Readers = NO_READERS) -> T:
    """The inverse of `to_dict`: refuses missing and unknown fields, and what ``kind`` itself refuses."""
    return kind(**decoded(kind, strict.mapping(name, values, strict.names(kind)), readers))


def kind_of(name: str, values: object, kinds: Mapping[str, type[T]]) -> tuple[type[T], dict[str, Any]]:
    """The kind that a mapping names under "kind", and the rest of the mapping."""
    found = strict.mapping(name, values)
    kind = strict.one_of(f"kind of {name}", found.pop("kind", None), kinds)
    return kinds[kind], found


def decoded(kind: type, values: Mapping[str, Any], readers: Readers = NO_READERS) -> dict[str, Any]:
    """Fields of a dataclass from what JSON holds, to be checked by the dataclass itself."""
    known = hints(kind)
    return {name: _decoded(name, known[name], value, readers) for name, value in values.items()}


def _decoded(name: str, hint: Any, value: Any, readers: Readers) -> Any:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if hint in readers:
        return readers[hint](value)
    if float in parts_of(hint):
        return strict.numeric(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(strict.one_of(name, value, [item.value for item in hint]))
    if hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    if get_origin(hint) is tuple and (reader := _reader(get_args(hint)[0], readers)):
        return tuple(map(reader, strict.sequence(name, value)))
    return value


def _reader(hint: Any, readers: Readers) -> Callable[[Any], Any] | None:
    return readers.get(hint) or getattr(hint, "from_dict", None)
