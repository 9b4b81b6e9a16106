"""What an audit found, to be printed and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

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
        What told the tables apart best.
    """

    subject: str
    seen: str
    neighbours: str
    epsilon: float
    delta: float
    lower: float
    fitted: float
    runs: int
    violated: bool
    how: str

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
        numbers = (
            [""] * 3 if self.seen == "replay" else [f"{self.lower:.3f}", self._fitted, f"{self.ratio:.0%}"]
        )
        return (
            self.subject,
            self.seen,
            self.neighbours,
            f"{self.epsilon:.4g}",
            f"{self.delta:.3g}",
            *numbers,
            str(self.runs or "exact"),
            self.verdict,
        )

    @property
    def _fitted(self) -> str:
        return f"{self.fitted:.3f}" if self.fitted else "-"


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
    confidence: float

    @property
    def violated(self) -> bool:
        """Whether any claim was refuted."""
        return any(finding.violated for finding in self.findings)

    def __add__(self, other: Report) -> Report:
        return Report(self.findings + other.findings, min(self.confidence, other.confidence))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-able values; an infinite bound is the text "inf"."""
        findings = []
        for finding in self.findings:
            values = asdict(finding) | {"ratio": finding.ratio, "verdict": finding.verdict}
            findings.append({name: "inf" if value == math.inf else value for name, value in values.items()})
        return {"confidence": self.confidence, "violated": self.violated, "findings": findings}

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """The inverse of ``to_dict``."""
        findings = []
        for row in values["findings"]:
            fields: dict[str, Any] = {
                name: math.inf if value == "inf" else value for name, value in row.items()
            }
            findings.append(Finding(**{n: v for n, v in fields.items() if n not in ("ratio", "verdict")}))
        return cls(tuple(findings), values["confidence"])

    def __str__(self) -> str:
        rows = [COLUMNS, *(finding.cells for finding in self.findings)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )
