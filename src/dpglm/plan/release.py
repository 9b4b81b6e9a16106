"""One kind of release in a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .. import codec, mechanisms, strict
from ..accounting import Event
from ..mechanisms import Mechanism, Round, sampling
from ..mechanisms.sampling import Everyone, Sampling
from ..privacy import Neighbours, StatedRelease

Releasable = Mapping[str, tuple[type[Mechanism], ...]]
"""Names of queries, and the mechanisms that may release each."""


@dataclass(frozen=True)
class Release:
    """One kind of release: which query, by which mechanism, how often, on which records.

    ``entries`` is how many numbers are drawn for one release: the entries of a vector, or the
    candidates of a selection. ``sensitivity`` is text; for a round two texts, for the selection and for the
    value that is released after it.
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
        """Return the event of one such release, with noise exactly from its distribution."""
        return self.sampling.price(self.mechanism, neighbours)

    def scaled(self, factor: float) -> Release:
        """Return the release with its noise multiplied by ``factor``."""
        return replace(self, mechanism=self.mechanism.scaled(factor))

    @property
    def lines(self) -> tuple[Line, ...]:
        """A line per mechanism: two for a round, of which the second follows the first."""
        if isinstance(self.sensitivity, str) or not isinstance(self.mechanism, Round):
            return (Line(self.query, self.mechanism, str(self.sensitivity), self.entries),)
        selection, value = self.sensitivity
        return (
            Line(self.query, self.mechanism.selection, selection, self.entries),
            Line(Round.value, self.mechanism.additive, value, 1, follows=True),
        )

    def stated(self, fits: int) -> list[StatedRelease]:
        """The lines as a guarantee states them, for a number of fits."""
        return [
            {
                "query": line.query,
                "mechanism": type(line.mechanism).__name__,
                "noise": line.mechanism.noise,
                "parameters": _parameters(line.mechanism),
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
        fields, mechanism = _from_dict("a release", values, strict.names(cls))
        kind, sampled = codec.kind_of("sampling", fields["sampling"], sampling.BY_NAME)
        return cls(
            **fields | {"mechanism": mechanism, "sampling": codec.from_dict(kind, "sampling", sampled)}
        )


class Line(NamedTuple):
    """One mechanism of a release, as plans and promises show it."""

    query: str
    mechanism: Mechanism
    sensitivity: str
    entries: int
    follows: bool = False


def _to_dict(mechanism: Mechanism) -> dict[str, object]:
    """A mechanism as JSON-able values; mechanisms that it consists of are nested in its parameters."""
    noise = {"noise": mechanism.noise} if "noise" in strict.names(type(mechanism)) else {}
    return {"mechanism": type(mechanism).__name__, **noise, "parameters": _parameters(mechanism)}


def _parameters(mechanism: Mechanism) -> dict[str, object]:
    values = {name: getattr(mechanism, name) for name in strict.names(type(mechanism)) if name != "noise"}
    return {
        name: _to_dict(value) if isinstance(value, Mechanism) else value for name, value in values.items()
    }


def _from_dict(
    name: str, values: object, others: Collection[str] = ("mechanism",)
) -> tuple[dict[str, Any], Mechanism]:
    """The inverse of ``_to_dict``: the values of the other keys, and the mechanism."""
    fields = strict.mapping(name, values)
    kind = mechanisms.BY_NAME[strict.one_of("mechanism", fields.get("mechanism"), mechanisms.BY_NAME)]
    own = strict.names(kind)
    noise = ("noise",) if "noise" in own else ()
    fields = strict.mapping(name, fields, (*others, *noise, "parameters"))
    settings = [setting for setting in own if setting != "noise"]
    parameters = strict.mapping("parameters", fields.pop("parameters"), settings)
    parts: dict[str, Any] = {
        setting: _from_dict(setting, value)[1] if isinstance(value, Mapping) else value
        for setting, value in parameters.items()
    }
    return fields, kind(*(fields.pop(level) for level in noise), **parts)
