"""One kind of release in a plan, by itself a value that can be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from . import mechanisms, sampling, strict
from .accounting import Event
from .mechanisms import Mechanism
from .privacy import Neighbours
from .sampling import Everyone, Sampling

Releasable = Mapping[str, tuple[type[Mechanism], ...]]
"""Names of queries, and the mechanisms that may release each."""


def names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass."""
    return tuple(field.name for field in fields(kind))


@dataclass(frozen=True)
class Release:
    """One kind of release: which query, by which mechanism, how often, on which records.

    ``entries`` is how many numbers are drawn for one release: the entries of a vector, or the
    candidates of a selection. A release that ``follows`` is made right after each of those before it in the
    plan, and priced as one round with it.
    """

    query: str
    mechanism: Mechanism
    count: int
    sensitivity: str
    sampling: Sampling = Everyone()
    entries: int = 1
    follows: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise strict.wrong("mechanism", self.mechanism, "a Mechanism")
        if not hasattr(type(self.sampling), "price"):
            raise strict.wrong("sampling", self.sampling, "a Sampling")
        strict.store(
            self,
            query=strict.text("query", self.query),
            count=strict.whole("count", self.count),
            sensitivity=strict.text("sensitivity", self.sensitivity),
            entries=strict.whole("entries", self.entries),
            follows=strict.flag("follows", self.follows),
        )

    def event(self, neighbours: Neighbours) -> Event:
        """What one such release costs, its noise being exactly that of its law."""
        return self.sampling.price(self.mechanism, neighbours)

    def scaled(self, factor: float) -> Release:
        """The same release with all noise multiplied."""
        return replace(self, mechanism=replace(self.mechanism, noise=self.mechanism.noise * factor))

    def to_dict(self) -> dict[str, object]:
        """The release as JSON-able values."""
        parameters = {name: getattr(self.mechanism, name) for name in names(type(self.mechanism))}
        return {
            "query": self.query,
            "mechanism": type(self.mechanism).__name__,
            "noise": parameters.pop("noise"),
            "parameters": parameters,
            "count": self.count,
            "sensitivity": self.sensitivity,
            "sampling": {"kind": type(self.sampling).__name__, **vars(self.sampling)},
            "entries": self.entries,
            "follows": self.follows,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Release:
        """The inverse of ``to_dict``; refuses what ``to_dict`` cannot have written."""
        keys = (*names(cls), "noise", "parameters")
        found = strict.mapping("a release", values, keys)
        kind = mechanisms.BY_NAME[strict.one_of("mechanism", found["mechanism"], mechanisms.BY_NAME)]
        own = [name for name in names(kind) if name != "noise"]
        parameters = strict.mapping("parameters", found.pop("parameters"), own)
        drawn = strict.mapping("sampling", found["sampling"])
        sample = sampling.BY_NAME[strict.one_of("kind of sampling", drawn.get("kind"), sampling.BY_NAME)]
        drawn = strict.mapping("sampling", drawn, ("kind", *names(sample)))
        del drawn["kind"]
        return cls(
            **found | {"mechanism": kind(found.pop("noise"), **parameters), "sampling": sample(**drawn)}
        )
