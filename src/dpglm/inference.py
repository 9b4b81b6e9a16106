"""Standard errors, intervals and tests, from coefficients and covariances that a fit released.

Nothing here reads a record: all of it is post-processing, and costs no privacy.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr, ndtri

from . import display, strict
from .arrays import Vector
from .privacy import Guarantee, rounded_up

_NONE = "-"
FOR_PREDICTION = "this solver releases no standard errors: the coefficients are for prediction"
LEAST = 0.0005  # the least p-value that is printed in digits


def figure(value: float, error: float) -> str:
    """Format a number with the decimals of three digits of its error."""
    if math.isfinite(value) and 1e-4 <= error < 1e5:
        return f"{value:.{max(0, 2 - math.floor(math.log10(error)))}f}"
    return f"{value:.4g}"


def rough(value: float) -> str:
    """Format a number whose error is unknown, with two digits."""
    return f"{float(f'{value:.2g}'):g}"


def fixed(value: float, decimals: int) -> str:
    """Format a number with fixed decimals."""
    return _NONE if math.isnan(value) else f"{value:.{decimals}f}"


def probability(p_value: float) -> str:
    """Format a p-value."""
    if math.isnan(p_value):
        return _NONE
    return "<0.001" if p_value < LEAST else f"{p_value:.3f}"


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return _NONE if math.isnan(share) else f"{100 * share:.0f} %"


_FEW = 6  # conditions of a test that are written out


@dataclass(frozen=True)
class WaldTest:
    """Wald's test of linear conditions on the coefficients.

    Attributes
    ----------
    statistic : float
        (R w - r)' (R V R')⁻¹ (R w - r), which is chi-squared if the conditions R w = r hold.
    degrees_of_freedom : int
        Number of conditions.
    p_value : float
        Probability of a statistic at least as large if the conditions hold. Statistic and p-value are NaN if
        the fit is not determined.
    hypothesis : str
        The conditions.
    outcome : str
        The class, for a fit of more than two.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    hypothesis: str
    outcome: str = ""

    def __str__(self) -> str:
        of = f" for {self.outcome}" if self.outcome else ""
        freedom = f"{self.degrees_of_freedom} degree{'s' if self.degrees_of_freedom > 1 else ''} of freedom"
        if math.isnan(self.statistic):
            return f"Wald test of {self.hypothesis}{of}: no result, the fit is not determined ({freedom})"
        sign = " " if self.p_value < LEAST else " = "
        result = f"chi2 = {self.statistic:.4g}, {freedom}, p{sign}{probability(self.p_value)}"
        return f"Wald test of {self.hypothesis}{of}: {result}"

    __repr__ = __str__


def wald_test(values: Vector, covariance: Vector, R: Vector, r: Vector) -> tuple[float, float]:
    """Statistic and p-value of the conditions R w = r.

    Examples
    --------
    >>> import numpy as np
    >>> statistic, p_value = wald_test(np.array([1.96, 5.0]), np.eye(2), np.array([[1.0, 0.0]]), np.zeros(1))
    >>> round(statistic, 2), round(p_value, 2)
    (3.84, 0.05)
    """
    gap, spread = R @ values - r, R @ covariance @ R.T
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.diagonal(spread))  # conditions may be in very different units
        gap, spread = gap / scale, spread / np.outer(scale, scale)
        try:
            statistic = float(gap @ np.linalg.solve(spread, gap))
        except np.linalg.LinAlgError:
            statistic = math.nan
    return statistic, float(chdtrc(len(R), statistic))


