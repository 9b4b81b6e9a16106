"""The promise: its parameters, and the words in which a fit states it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from enum import Enum
from typing import Annotated, Literal, TypedDict

from . import codec, display, strict

UNITS = ("record", "person")
"""What a promise may protect: one record, or all records of one person."""


class Neighbours(Enum):
    """Which two tables must be hard to tell apart.

    The number of records n is public in the first two, and private where a record is added or removed.
    """

    REPLACE_ONE = "replace-one"
    ZERO_OUT = "zero-out"
    ADD_REMOVE = "add-remove"

    def __init__(self, name: str) -> None:
        self.records_moved = 2 if name == "replace-one" else 1
        """How many clipped contributions differ between neighbours: 2 replaced, 1 in the other relations."""
        self.size_is_public = name != "add-remove"
        """Whether neighbours have the same number of records."""

    @classmethod
    def from_name(cls, name: object) -> Neighbours:
        """The relation of this name; another name is refused."""
        return cls(strict.one_of("neighbours", name, [relation.value for relation in cls]))

    @property
    def priced_as(self) -> Literal["zero-out", "replace-one"]:
        """The relation whose prices hold: a record that is not there adds nothing, as a null record."""
        return "replace-one" if self is Neighbours.REPLACE_ONE else "zero-out"

    @property
    def words(self) -> str:
        return _RELATIONS[self.value]

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What a promise for this relation does not cover."""
        return NOT_COVERED if self.size_is_public else _NOT_COVERED_ADD_REMOVE

    def of(self, unit: str) -> str:
        """The relation in words, for units of a kind."""
        if unit == "record":
            return self.words
        others = "any others" if self is Neighbours.REPLACE_ONE else "null records that add nothing"
        return f"all records of one {unit} replaced by {others}"

    def not_covered_for(self, unit: str) -> tuple[str, ...]:
        """What a promise to units of a kind does not cover."""
        if unit == "record":
            return self.not_covered
        counted = [line.replace("number of records n", f"number of {unit}s n") for line in self.not_covered]
        return *counted, f"a {unit} whose records stand under several ids"


PUBLIC_SIZE = (Neighbours.REPLACE_ONE, Neighbours.ZERO_OUT)
"""Relations in which the number of records is public."""

_RELATIONS = {
    "replace-one": "one record replaced by any other",
    "zero-out": "one record replaced by a null record that adds nothing",
    "add-remove": "one record added or removed: the number of records is private",
}

_DOUBTS = {
    "replace-one": "every record but one, and finds two candidates for that one equally likely",
    "zero-out": (
        "every record, and finds it equally likely that a null record stands in place of one or not"
    ),
    "add-remove": "every record but one, and finds it equally likely that this one is in the table or not",
}

_DOUBTS_OF_PERSONS = {
    "replace-one": (
        "the records of every person but one, and finds two candidates for all records of that one equally "
        "likely"
    ),
    "zero-out": (
        "every record, and finds it equally likely that null records stand in place of those of one person "
        "or not"
    ),
}

LEAST = 1e-12
"""The least epsilon of a fit: a smaller one buys noise that no table can outweigh."""

