"""The table of coefficients, as text and as HTML."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .. import display, strict
from ..arrays import Vector
from ..privacy import Guarantee, rounded_up
from .coefficients import LEVEL, Coefficients
from .words import figure, fixed, percent, probability

_WIDTH = 100


@dataclass(frozen=True, eq=False)
class Summary:
    """The table of coefficients as statisticians know it, with the promise and what is estimated.

    Print it, let a notebook show it, or take its numbers with ``to_dict``. There is no log-likelihood, R² or
    AIC in it: these are functions of the records that nobody paid for.

    Attributes
    ----------
    model : str
        Name of the estimator.
    solver : str
    n_records, n_features : int
    blocks : tuple of Coefficients
        One for a regression or two classes, else one for each class.
    privacy : Guarantee
        The promise.
    level : float
        Probability that an interval covers its coefficient.
    """

    model: str
    solver: str
    n_records: int
    n_features: int
    blocks: tuple[Coefficients, ...]
    privacy: Guarantee
    level: float = 0.95

    def __post_init__(self) -> None:
        strict.keep(self, level=LEVEL)

    @property
    def determined(self) -> bool:
        """Whether all coefficients have an interval."""
        return all(block.determined for block in self.blocks)

    @property
    def promise(self) -> str:
        """The promise in one line."""
        if not self.privacy.private:
            return self.privacy.headline
        epsilon, delta = rounded_up(self.privacy.epsilon, 6), rounded_up(self.privacy.delta, 3)
        return f"epsilon = {epsilon}, delta = {delta}, {self.privacy.relation}"

    @property
    def _title(self) -> str:
        count = f"{self.n_records:,}" + ("" if self.privacy.unit == "record" else f" {self.privacy.unit}s")
        return f"{self.model} by {self.solver}: n = {count}, p = {self.n_features:,}"

    @property
    def _weighting(self) -> str:
        """Whose mean coefficients are; empty if each record counts once."""
        unit = self.privacy.unit
        if unit == "record":
            return ""
        return (
            f"Each {unit} counts once: coefficients are those of a mean over {unit}s of the means of their "
            "records, not of a mean over records."
        )

    @property
    def _columns(self) -> tuple[str, ...]:
        low, high = f"[{(1 - self.level) / 2:.4g}", f"{(1 + self.level) / 2:.4g}]"
        return ("", "coef", "std err", "privacy", "z", "P>|z|", low, high)

    def _rows(self, block: Coefficients) -> list[tuple[str, ...]]:
        return [
            (
                name, figure(value, error), figure(error, error), percent(share), fixed(z, 2),
                probability(p_value), figure(low, error), figure(high, error),
            )
            for name, value, error, share, z, p_value, (low, high) in zip(
                block.names, block.values, block.standard_errors, block.privacy_shares, block.z,
                block.p_values, block.intervals(self.level), strict=True,
            )
        ]  # fmt: skip

    def _facts(self) -> list[tuple[str, str]]:
        """What holds for the whole table."""
        errors = (
            f"std err and the {100 * self.level:.4g} % intervals count sampling and noise; privacy is the "
            "share of the noise in the variance"
        )
        return [("privacy", self.promise), ("errors", errors), *self._common()]

    def _common(self) -> list[tuple[str, str]]:
        """The estimand, said once if it is the same for all classes, and the deviance of a single fit."""
        (first, *others) = self.blocks
        lines = []
        if all(block.estimand == first.estimand for block in others):
            lines.append(("estimates", first.estimand))
        return lines + ([] if others else self._own(first))

    def _own(self, block: Coefficients) -> list[tuple[str, str]]:
        """What holds for one class, or for a fit without several."""
        lines = []
        if len({other.estimand for other in self.blocks}) > 1:
            lines.append(("estimates", block.estimand))
        if block.deviance is not None:
            value, error = block.deviance
            words = f"{figure(value, error)}, with noise of standard error {figure(error, error)}"
            lines.append(("deviance", words))
        return [*lines, ("determined", _verdict(block))]

    def __str__(self) -> str:
        tables = [self._rows(block) for block in self.blocks]
        every = [self._columns, *(row for rows in tables for row in rows)]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        lines = [self._title, *textwrap.wrap(self._weighting, _WIDTH)]
        for block, rows in zip(self.blocks, tables, strict=True):
            lines += ["", f"outcome: {block.outcome}"] if block.outcome else []
            lines += [rule, _aligned(self._columns, widths), rule]
            lines += [*(_aligned(row, widths) for row in rows), rule]
            if len(self.blocks) > 1:
                lines += _paragraphs(self._own(block))
        return "\n".join(lines + [""] * (len(self.blocks) > 1) + _paragraphs(self._facts()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table as a notebook shows it."""
        several = len(self.blocks) > 1
        parts = [display.paragraph(self._weighting)] if self._weighting else []
        for block in self.blocks:
            if several or block.outcome or not block.determined:
                badge = "determined" if block.determined else "not determined"
                parts.append(display.marked(badge, block.determined, block.outcome))
            parts.append(display.figures(self._columns, self._rows(block)))
            parts.append(display.facts(self._own(block)) if several else "")
        private = self.privacy.private
        badge = "private" if private else "not private"
        return display.card(badge, private, self._title, *parts, display.facts(self._facts()))

    def to_dict(self) -> dict[str, object]:
        """The numbers as JSON-able values, one row for each coefficient; NaN is None, infinity is text.

        ``pandas.DataFrame(summary.to_dict()["coefficients"])`` is the table.
        """
        return {
            "model": self.model,
            "solver": self.solver,
            "n_records": self.n_records,
            "n_features": self.n_features,
            "unit": self.privacy.unit,
            "level": self.level,
            "coefficients": [row for block in self.blocks for row in self._numbers(block)],
            "fits": [
                {
                    "outcome": block.outcome,
                    "determined": block.determined,
                    "reason": block.reason,
                    "estimand": block.estimand,
                    "deviance": strict.plain("deviance", block.deviance),
                }
                for block in self.blocks
            ],
            "epsilon": strict.plain("epsilon", self.privacy.epsilon),
            "delta": self.privacy.delta,
            "neighbours": self.privacy.neighbours,
            "private": self.privacy.private,
        }

    def _numbers(self, block: Coefficients) -> list[dict[str, object]]:
        columns: dict[str, Vector] = {
            "coef": block.values,
            "std_err": block.standard_errors,
            "privacy_share": block.privacy_shares,
            "z": block.z,
            "p_value": block.p_values,
            "low": block.intervals(self.level)[:, 0],
            "high": block.intervals(self.level)[:, 1],
        }
        return [
            {"name": name, **({"outcome": block.outcome} if block.outcome else {})}
            | {key: _json(number) for key, number in zip(columns, numbers, strict=True)}
            for name, *numbers in zip(block.names, *columns.values(), strict=True)
        ]


def _verdict(block: Coefficients) -> str:
    return "yes" if block.determined else f"NO, so there are no intervals: {block.reason}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *figures = (
        cell.rjust(width) if k else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([name, *figures])


def _paragraphs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [
        textwrap.fill(f"{name:<10} : {words}", _WIDTH, subsequent_indent=" " * 13, break_on_hyphens=False)
        for name, words in pairs
    ]


def _json(number: float) -> object:
    return None if math.isnan(number) else strict.plain("number", float(number))
