"""One kind of release in a plan, by itself a value that can be stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from .. import mechanisms, strict
from ..accounting import Event
from ..mechanisms import Mechanism, Round, sampling
from ..mechanisms.sampling import Everyone, Sampling
from ..privacy import Neighbours

Releasable = Mapping[str, tuple[type[Mechanism], ...]]
"""Names of queries, and the mechanisms that may release each."""


def names(kind: type) -> tuple[str, ...]:
    """The fields that a dataclass is made of."""
    return tuple(field.name for field in fields(kind) if field.init)


@dataclass(frozen=True)
class Release:
    """One kind of release: which query, by which mechanism, how often, on which records.

    ``entries`` is how many numbers are drawn for one release: the entries of a vector, or the
    candidates of a selection. ``sensitivity`` is told in words; for a round, in those of the selection and
    those of the value that is released after it.
    """

    query: str
    mechanism: Mechanism
    count: int
    sensitivity: str | tuple[str, str]
    sampling: Sampling = Everyone()
    entries: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise strict.wrong("mechanism", self.mechanism, "a Mechanism")
        if not hasattr(type(self.sampling), "price"):
            raise strict.wrong("sampling", self.sampling, "a Sampling")
        words = strict.two_texts if isinstance(self.mechanism, Round) else strict.text
        strict.keep(self, query=strict.text, count=strict.whole, sensitivity=words, entries=strict.whole)

    def event(self, neighbours: Neighbours) -> Event:
        """What one such release costs, its noise being exactly that of its law."""
        return self.sampling.price(self.mechanism, neighbours)

    def scaled(self, factor: float) -> Release:
        """The same release with all noise multiplied."""
        return replace(self, mechanism=self.mechanism.scaled(factor))

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is released, a line for each mechanism: two for a round, of which the second follows."""
        if isinstance(self.sensitivity, str) or not isinstance(self.mechanism, Round):
            return (Line(self.query, self.mechanism, str(self.sensitivity), self.entries),)
        selection, value = self.sensitivity
        return (
            Line(self.query, self.mechanism.selection, selection, self.entries),
            Line(Round.value, self.mechanism.additive, value, 1, follows=True),
        )

    def told(self, fits: int) -> list[dict[str, Any]]:
        """The lines as a promise tells them, for so many fits."""
        return [
            {
                "query": line.query,
                **_to_dict(line.mechanism),
                "count": self.count * fits,
                "sensitivity": line.sensitivity,
                "sampling": self.sampling.words,
                "entries": line.entries,
                "follows": line.follows,
            }
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, object]:
        """The release as JSON-able values."""
        return {
            "query": self.query,
            **_to_dict(self.mechanism),
            "count": self.count,
            "sensitivity": strict.plain("sensitivity", self.sensitivity),
            "sampling": {"kind": type(self.sampling).__name__, **vars(self.sampling)},
            "entries": self.entries,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Release:
        """The inverse of ``to_dict``; refuses what ``to_dict`` cannot have written."""
        found, mechanism = _from_dict("a release", values, names(cls))
        drawn = strict.mapping("sampling", found["sampling"])
        sample = sampling.BY_NAME[strict.one_of("kind of sampling", drawn.get("kind"), sampling.BY_NAME)]
        drawn = strict.mapping("sampling", drawn, ("kind", *names(sample)))
        del drawn["kind"]
        return cls(**found | {"mechanism": mechanism, "sampling": sample(**drawn)})


class Line(NamedTuple):
    """One mechanism of a release, as plans and promises show it."""

    query: str
    mechanism: Mechanism
    sensitivity: str
    entries: int
    follows: bool = False


def _to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism as JSON-able values; those that it consists of are among its parameters."""
    parameters = {name: getattr(mechanism, name) for name in names(type(mechanism))}
    noise = {"noise": parameters.pop("noise")} if "noise" in parameters else {}
    parts = {
        name: _to_dict(value) if isinstance(value, Mechanism) else value for name, value in parameters.items()
    }
    return {"mechanism": type(mechanism).__name__, **noise, "parameters": parts}


def _from_dict(
    name: str, values: Any, others: Collection[str] = ("mechanism",)
) -> tuple[dict[str, Any], Mechanism]:
    """The inverse of ``_to_dict``, for values that have other keys beside it; these, and the mechanism."""
    found = strict.mapping(name, values)
    known = mechanisms.BY_NAME
    kind: type[Any] = known[strict.one_of("mechanism", found.get("mechanism"), known)]
    own = names(kind)
    noise = ("noise",) if "noise" in own else ()
    found = strict.mapping(name, found, (*others, *noise, "parameters"))
    settings = [setting for setting in own if setting != "noise"]
    parameters = strict.mapping("parameters", found.pop("parameters"), settings)
    parts = {
        setting: _from_dict(setting, value)[1] if isinstance(value, Mapping) else value
        for setting, value in parameters.items()
    }
    return found, kind(*(found.pop(level) for level in noise), **parts)