_POSITIVE = strict.within("a positive number (or infinity)", lambda epsilon: epsilon > 0)
_DELTA = strict.within("strictly between 0 and 1", lambda delta: 0 < delta < 1)


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) to be spent; epsilon may be infinite, which buys no privacy.

    Examples
    --------
    >>> from dpglm import Budget
    >>> Budget(epsilon=1.0, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: Annotated[float, _POSITIVE]
    delta: Annotated[float, _DELTA]
    private: bool = field(init=False, repr=False, compare=False)
    """Whether anything is promised at all."""

    def __post_init__(self) -> None:
        codec.check(self)
        object.__setattr__(self, "private", math.isfinite(self.epsilon))

    @classmethod
    def for_records(cls, epsilon: float, delta: float | None, n_records: int) -> Budget:
        """The budget of a fit to n records: delta defaults to 1/n², and to 1/100 below ten records."""
        needed = f"a positive number (or infinity), at least {LEAST:g}"
        strict.number("epsilon", epsilon, needed, lambda found: found >= LEAST)
        return cls(epsilon, 1.0 / max(n_records, 10) ** 2 if delta is None else delta)

    def to_dict(self) -> dict[str, object]:
        """The budget as JSON-able values; an infinite epsilon is the text "inf"."""
        return codec.to_dict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Budget:
        """The inverse of ``to_dict``."""
        return codec.from_dict(cls, "budget", values)


def rounded_up(number: float, digits: int) -> str:
    """The number with so many significant digits, never below itself: a promise must not be shortened."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(repr(float(number)))):.{digits}g}"


NOT_COVERED = (
    "choosing hyper-parameters, features or bounds by looking at the same records",
    "any other statistic of the same records: each fit, score or plot released beside this one adds to"
    " the price",
    "the number of records n, which is treated as public",
    "an observer of running time, memory or the unreleased state of this process",
)

_NOT_COVERED_ADD_REMOVE = (
    *NOT_COVERED[:2],
    "errors about tables that no fit accepts, such as arrays of different lengths, which state their lengths",
    NOT_COVERED[3],
)


class StatedRelease(TypedDict):
    """What a promise states of each kind of release."""

    query: str
    mechanism: str
    noise: codec.Level
    parameters: Annotated[Mapping[str, object], strict.mapping]
    count: int
    sensitivity: str
    sampling: str
    entries: int
    follows: bool


_SPENT = strict.within("a number that is not negative", lambda epsilon: epsilon >= 0)
"""What was spent may be nothing: a delta above the rate of a single batch pays for all of it."""

_OPTIONAL = {"unit": "record", "record_share": None}
"""Fields that are left out of a stored promise if they have these values."""

_FORMAT, PROMISE_VERSION = "dpglm promise", 1

_HARDLY_ANY_DOUBT = 1e-4


@dataclass(frozen=True)
class Guarantee:
    """What a fit promises, to be printed and kept.

    A promise that contradicts itself is refused, but one that was read from a file is a statement, not a
    proof: how records were sampled is kept in words, so the price of the releases is not computed again. The
    plan is the proof: `dpglm.plan.Plan` computes its epsilon whenever it is read.

    Attributes
    ----------
    epsilon, delta : float
        The differential privacy that holds for everything the fit returned.
    neighbours : str
        The relation for which it holds.
    public : dict
        What was treated as known to everybody.
    releases : tuple of dict
        Each mechanism with its count and noise.
    composition : str
        How the price was added up.
    randomness : str
        Where the noise came from.
    secure : bool
        Whether the noise was unpredictable. If not, nothing is promised.
    not_covered : tuple of str
        What the promise does not cover.
    unit : str
        What it protects: a "record", or a "person" with all of its records.
    record_share : str or None
        Which share of the records counted, as far as the releases tell; None if it is not of a fit.
    """

    epsilon: Annotated[float, _SPENT]
    delta: Annotated[float, _DELTA]
    neighbours: Annotated[str, strict.named([kind.value for kind in Neighbours])]
    public: Annotated[Mapping[str, object], codec.plain_mapping]
    releases: Annotated[tuple[StatedRelease, ...], strict.each(codec.check_of("release", StatedRelease))]
    composition: str
    randomness: str
    secure: bool
    not_covered: tuple[str, ...] = NOT_COVERED
    unit: Annotated[str, strict.named(UNITS)] = "record"
    record_share: str | None = None

    def __post_init__(self) -> None:
        codec.check(self)
        if not self.not_covered:
            raise strict.wrong("not_covered", self.not_covered, "a list with at least one entry")
        if math.isfinite(self.epsilon) and not (self.releases and all(r["noise"] > 0 for r in self.releases)):
            raise strict.wrong(
                "epsilon", self.epsilon, "infinite if nothing, or something without noise, was released"
            )
        for release in self.releases:
            priced_as = Neighbours(self.neighbours).priced_as
            relation = release["parameters"].get("neighbours", priced_as)
            if relation != priced_as:
                raise strict.wrong("neighbours of a release", relation, repr(priced_as))

    def to_dict(self) -> dict[str, object]:
        """The promise as JSON-able values; an infinite epsilon is the text "inf".

        ``dpglm.report.json_schema("promise")`` describes them.
        """
        absent = {name for name, value in _OPTIONAL.items() if getattr(self, name) == value}
        stated = {name: value for name, value in codec.to_dict(self).items() if name not in absent}
        return strict.sealed({"format": _FORMAT, "version": PROMISE_VERSION, **stated})

    def to_json(self) -> str:
        """The promise as strict JSON text."""
        return strict.to_json(self.to_dict())

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Guarantee:
        """The inverse of ``to_dict``; refuses what contradicts itself or was edited."""
        found = strict.mapping("a guarantee", values)
        # Promises that were written before there were versions have neither of both fields.
        stated = found.pop("format", _FORMAT), found.pop("version", PROMISE_VERSION)
        if stated != (_FORMAT, PROMISE_VERSION):
            raise ValueError("this promise has a format or version that this dpglm cannot read")
        fields = [name for name in strict.names(cls) if name not in _OPTIONAL or name in found]
        found = strict.mapping("a guarantee", found, ("digest", *fields))
        del found["digest"]
        guarantee = cls(**codec.decoded(cls, found))
        strict.require_sealed("the guarantee", values)
        return guarantee

    @classmethod
    def from_json(cls, content: str) -> Guarantee:
        """The inverse of ``to_json``."""
        return cls.from_dict(strict.from_json(content))

    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""
        return self.secure and math.isfinite(self.epsilon)

    @property
    def headline(self) -> str:
        """The promise in one sentence."""
        if not math.isfinite(self.epsilon):
            return "NOT PRIVATE: epsilon is infinite, no noise was added."
        epsilon, delta = rounded_up(self.epsilon, 6), rounded_up(self.delta, 3)
        promise = f"({epsilon}, {delta})-differential privacy"
        if not self.secure:
            return f"NOT PRIVATE: the noise can be predicted. With secret noise this would be {promise}."
        return f"{promise}: epsilon = {epsilon}, delta = {delta}."

    @property
    def doubt(self) -> str:
        """What someone knows who cannot tell two neighbouring tables apart, and what not."""
        return _DOUBTS[self.neighbours] if self.unit == "record" else _DOUBTS_OF_PERSONS[self.neighbours]

    @property
    def meaning(self) -> str:
        """What the promise means for one record; empty if nothing is promised.

        Of two tables that are equally likely, any rule names the right one with a probability of at most
        (e^epsilon + delta) / (1 + e^epsilon): the sum of the inequalities of the definition, one for each.
        """
        if not self.private:
            return ""
        wrong = (1 - self.delta) / (1 + math.exp(min(self.epsilon, 700.0)))
        often = f"at most {_complement(wrong)} % of the time"
        if wrong < _HARDLY_ANY_DOUBT:
            often = "perhaps almost always, since an epsilon this large hides little"
        return (
            f"someone who knows {self.doubt}, guesses from the result which is true and is right {often}"
            " (without the result: 50 %; report() has the sharper bound of the whole curve)"
        )

    def __str__(self) -> str:
        lines = [
            self.headline,
            *([f"in words   : {self.meaning}"] if self.private else []),
            f"neighbours : {self.relation}",
            "public     : " + "; ".join(f"{name} = {value}" for name, value in self.public.items()),
            *(
                "releases   : "
                f"{r['count']} x {r['query']} by {r['mechanism']}, noise {r['noise']:.4g} x sensitivity"
                f" {r['sensitivity']}, {r['sampling']}"
                for r in self.releases
            ),
            f"composed   : {self.composition}",
            f"randomness : {self.randomness}",
            *([f"records    : {self.record_share}"] if self.record_share else []),
            *(f"not covered: {item}" for item in self.not_covered),
        ]
        return "\n".join(
            textwrap.fill(line, width=100, subsequent_indent=" " * 13, break_on_hyphens=False)
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The promise as a notebook shows it."""
        return display.card(
            "private" if self.private else "not private",
            self.private,
            self.headline,
            display.paragraph(f"In words: {self.meaning}." if self.private else ""),
            display.releases(
                (
                    str(r["count"]),
                    r["query"],
                    r["mechanism"],
                    f"{r['noise']:.4g}",
                    r["sensitivity"],
                    r["sampling"],
                )
                for r in self.releases
            ),
            display.facts(
                [
                    ("neighbours", self.relation),
                    *((f"public: {name}", str(value)) for name, value in self.public.items()),
                    ("composed", self.composition),
                    ("randomness", self.randomness),
                    *([("records", self.record_share)] if self.record_share else []),
                ]
            ),
            display.folded("What this does not cover", display.items(self.not_covered)),
        )

    @property
    def relation(self) -> str:
        """The relation with its meaning."""
        return f"{self.neighbours} ({Neighbours(self.neighbours).of(self.unit)})"


def _complement(share: float) -> str:
    """100 % less the share in percent, never below it: digits of the share are cut off after the third."""
    context = Context(prec=3, rounding=ROUND_FLOOR)
    return f"{(100 - 100 * context.create_decimal(repr(share))).normalize():f}"
