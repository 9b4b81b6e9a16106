"""The promise: its parameters, and the words in which a fit states it."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context
from enum import Enum
from numbers import Real
from typing import Any


class Neighbours(Enum):
    """Which two tables must be hard to tell apart. The number of records n is public in both."""

    REPLACE_ONE = "replace-one"
    ZERO_OUT = "zero-out"

    @property
    def records_moved(self) -> int:
        """How many clipped contributions differ between neighbours: 2 replaced, 1 zeroed out."""
        return 2 if self is Neighbours.REPLACE_ONE else 1

    @property
    def words(self) -> str:
        if self is Neighbours.REPLACE_ONE:
            return "one record replaced by any other"
        return "one record replaced by a null record that adds nothing"


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) to be spent; epsilon may be infinite, which buys no privacy.

    Examples
    --------
    >>> from dpglm import Budget
    >>> Budget(epsilon=1.0, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (isinstance(self.epsilon, Real) and self.epsilon > 0):
            raise ValueError(f"epsilon must be a positive number (or infinity), got {self.epsilon!r}")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {self.delta!r}")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @classmethod
    def for_records(cls, epsilon: float, delta: float | None, n_records: int) -> Budget:
        """The budget of a fit to n records: delta defaults to 1/n², and to 1/100 below ten records."""
        return cls(epsilon, 1.0 / max(n_records, 10) ** 2 if delta is None else delta)

    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""
        return math.isfinite(self.epsilon)


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


@dataclass(frozen=True)
class Guarantee:
    """What a fit promises, to be printed and kept.

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
        What the promise does not speak of.
    """

    epsilon: float
    delta: float
    neighbours: str
    public: Mapping[str, Any]
    releases: tuple[Mapping[str, Any], ...]
    composition: str
    randomness: str
    secure: bool
    not_covered: tuple[str, ...] = NOT_COVERED

    def to_dict(self) -> dict[str, Any]:
        """The promise as JSON-able values."""
        return asdict(self)

    def to_json(self) -> str:
        """The promise as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """The inverse of ``to_dict``."""
        fields = dict(values)
        return cls(
            **fields | {"releases": tuple(fields["releases"]), "not_covered": tuple(fields["not_covered"])}
        )

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

    def __str__(self) -> str:
        relation = Neighbours(self.neighbours).words
        lines = [
            self.headline,
            f"neighbours : {self.neighbours} ({relation})",
            "public     : " + "; ".join(f"{name} = {value}" for name, value in self.public.items()),
            *(
                "releases   : "
                f"{r['count']} x {r['query']} by {r['mechanism']}, noise {r['noise']:.4g} x sensitivity"
                f" {r['sensitivity']}, {r['sampling']}"
                for r in self.releases
            ),
            f"composed   : {self.composition}",
            f"randomness : {self.randomness}",
            *(f"not covered: {item}" for item in self.not_covered),
        ]
        return "\n".join(
            textwrap.fill(line, width=100, subsequent_indent=" " * 13, break_on_hyphens=False)
            for line in lines
        )
