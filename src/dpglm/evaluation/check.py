"""How many cells of each column a schema does not read as it should: one release of all counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .. import codec, display, strict
from ..curator import Curator
from ..mechanisms import Gaussian
from ..plan import Plan, Releasable, Release
from ..privacy import Budget, Guarantee, Neighbours
from ..queries import CellCounts

VERSION = 1

NULL = "null record"
"""The kind of what counts for nothing in a fit: it is of records, not of cells."""

_KINDS = ("missing", "unreadable", "out of range", "unknown level")
_ADVICE = {
    "unreadable": "cannot be read: `dpglm schema try` shows what a cell is read as",
    "unknown level": "have a level that is not declared: are spelling and case right?",
    "out of range": "are out of the declared range and cut to it: are unit and range right?",
    "missing": "are missing: `missing` of the column says what that means",
}
_DEVIATIONS = 2.0
_WORTH_A_WORD = 0.01
_USELESS = 0.25


@dataclass(frozen=True)
class CheckPlan(Plan):
    """What a check will release; ``columns`` is how many columns are looked at."""

    solver: ClassVar[str] = "check"
    may_release: ClassVar[Releasable] = {CellCounts.name: (Gaussian,)}

    columns: int

    @classmethod
    def of(cls, query: CellCounts, budget: Budget, neighbours: Neighbours, unit: str) -> CheckPlan:
        """One release of all counts, with the least noise that keeps within the budget."""
        width, entries = len(query.codes), sum(map(len, query.codes))
        stated = f"{query.sensitivity(neighbours):.4g}"
        release = Release(query.name, Gaussian(1.0), 1, stated, entries=entries)
        plan = cls(query.n_records, width, budget, neighbours, 1, (release,), 1, width - 1)
        return plan.calibrated().protecting(unit)

    @property
    def error(self) -> float:
        """Standard error of each share; 0 without noise."""
        if not self.budget.private:
            return 0.0
        (release,) = self.releases
        return release.mechanism.noise * math.sqrt(2 * self.columns + 1) / self.n_records

    @property
    def forecast(self) -> str | None:
        return f"each share will be known to ± {percent_up(_DEVIATIONS * self.error)}"

    @property
    def warning(self) -> str | None:
        if self.error < _USELESS / _DEVIATIONS:
            return None
        return (
            f"{self.n_records} {self.unit}s are too few for epsilon {self.budget.epsilon:g} and "
            f"{self.columns} columns: {self.forecast}"
        )


@dataclass(frozen=True)
class CellShare:
    """The share of the cells of a column, or of the records, that are of a kind.

    Attributes
    ----------
    column : str or None
        None for null records.
    kind : str
        "missing", "unreadable", "out of range", "unknown level" or "null record".
    value : float
        An estimate: noise may take it below 0 or above 1.
    error : float
        Its standard error, by noise alone: it is about these records, not about where they came from.
    """

    column: str | None
    kind: str
    value: float
    error: float

    @property
    def margin(self) -> float:
        """Two standard errors."""
        return _DEVIATIONS * self.error

    @property
    def is_worth_a_word(self) -> bool:
        """Whether more than one of a hundred are of this kind, noise considered."""
        return self.value - self.margin > _WORTH_A_WORD

    def __str__(self) -> str:
        share = f"{percent(self.value)} (± {percent_up(self.margin)})"
        if self.column is None:
            return f"{share} of the records count for nothing in a fit"
        return f"{share} of the cells of {self.column!r} {_ADVICE[self.kind]}"


@dataclass(frozen=True)
class Check:
    """How many cells of each column are missing, unreadable, out of range or unknown, and the promise.

    With persons each of them counts once, as the mean of its records.

    Attributes
    ----------
    shares : tuple of CellShare
        Those of each column, then that of null records.
    plan : Plan
    privacy : Guarantee
        The promise; print it.
    """

    shares: tuple[CellShare, ...]
    plan: CheckPlan
    privacy: Guarantee

    def __getitem__(self, column: str) -> dict[str, CellShare]:
        """The shares of a column, by kind."""
        found = {share.kind: share for share in self.shares if share.column == column}
        if not found:
            raise KeyError(f"no cells of a column {column!r} were counted")
        return found

    @property
    def null_records(self) -> CellShare:
        """The share of the records that count for nothing in a fit."""
        return self.shares[-1]

    @property
    def remarks(self) -> list[str]:
        """What is worth a word, in sentences: the worst kinds first."""
        words = [share for share in self.shares if share.is_worth_a_word and share.column is not None]
        return [str(share) for kind in _ADVICE for share in words if share.kind == kind]

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON-able values."""
        return strict.sealed(
            {
                "format": "dpglm check",
                "version": VERSION,
                "shares": codec.to_plain("shares", self.shares),
                "remarks": self.remarks,
                "plan": self.plan.to_dict(),
                "privacy": self.privacy.to_dict(),
            }
        )

    def to_json(self) -> str:
        """All of it as strict JSON text."""
        return strict.to_json(self.to_dict())

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        columns = dict.fromkeys(share.column for share in self.shares if share.column is not None)
        return [(name, *_cells(self[name])) for name in columns]

    @property
    def _size(self) -> str:
        margin = percent_up(_DEVIATIONS * self.plan.error)
        return f"{self.plan.n_records:,} {self.plan.unit}s, each share ± {margin}"

    def __str__(self) -> str:
        rows = [("", *_KINDS), *self._rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip()
            for name, *cells in rows
        ]
        remarks = self.remarks or ["no other share exceeds 1 % and the noise"]
        return "\n".join(
            [self._size, *lines, "", str(self.null_records), *remarks, "", self.privacy.headline]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The shares as a notebook shows them."""
        private = self.privacy.private
        return display.card(
            "private" if private else "not private",
            private,
            self.privacy.headline,
            display.paragraph(f"{self._size}."),
            display.table(("", *_KINDS), self._rows, figures=range(1, 1 + len(_KINDS))),
            *map(display.paragraph, [str(self.null_records), *self.remarks]),
        )


@dataclass(frozen=True)
class Checker:
    """Releases counts of cells, and makes shares of them.

    Parameters
    ----------
    columns : mapping of str to tuple of str
        For each column the kinds that its cells can be of, in the order of the codes that are counted.
    query : CellCounts
    """

    columns: Mapping[str, Sequence[str]]
    query: CellCounts

    def run(self, plan: CheckPlan, curator: Curator) -> tuple[CellShare, ...]:
        """Carry out a plan."""
        released = curator.release(self.query, plan[self.query.name].mechanism) / plan.n_records
        names: list[tuple[str | None, str]] = [
            (name, kind) for name, kinds in self.columns.items() for kind in kinds
        ]
        return tuple(
            CellShare(name, kind, float(value), plan.error)
            for (name, kind), value in zip([*names, (None, NULL)], released, strict=True)
        )


def percent(share: float) -> str:
    """A share in percent, cut to what is possible."""
    value = 100 * min(max(share, 0.0), 1.0)
    return f"{value:.1f} %" if 0.05 <= value < 10 else f"{value:.0f} %"


def percent_up(share: float) -> str:
    """A margin in percent with two digits, rounded up."""
    if share == 0:
        return "0 %"
    digits = max(0, 1 - math.floor(math.log10(100 * share)))
    return f"{math.ceil(100 * share * 10**digits) / 10**digits:.{digits}f} %"


def _cells(shares: Mapping[str, CellShare]) -> list[str]:
    return [percent(shares[kind].value) if kind in shares else "-" for kind in _KINDS]