def conditions(hypothesis: object, values: ArrayLike | None, names: Sequence[str]) -> tuple[Vector, Vector]:
    """The conditions R w = r of a hypothesis.

    Parameters
    ----------
    hypothesis : str, int, list of these, or array of shape (k, d)
        Coefficients by name or index; or the matrix R, which must have rank k.
    values : array of shape (k,), optional
        The numbers r; by default 0.
    names : sequence of str
        Names of the d coefficients.
    """
    plain = np.asarray(hypothesis).tolist() if hasattr(hypothesis, "__array__") else hypothesis
    listed = list(plain) if isinstance(plain, list | tuple) else [plain]
    if any(isinstance(item, list | tuple) or hasattr(item, "__array__") and np.ndim(item) for item in listed):
        R = _matrix(listed, len(names))
    else:
        chosen = [_index(item, names) for item in listed]
        if not chosen or len(set(chosen)) < len(chosen):
            raise strict.wrong("hypothesis", hypothesis, "at least one coefficient, and each of them once")
        R = np.eye(len(names))[chosen]
    r = np.zeros(len(R)) if values is None else _finite(values)
    if r is None or r.shape not in {(), (len(R),)}:
        raise strict.wrong("values", values, f"one number for each condition, of which there are {len(R)}")
    return R, np.broadcast_to(r, (len(R),))


def in_words(R: Vector, r: Vector, names: Sequence[str]) -> str:
    """The conditions as equations, or their number if there are many."""
    if len(R) > _FEW:
        return f"{len(R)} conditions"
    return ", ".join(f"{_sum(row, names)} = {value:.4g}" for row, value in zip(R, r, strict=True))


