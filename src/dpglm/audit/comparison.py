"""Comparison of all that two runs leave behind, attribute by attribute."""

from __future__ import annotations

import copy
import pickle
import random
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from ..mechanisms import Randomness

_GENERATORS = (Randomness, random.Random, np.random.BitGenerator, np.random.Generator, np.random.RandomState)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type)

T = TypeVar("T")


def separate(thing: T) -> T:
    """A copy that shares nothing with the original but generators of random numbers and what has no copies.

    A generator goes on, as it does in use: a copy would repeat its noise.
    """
    twin = copy.copy(thing)
    memo: dict[int, object] = {}
    for name, value in vars(twin).items():
        if not isinstance(value, _PLAIN):
            memo.update({id(generator): generator for generator in _generators(value)})
            try:
                # Also into a frozen object, which its twin is.
                object.__setattr__(twin, name, copy.deepcopy(value, memo))
            except (TypeError, NotImplementedError, pickle.PickleError):
                continue
    return twin


def differing(here: object, there: object, name: str = "") -> list[str]:
    """Names of what differs between two objects: paths to the attributes and entries in question."""
    if here is there or (type(here) is float and here == there):  # most often, and at every release
        return []
    return sorted(set(_differing(here, there, name, set())))


def _differing(here: Any, there: Any, name: str, seen: set[tuple[int, int]]) -> list[str]:
    if here is there or isinstance(here, _GENERATORS) or (id(here), id(there)) in seen:
        return []
    if type(here) is not type(there):
        return [name]
    if isinstance(here, _PLAIN):
        return [] if here == there or (here != here and there != there) else [name]
    seen.add((id(here), id(there)))
    if isinstance(here, np.ndarray) and here.dtype != object:
        # NaN equals nothing, but is stored alike.
        same = here.shape == there.shape and (
            np.array_equal(here, there) or here.tobytes() == there.tobytes()
        )
        return [] if same else [name]
    if not hasattr(here, "__dict__") and not isinstance(here, (dict, list, tuple, np.ndarray)):
        return [] if here == there or _contents(here) == _contents(there) else [name]
    parts = [_contents(thing) for thing in (here, there)]
    if parts[0].keys() != parts[1].keys():
        odd = parts[0].keys() ^ parts[1].keys()
        return [f"{name}.{key}".lstrip(".") for key in sorted(odd, key=str)]
    return [
        found
        for key, part in parts[0].items()
        for found in _differing(part, parts[1][key], f"{name}.{key}".lstrip("."), seen)
    ]


def _contents(thing: object) -> dict[object, object]:
    """What an object consists of, by name or place."""
    if isinstance(thing, FunctionType):
        cells = (cell.cell_contents for cell in thing.__closure__ or ())
        return {"code": thing.__code__.co_code, "defaults": thing.__defaults__, **dict(enumerate(cells))}
    found: dict[object, object] = dict(getattr(thing, "__dict__", {}))
    if isinstance(thing, dict):
        return found | thing
    if isinstance(thing, (list, tuple)) or (isinstance(thing, np.ndarray) and thing.dtype == object):
        return found | dict(enumerate(np.ravel(thing) if isinstance(thing, np.ndarray) else thing))
    if found and not any("__reduce__" in vars(kind) for kind in type(thing).__mro__[:-1]):
        return found
    try:
        return found | {"stored": pickle.dumps(thing)}
    except (TypeError, AttributeError, NotImplementedError, pickle.PickleError):
        return found


def _generators(thing: object, seen: set[int] | None = None) -> list[object]:
    """Every generator of random numbers that an object holds, however deep."""
    seen = set() if seen is None else seen
    if isinstance(thing, _GENERATORS):
        return [thing]
    if isinstance(thing, (*_PLAIN, np.ndarray, FunctionType)) or id(thing) in seen:
        return []
    seen.add(id(thing))
    parts: list[object] = list(getattr(thing, "__dict__", {}).values())
    if isinstance(thing, dict):
        parts += thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        parts += thing
    return [generator for part in parts for generator in _generators(part, seen)]
