"""What is claimed, and what an audit found of it, to be printed and kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from scipy.optimize import minimize_scalar

from .. import codec, display, strict
from ..accounting import Event, compose

_LARGEST_EPSILON = 700.0
_WIDEST = 1024.0


@dataclass(frozen=True)
class Claim:
    """An (epsilon, delta), and the event behind it where that is known.

    Parameters
    ----------
    epsilon, delta : float
        The promise.
    event : Event, optional
        What was run, as the accountant sees it. It says more than (epsilon, delta): a whole curve, which
        can be contradicted where the one point cannot. Both must hold.
    """

    epsilon: float
    delta: float
    event: Event | None = None

    def allows(self, false_alarms: float, hits: float) -> bool:
        """Whether a test may have these rates if the claim is true.

        Parameters
        ----------
        false_alarms, hits : float
            How often the test says "first" about the second table, and about the first.
        """
        if hits > math.exp(min(self.epsilon, _LARGEST_EPSILON)) * false_alarms + self.delta:
            return False
        if self.event is None or hits <= false_alarms:
            return True
        curve = compose(self.event)

        def slack(epsilon: float) -> float:
            return math.exp(epsilon) * false_alarms + curve.delta(epsilon) - hits

        # Convex in e**epsilon, so a descent finds the least.
        largest = math.log(hits / false_alarms) if false_alarms > 0 else 30.0
        best = minimize_scalar(slack, bounds=(0.0, largest), method="bounded")
        return bool(min(best.fun, slack(0.0)) >= 0)

    def allows_advantage(self, advantage: float, factor: float = 1.0) -> bool:
        """Whether a test may have so many more hits than false alarms.

        An event allows its delta at epsilon 0. ``factor`` makes this the claim that all noise of the event
        is so many times as large.
        """
        odds = math.exp(-self.epsilon)
        if factor == 1.0 and advantage > (1 - odds + 2 * self.delta * odds) / (1 + odds):
            return False
        return self.event is None or advantage <= compose(self.event.scaled(factor)).delta(0.0)

    def explained(self, advantage: float) -> float:
        """The epsilon, at the claim's delta, of as much noise of the claimed kind as an advantage allows.

        All noise of the event is multiplied by the largest factor under which the advantage is possible. The
        result is a lower bound on epsilon if the noise is what the event says but for its size; for Gaussian
        noise it is known as the mu estimator.
        """
        if self.event is None or self.allows_advantage(advantage, _WIDEST):
            return 0.0
        low = high = 1.0
        while self.allows_advantage(advantage, high):
            low, high = high, 2 * high
        while not self.allows_advantage(advantage, low):
            low, high = low / 2, low
            if low < 1 / _WIDEST:
                return math.inf
        while high > low * (1 + 1e-3):
            middle = math.sqrt(low * high)
            if self.allows_advantage(advantage, middle):
                low = middle
            else:
                high = middle
        return compose(self.event.scaled(high)).epsilon(self.delta)


COLUMNS = (
    "subject",
    "seen",
    "relation",
    "claimed",
    "delta",
    "at least",
    "fitted",
    "ratio",
    "runs",
    "verdict",
)

_EPSILON_SLACK = 1e-6
"""A bound above the claim by less than this share may be due to rounding."""


_AT_LEAST_0 = strict.within("at least 0", lambda value: value >= 0)
_CONFIDENCE = strict.within("above 0 and at most 1", lambda value: 0 < value <= 1)
_PROBABILITY = strict.within("from 0 to 1", lambda value: 0 <= value <= 1)


@dataclass(frozen=True)
class Finding:
    """One comparison of a claim with what was seen.

    Attributes
    ----------
    subject : str
        What was audited.
    seen : str
        What the auditor looked at: the ``model``, the ``transcript`` of all releases, the ``output`` of a
        mechanism, its exact ``probabilities``, or a ``replay``.
    neighbours : str
        In what the two tables differed.
    epsilon, delta : float
        The claim.
    lower : float
        A lower bound on epsilon at this delta, whatever the mechanism is.
    fitted : float
        A lower bound on epsilon if the noise is of the claimed kind but for its size; 0 if no kind is known.
    runs : int
        Runs on each of the two tables; 0 if the probabilities were computed.
    violated : bool
        Whether the claim was refuted.
    how : str
        The test that separated the tables best.
    """

    subject: str
    seen: str
    neighbours: str
    epsilon: Annotated[float, _AT_LEAST_0]
    delta: Annotated[float, _PROBABILITY]
    lower: Annotated[float, _AT_LEAST_0]
    fitted: Annotated[float, _AT_LEAST_0]
    runs: Annotated[int, partial(strict.whole, least=0)]
    violated: bool
    how: str

    def __post_init__(self) -> None:
        codec.check(self)
        if self.lower > self.epsilon * (1 + _EPSILON_SLACK) + _EPSILON_SLACK and not self.violated:
            needed = f"True: epsilon is at least {self.lower!r}, not {self.epsilon!r}"
            raise strict.wrong("violated", self.violated, needed)

    @property
    def ratio(self) -> float:
        """How much of the claimed epsilon is proven to be spent."""
        found = max(self.lower, self.fitted)
        return found / self.epsilon if self.epsilon else math.inf if found else 0.0

    @property
    def verdict(self) -> str:
        """The finding in a word."""
        if self.seen == "replay":
            return "DIFFERS" if self.violated else "same"
        return "VIOLATED" if self.violated else "holds"

    @property
    def cells(self) -> tuple[str, ...]:
        """The finding as a row of text under `COLUMNS`."""
        claim = f"{self.epsilon:.4g}", f"{self.delta:.3g}"
        fitted = f"{self.fitted:.3f}" if self.fitted else "-"
        found = ("", "", "") if self.seen == "replay" else (f"{self.lower:.3f}", fitted, f"{self.ratio:.0%}")
        runs = str(self.runs or "exact")
        return self.subject, self.seen, self.neighbours, *claim, *found, runs, self.verdict


@dataclass(frozen=True)
class Report:
    """The findings of an audit.

    Attributes
    ----------
    findings : tuple of Finding
    confidence : float
        Probability with which any one finding from runs neither exceeds the truth nor accuses a true claim.
    """

    findings: tuple[Finding, ...]
    confidence: Annotated[float, _CONFIDENCE]

    def __post_init__(self) -> None:
        codec.check(self)

    @property
    def violated(self) -> bool:
        """Whether any claim was refuted."""
        return any(finding.violated for finding in self.findings)

    def __add__(self, other: Report) -> Report:
        return Report(self.findings + other.findings, min(self.confidence, other.confidence))

    def to_dict(self) -> dict[str, object]:
        """The report as JSON-able values; an infinite bound is the text "inf"."""
        findings = [
            codec.to_dict(finding) | {name: strict.plain(name, getattr(finding, name)) for name in _DERIVED}
            for finding in self.findings
        ]
        return {"confidence": self.confidence, "violated": self.violated, "findings": findings}

    def to_json(self) -> str:
        """The report as strict JSON text."""
        return strict.to_json(self.to_dict())

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Report:
        """The inverse of ``to_dict``; refuses what contradicts itself."""
        found = strict.mapping("a report", values, ("confidence", "violated", "findings"))
        findings = tuple(map(_finding, strict.sequence("findings", found["findings"])))
        report = cls(findings, found["confidence"])
        _same("violated", found["violated"], report.violated)
        return report

    @classmethod
    def from_json(cls, content: str) -> Report:
        """The inverse of ``to_json``."""
        return cls.from_dict(strict.from_json(content))

    def __str__(self) -> str:
        rows = [COLUMNS, *(finding.cells for finding in self.findings)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        count = len(self.findings)
        return display.card(
            "violated" if self.violated else "holds",
            not self.violated,
            f"{count} finding{'s' * (count != 1)}, each with confidence {self.confidence:g}",
            display.table(COLUMNS, (finding.cells for finding in self.findings), names=False),
        )


_DERIVED = ("ratio", "verdict")


def _finding(values: object) -> Finding:
    found = strict.mapping("a finding", values, (*strict.names(Finding), *_DERIVED))
    stated = {name: strict.numeric(found.pop(name)) for name in _DERIVED}
    finding = Finding(**codec.decoded(Finding, found))
    for name, value in stated.items():
        _same(name, value, getattr(finding, name))
    return finding


def _same(name: str, stated: object, found: object) -> None:
    """Refuse a number or word that says otherwise than what it follows from."""
    if type(stated) is not type(found) or stated != found:
        raise strict.wrong(name, stated, f"{found!r}, which follows from the rest")