def _finite(values: object) -> Vector | None:
    """Convert values to an array of finite numbers; None if that fails."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None


def _matrix(rows: list[object], d: int) -> Vector:
    """The matrix of conditions: a column for each coefficient, and no row that follows from the others."""
    R = _finite(rows)
    if R is None or R.ndim != 2 or R.shape[1] != d:
        raise strict.wrong("hypothesis", rows, f"a matrix of finite numbers with {d} columns")
    size = np.abs(R).max(axis=1, keepdims=True)
    if not size.all() or np.linalg.matrix_rank(R / size) < len(R):
        raise strict.wrong("hypothesis", rows, "a matrix none of whose rows follows from the others")
    return R


def _index(key: object, names: Sequence[str]) -> int:
    """Index of a coefficient from its name or index."""
    d = len(names)
    if isinstance(key, str):
        indices = [k for k, name in enumerate(names) if name == key]
        if len(indices) > 1:
            raise ValueError(
                f"hypothesis names {key!r}, which {len(indices)} coefficients have: give an index"
            )
        if not indices:
            raise strict.wrong("hypothesis", key, f"among the names {_shortened(names)}")
        return indices[0]
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and -d <= key < d:
        return int(key) % d
    needed = f"a name, an index from 0 to {d - 1}, a list of these, or a matrix with {d} columns"
    raise strict.wrong("hypothesis", key, needed)


def _shortened(names: Sequence[str], limit: int = 20) -> str:
    listed = ", ".join(map(repr, names[:limit]))
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"


def _sum(row: Vector, names: Sequence[str]) -> str:
    words = ""
    for weight, name in zip(row.tolist(), names, strict=True):
        if weight:
            sign = "-" if weight < 0 else "+"
            lead = f" {sign} " if words else sign.replace("+", "")
            words += lead + ("" if abs(weight) == 1 else f"{abs(weight):.4g} ") + name
    return words


INTERCEPT = "intercept"
"""Name of the last coefficient, if the model has an intercept."""

LEVEL = strict.within("strictly between 0 and 1", lambda level: 0 < level < 1)


def intervals(values: Vector, standard_errors: Vector, level: float = 0.95) -> Vector:
    """Normal intervals, shape (d, 2): value ± z standard errors; (-inf, inf) for an infinite error.

    Examples
    --------
    >>> import numpy as np
    >>> intervals(np.array([1.0]), np.array([0.5]), level=0.95).round(2)
    array([[0.02, 1.98]])
    """
    half = quantile(level) * standard_errors
    return np.column_stack([values - half, values + half])


def quantile(level: float) -> float:
    """Half-width of a normal interval of a level, in standard errors."""
    return float(ndtri((1 + LEVEL("level", level)) / 2))


def two_sided(z: Vector) -> Vector:
    """Probability that a standard normal number is at least as far from 0 as z; NaN for NaN."""
    found: Vector = 2 * ndtr(-np.abs(z))
    return found


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients with their error, on the scale of the user's columns.

    Attributes
    ----------
    names : tuple of str
        Features, then the intercept if there is one.
    values : array of shape (d,)
    covariance : array of shape (d, d)
        From sampling and from noise. If the fit is not determined, its diagonal is infinite, the rest NaN.
    privacy : array of shape (d, d)
        The part of the covariance that noise causes.
    determined : bool
        Whether noise left enough of the records to state an interval.
    reason : str
        Why the fit is not determined; empty if it is.
    estimand : str
        What the coefficients estimate, in a sentence.
    deviance : (float, float), optional
        The released deviance and the deviation of its noise.
    outcome : str
        What the coefficients are for, such as a class against the others; empty for a regression.
    """

    names: tuple[str, ...]
    values: Vector
    covariance: Vector
    privacy: Vector
    determined: bool
    reason: str
    estimand: str
    deviance: tuple[float, float] | None = None
    outcome: str = ""

    def __post_init__(self) -> None:
        if not self.determined:
            unknown = np.full(self.covariance.shape, np.nan)
            np.fill_diagonal(unknown, np.inf)
            object.__setattr__(self, "covariance", unknown)
            object.__setattr__(self, "privacy", unknown.copy())

    @property
    def standard_errors(self) -> Vector:
        """Square roots of the variances; infinite if the fit is not determined."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def privacy_shares(self) -> Vector:
        """Share of each variance that noise causes; NaN if the fit is not determined."""
        with np.errstate(all="ignore"):
            shares: Vector = np.diagonal(self.privacy) / np.diagonal(self.covariance)
        return shares

    @property
    def z(self) -> Vector:
        """Values over standard errors; NaN if the fit is not determined."""
        if not self.determined:
            return np.full(len(self.values), np.nan)
        with np.errstate(all="ignore"):
            return self.values / self.standard_errors

    @property
    def p_values(self) -> Vector:
        """Two-sided p-values of the hypothesis that a coefficient is 0; NaN if the fit is not determined."""
        return two_sided(self.z)

    def intervals(self, level: float = 0.95) -> Vector:
        """Confidence intervals, shape (d, 2)."""
        return intervals(self.values, self.standard_errors, level)

    def wald_test(self, hypothesis: object, values: ArrayLike | None = None) -> WaldTest:
        """Test of linear conditions; see `conditions` for what a hypothesis may be."""
        R, r = conditions(hypothesis, values, self.names)
        found = wald_test(self.values, self.covariance, R, r) if self.determined else (math.nan, math.nan)
        return WaldTest(found[0], len(R), found[1], in_words(R, r, self.names), self.outcome)


_WIDTH = 100


@dataclass(frozen=True, eq=False)
class Summary:
    """The usual table of coefficients, with the privacy guarantee and what is estimated.

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
        """What coefficients average over; empty if each record counts once."""
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
        """Facts about the whole table."""
        errors = (
            f"std err and the {100 * self.level:.4g} % intervals account for sampling and noise; privacy is "
            "the share of the variance that noise causes"
        )
        return [("privacy", self.promise), ("errors", errors), *self._common()]

    def _common(self) -> list[tuple[str, str]]:
        """The estimand if it is the same for all classes, and the facts of a single fit."""
        (first, *others) = self.blocks
        lines = []
        if all(block.estimand == first.estimand for block in others):
            lines.append(("estimates", first.estimand))
        return lines + ([] if others else self._own(first))

    def _own(self, block: Coefficients) -> list[tuple[str, str]]:
        """Facts about one class, or about a fit of a single model."""
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
        parts = [display.paragraph(self._weighting)]
        for block in self.blocks:
            if several or block.outcome or not block.determined:
                words = "determined" if block.determined else "not determined"
                badge = display.badge(words, block.determined)
                parts.append(display.element("div", badge, block.outcome, kind="block"))
            figures = range(1, len(self._columns))
            parts.append(display.table(self._columns, self._rows(block), figures=figures))
            parts.append(display.facts(self._own(block)) if several else "")
        private = self.privacy.private
        return display.card(
            "private" if private else "not private",
            private,
            self._title,
            *parts,
            display.facts(self._facts()),
        )

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
