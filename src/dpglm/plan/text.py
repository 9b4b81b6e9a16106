"""Plans in words: as text, as a notebook shows them, and the sentences that promises quote."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .. import accounting, display
from ..accounting import Imprecision, Reserved
from ..privacy import rounded_up
from .settings import Setting

if TYPE_CHECKING:
    from .plan import Plan


def text(plan: Plan) -> str:
    """The plan as lines of text."""
    lines = [f"{plan.solver}: {_table(plan)}, {plan.neighbours.value}"]
    lines.append(f"budget    {_budget(plan)}; spends epsilon {_spends(plan)}")
    lines += [f"{name:<10}{value}" for name, value in _facts(plan)]
    lines += _release_lines(plan)
    for part, count in Counter(map(_as_part, plan.parts)).items():
        lines.append(f"{f'{count} parts' if count > 1 else 'part':<10}{part}")
    return "\n".join(lines)


def html(plan: Plan) -> str:
    """The plan as a notebook shows it."""
    private = plan.budget.private
    return display.card(
        "plan" if private else "not private",
        private,
        f"{plan.solver}: spends epsilon {_spends(plan)} at delta {rounded_up(plan.budget.delta, 3)}",
        display.releases(
            (
                f"{release.count * (1 if release in part.learning else part.fits)}",
                f"{'then ' if line.follows else ''}{line.query}",
                line.mechanism.name,
                f"{line.mechanism.noise:.4g}",
                line.sensitivity,
                release.sampling.words,
            )
            for part in (plan, *plan.parts)
            for release in (*part.learning, *part.releases)
            for line in release.lines
        ),
        display.facts(
            [
                ("table", _table(plan)),
                *([("fits", f"{plan.fits}, one for each class")] if plan.fits > 1 else []),
                ("budget", _budget(plan)),
                ("neighbours", f"{plan.neighbours.value} ({plan.neighbours.of(plan.unit)})"),
                *_facts(plan),
                ("composed", plan.composition),
            ]
        ),
    )


def settings(plan: Plan) -> str:
    """The public settings of the solver."""
    return ", ".join(f"{name} {_shown(value)}" for name, value in plan.settings().items())


def learning(plan: Plan) -> str:
    """What is paid for releases before the fits."""
    share = f"{rounded_up(100 * plan.learning_share, 3)} % of the budget, in squared mu"
    if plan.count is not None:
        return share
    return f"{share}; the fit alone would spend epsilon {rounded_up(plan.without_learning.epsilon, 4)}"


def composition(plan: Plan) -> str:
    """How the price is added up."""
    if not plan.budget.private:
        return "not at all: there is no noise"
    if isinstance(plan.event, Reserved):
        return (
            f"as a filter: the count, and whatever plan follows from it, cost at most mu = "
            f"{rounded_up(plan.event.mu, 4)} together, and {rounded_up(plan.event.slack, 2)} of delta"
        )
    if all(isinstance(event, accounting.Gaussian | Imprecision) for event in plan.price):
        composed = "exactly, as one Gaussian mechanism (closed form)"
    else:
        composed = "numerically, by privacy-loss curves rounded against us"
    distance = sum(
        count * event.distance for event, count in plan.price.items() if isinstance(event, Imprecision)
    )
    extra = rounded_up(accounting.imprecise_delta(distance, plan.budget.epsilon), 2)
    return f"{composed}; noise lies on a public grid, and how it is drawn takes {extra} of delta"


def _facts(plan: Plan) -> list[tuple[str, str]]:
    """Names and texts of what both forms show in the same words."""
    facts = [("settings", settings(plan))]
    if plan.passes is not None:
        facts.append(("passes", str(plan.passes)))
    if plan.forecast is not None:
        facts.append(("forecast", plan.forecast))
    if plan.learning:
        facts.append(("learning", learning(plan)))
    return facts


def _table(plan: Plan) -> str:
    return f"{plan.n_records} {plan.unit}s x {plan.n_features} features"


def _budget(plan: Plan) -> str:
    return f"epsilon {plan.budget.epsilon:g}, delta {rounded_up(plan.budget.delta, 3)}"


def _spends(plan: Plan) -> str:
    return rounded_up(plan.epsilon, 6) if plan.budget.private else "inf"


def _as_part(plan: Plan) -> str:
    head = f"{plan.solver}, {plan.n_records} {plan.unit}s: {settings(plan)}"
    return "\n".join([head, *_release_lines(plan)])


def _release_lines(plan: Plan) -> list[str]:
    lines = []
    for release in (*plan.learning, *plan.releases):
        fits = 1 if release in plan.learning else plan.fits
        times = f"{release.count * fits} x " + (f"({fits} classes) " if fits > 1 else "")
        for line in release.lines:
            head = "then" if line.follows else "learn" if release in plan.learning else "release"
            lines.append(
                f"{head:<10}{times}{line.query}, {line.mechanism.name} noise {line.mechanism.noise:.4g} "
                f"x sensitivity {line.sensitivity}, {release.sampling.words}"
            )
    return lines


def _shown(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} declared values"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
