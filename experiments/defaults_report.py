"""What `defaults` found, as tables beside its goals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from outputs import load_pyplot
from prediction_scores import CALIBRATION, LABELS, TARGETS

GOALS: dict[str, dict[float, float]] = {
    "california": {0.1: 0.62, 1: 0.67},
    "pol": {0.1: 0.27, 1: 0.50},
    "elevators": {0.1: 0.66, 1: 0.76},
    "bike": {0.1: 0.64, 1: 0.70},
    "protein": {0.1: 0.27, 1: 0.29},
    "keggundirected": {0.1: 0.95, 1: 0.97},
    "mtp": {0.1: 0.0, 1: 0.17},
    "covtype": {0.1: 0.753, 1: 0.755},
    "a9a": {0.1: 0.830, 1: 0.848, 4: 0.851},
    "rcv1": {0.1: 0.835, 1: 0.920},
    "imdb": {0.1: 0.65, 1: 0.80, 4: 0.82},
    "phishing": {0.1: 0.90, 1: 0.93},
}
"""Least mean accuracy or R² of `auto`, by table and epsilon."""
SMALL = {"accuracy": 0.003, "AUC": 0.003, "log loss": 0.01, "R²": 0.01}
"""Regret that counts as none, by score."""
ASKED = 0.95
"""Share of the cells whose regret is small, or within one standard error."""


@dataclass(frozen=True)
class Row:
    """One score of one solver on held-out rows: mean of several fits, and its standard error.

    ``chosen`` is the solver that `auto` is.
    """

    table: str
    group: str
    n: int
    p: int
    epsilon: float
    solver: str
    kind: str
    score: float
    error: float
    passes: str
    seconds: float
    fits: int
    chosen: str = ""

    @property
    def merit(self) -> float:
        """The score, with the sign that makes more better."""
        return -self.score if self.kind == "log loss" else self.score


@dataclass(frozen=True)
class Cell:
    """One score on a table at an epsilon, of all solvers."""

    auto: Row
    plain: Row
    others: dict[str, Row]
    published: dict[str, Row]

    @property
    def best(self) -> Row:
        """The best other solver."""
        return max(self.others.values(), key=lambda row: row.merit)

    @property
    def regret(self) -> float:
        """How much better the best other solver is."""
        return self.best.merit - self.auto.merit

    @property
    def regret_error(self) -> float:
        """Standard error of the regret; 0 after one fit each."""
        return math.hypot(self.best.error, self.auto.error) if self.auto.fits > 1 else 0.0

    @property
    def is_small(self) -> bool:
        """Whether the regret counts as none."""
        return self.regret <= SMALL[self.auto.kind]

    @property
    def is_within_error(self) -> bool:
        """Whether the regret is at most its standard error."""
        return self.regret <= self.regret_error

    @property
    def verdict(self) -> str:
        """Whether the goal of the cell is met, if it has one."""
        goal = GOALS.get(self.auto.table, {}).get(self.auto.epsilon)
        if goal is None:
            return ""
        return f"{goal:.3f} {'ok' if self.auto.score >= goal else 'MISSED'}"


def cells(
    rows: Sequence[Row], solvers: Sequence[str], published: Sequence[str], kinds: Sequence[str]
) -> Iterator[Cell]:
    """Cells of these scores in the order of their rows."""
    for auto in (row for row in rows if row.solver == "auto" and row.kind in kinds):
        same = [row for row in rows if (row.table, row.kind) == (auto.table, auto.kind)]
        here = {row.solver: row for row in same if row.epsilon == auto.epsilon}
        plain = next(row for row in same if row.solver == "not private")
        others, others_published = (
            {name: here[name] for name in names if name in here} for names in (solvers, published)
        )
        yield Cell(auto, plain, others, others_published)


def _words(solver: str) -> str:
    return solver.replace("-", " ")


def _figure(row: Row | None, best: bool = False) -> str:
    if row is None:
        return "-"
    mean = f"**{row.score:.3f}**" if best else f"{row.score:.3f}"
    return f"{mean} ± {row.error:.3f}" if row.fits > 1 else mean


def _header(names: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]


def as_markdown(rows: Sequence[Row], solvers: Sequence[str], published: Sequence[str]) -> str:
    """Tables of `auto` with its goals, of regret in each score, of calibration, and of all solvers."""
    facts = _header(
        ["table", "", "n x p", "not private", "epsilon", "auto", "it is", "passes", "CPU s", "goal"]
    )
    names = [_words(name) for name in (*solvers, *published)]
    every = _header(["table", "epsilon", "auto", *names])
    for cell in cells(rows, solvers, published, (LABELS[0], *TARGETS)):
        auto = cell.auto
        facts.append(
            f"| {auto.table} | {auto.group} | {auto.n:,} x {auto.p:,} | {cell.plain.score:.3f} "
            f"| {auto.epsilon:g} | {_figure(auto)} | {auto.chosen} | {auto.passes} | {auto.seconds:.2g} "
            f"| {cell.verdict} |"
        )
        most = max(row.score for row in (auto, *cell.others.values(), *cell.published.values()))
        shown = [_figure(auto, auto.score == most)]
        for name in (*solvers, *published):
            row = (cell.others | cell.published).get(name)
            if row is None and _words(name) == auto.chosen.lower():
                shown.append("= auto")
            else:
                time = f" ({row.seconds:.2g} s)" if row is not None else ""
                shown.append(_figure(row, row is not None and row.score == most) + time)
        every.append(f"| {auto.table} | {auto.epsilon:g} | {' | '.join(shown)} |")
    parts = [facts, _regrets(rows, solvers), _calibration(rows), every]
    return "\n\n".join("\n".join(part) for part in parts)


def _regrets(rows: Sequence[Row], solvers: Sequence[str]) -> list[str]:
    """`auto`, the best other solver, and the regret in units of the score, for each score."""
    first, *more = LABELS
    lines = _header(["table", "epsilon", f"{first} or {', '.join(TARGETS)}", *more])
    shown: dict[tuple[str, float], list[str]] = {}
    for cell in cells(rows, solvers, (), (*LABELS, *TARGETS)):
        auto, best = cell.auto, cell.best
        missed = "" if cell.is_small or cell.is_within_error else " MISSED"
        shown.setdefault((auto.table, auto.epsilon), []).append(
            f"{_figure(auto)}; {_words(best.solver)} {_figure(best)}; {cell.regret:+.4f}{missed}"
        )
    for (table, epsilon), figures in shown.items():
        figures += ["-"] * (len(LABELS) - len(figures))
        lines.append(f"| {table} | {epsilon:g} | {' | '.join(figures)} |")
    return lines


def _calibration(rows: Sequence[Row]) -> list[str]:
    """Calibration of `auto` on tables of labels, beside that of the fit without noise."""
    names = [f"{kind}{where}" for where in ("", ", not private") for kind in CALIBRATION]
    lines = _header(["table", "epsilon", *names])
    found = list(cells(rows, (), (), CALIBRATION))
    for auto in (cell.auto for cell in found if cell.auto.kind == CALIBRATION[0]):
        here = [cell for cell in found if (cell.auto.table, cell.auto.epsilon) == (auto.table, auto.epsilon)]
        figures = [_figure(cell.auto) for cell in here] + [_figure(cell.plain) for cell in here]
        lines.append(f"| {auto.table} | {auto.epsilon:g} | {' | '.join(figures)} |")
    return lines


def _line(name: str, figure: str, goal: str, met: bool) -> str:
    return f"| {name} | {figure} | {goal} | {'ok' if met else 'MISSED'} |"


def _share(name: str, met: int, count: int) -> str:
    figure = f"{met} of {count}, {100 * met / count:.1f} %"
    return _line(name, figure, f"{100 * ASKED:.0f} %", met >= ASKED * count)


def verdicts(rows: Sequence[Row], solvers: Sequence[str], published: Sequence[str]) -> str:
    """Goals beside figures: scores, the published regressions, and how many cells have no regret."""
    found = list(cells(rows, solvers, published, (*LABELS, *TARGETS)))
    lines = _header(["goal", "found", "asked", ""])
    first = [cell for cell in found if cell.auto.kind in (LABELS[0], *TARGETS)]
    asked = [cell for cell in first if cell.verdict]
    if asked:
        met = sum(cell.verdict.endswith("ok") for cell in asked)
        lines.append(
            _line("cells whose score reaches its goal", f"{met}", f"{len(asked)}", met == len(asked))
        )
    raced = [cell for cell in first if cell.published]
    for name in published if raced else ():
        ahead = sum(cell.auto.score >= cell.published[name].score for cell in raced)
        lines.append(_line(f"cells ahead of {name}", f"{ahead}", f"{len(raced)}", ahead == len(raced)))
    parts = {f"{group} tables": [c for c in found if c.auto.group == group] for group in ("tuning", "test")}
    parts |= {kind: [cell for cell in found if cell.auto.kind == kind] for kind in (*LABELS, *TARGETS)}
    for name, some in {"all cells": found, **parts}.items():
        if not some:
            continue
        met = sum(cell.is_small or cell.is_within_error for cell in some)
        lines.append(_share(f"regret small or within one error, {name}", met, len(some)))
    both = sum(cell.is_small and cell.is_within_error for cell in found)
    lines.append(_share("regret small and within one error, all cells", both, len(found)))
    lines.append("")
    for cell in found:
        where = f"- {cell.auto.table}, epsilon {cell.auto.epsilon:g}, {cell.auto.kind}:"
        for row in cell.published.values():
            if row.score > cell.auto.score:
                lines.append(f"{where} {row.solver} is better by {row.score - cell.auto.score:.3f}")
    return "\n".join(lines)


def draw_regret(rows: Sequence[Row], solvers: Sequence[str], path: Path) -> None:
    """Regret of every cell, in units of what counts as none."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    found = list(cells(rows, solvers, (), (*LABELS, *TARGETS)))
    names = list(dict.fromkeys((cell.auto.table, cell.auto.kind) for cell in found))
    figure, axes = pyplot.subplots(figsize=(8, 0.3 * len(names) + 1.5))
    for epsilon in dict.fromkeys(cell.auto.epsilon for cell in found):
        some = [cell for cell in found if cell.auto.epsilon == epsilon]
        relative = [max(cell.regret / SMALL[cell.auto.kind], -5) for cell in some]
        heights = [names.index((cell.auto.table, cell.auto.kind)) for cell in some]
        axes.plot(relative, heights, "o", label=f"epsilon {epsilon:g}")
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.axvline(1, color="grey", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(names)), [", ".join(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlabel("regret of auto, in units of 0.3 points or 0.01 (below -5 drawn at -5)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
