"""Settings of plans: fields that a solver adds, and what their annotations allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, get_args, get_type_hints

from .. import accounting, strict

if TYPE_CHECKING:
    from .plan import Plan

Setting = bool | int | float | str | tuple[float, ...] | None
"""What a setting of a plan may be."""

Types = Mapping[str, tuple[object, ...]]
"""Settings by their names, with the types that each may have."""

_NUMBERS = tuple[float, ...]


_TYPES: dict[type[Plan], Types] = {}
_CHECKS: dict[tuple[type[Plan], bool], dict[str, strict.Check]] = {}


def types_of(kind: type[Plan], shared: Collection[str]) -> Types:
    """The settings of a kind of plan: its fields but for the shared ones; looked up once for each kind."""
    if kind not in _TYPES:
        hints = get_type_hints(kind)
        _TYPES[kind] = {
            name: get_args(hints[name]) if isinstance(hints[name], UnionType) else (hints[name],)
            for name in strict.names(kind)
            if name not in shared
        }
    return _TYPES[kind]


def checks_of(kind: type[Plan], shared: Collection[str], private: bool) -> dict[str, strict.Check]:
    """The check for each setting of a kind of plan, made once for each kind."""
    if (kind, private) not in _CHECKS:
        _CHECKS[kind, private] = {
            name: _check(name, kinds, kind.choices.get(name), private)
            for name, kinds in types_of(kind, shared).items()
        }
    return _CHECKS[kind, private]


def _check(
    name: str, kinds: tuple[object, ...], known: Collection[str] | None, private: bool
) -> strict.Check:
    """The check for a setting of the types that its annotation names."""
    by_type: dict[object, strict.Check] = {
        bool: strict.flag,
        int: partial(strict.whole, least=int(name == "steps")),
        float: strict.level if private else accounting.NOT_NEGATIVE,
        str: strict.text if known is None else strict.named(known),
    }
    scalars = [kind for kind in kinds if kind not in (NoneType, _NUMBERS)]
    if len(scalars) > 1 or not by_type.keys() >= set(scalars):
        raise TypeError(
            f"a setting is a bool, int, float, str, tuple of floats or None, but {name} is one of {kinds}"
        )
    check = by_type[scalars[0]] if scalars else None
    return strict.either(check, numbers=_NUMBERS in kinds, none=NoneType in kinds)
