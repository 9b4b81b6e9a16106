"""The strength of a promise in all usual parameters, from the curve of its plan."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import accounting, strict
from ..accounting import Event, Repeated
from ..plan import Plan, Release

POINTS = 49
"""Points of the curve that are stated."""

LEAST_DELTA = 1e-12
"""The stated curve ends where its delta is this small."""

FALSE_ALARMS = 0.01
"""The share of wrong accusations at which the share of right ones is stated."""

_SLACK_SHARE = 0.1


def measures(plan: Plan, records: int | None) -> dict[str, Any] | None:
    """What a plan with noise promises, in all usual parameters; None without noise.

    Every number is an upper bound on the truth.

    Parameters
    ----------
    plan : Plan
    records : int or None
        Number of records, for the deltas that are made from it; None if there is no public one.

    Returns
    -------
    dict
        ``mu`` with ``exact`` (whether the whole curve is that of a Gaussian mechanism) and ``slack`` (what is
        added to delta), ``rho`` (None unless all noise is Gaussian), ``epsilons`` at usual deltas, ``curve``
        as pairs of epsilon and delta, and ``guess``: how often someone who guesses which of two neighbouring
        tables was used, equally likely before, is right at most.
    """
    if not plan.budget.private:
        return None
    curve = accounting.compose(plan.event)
    found = accounting.cover(plan.event, _SLACK_SHARE * plan.budget.delta)
    # What follows from a private count is paid for by a reserve, of which something may be left.
    exact = plan.count is None and all(
        isinstance(event, accounting.Gaussian | accounting.Imprecision) for event in plan.price
    )
    finite = math.isfinite(found.mu)
    deltas = [("the delta of the fit", plan.budget.delta), *_usual(plan.budget.delta, records)]
    farthest = curve.epsilon(LEAST_DELTA)
    if not math.isfinite(farthest):
        farthest = 2 * plan.budget.epsilon
    epsilons = np.linspace(0.0, farthest, POINTS) if farthest > 0 else np.zeros(1)
    points = [[float(epsilon), curve.delta(float(epsilon))] for epsilon in epsilons]
    values = {
        "mu": found.mu if finite else None,
        "exact": exact,
        "slack": found.slack if finite else None,
        "rho": found.mu**2 / 2 if exact and finite else None,
        "epsilons": [
            {"name": name, "delta": delta, "epsilon": plan.epsilon if k == 0 else curve.epsilon(delta)}
            for k, (name, delta) in enumerate(deltas)
        ],
        "curve": points,
        "guess": guesses(points, plan.epsilon, plan.budget.delta),
    }
    return {name: strict.plain(name, value) for name, value in values.items()}


def _usual(own: float, records: int | None) -> list[tuple[str, float]]:
    """Names and values of the deltas that readers look for, but for the fit's own."""
    found = [("a usual delta", 1e-5)]
    if records is not None and records > 1:
        found += [("1/n", 1 / records), ("1/n²", 1 / records**2)]
    return [(name, delta) for name, delta in found if not math.isclose(delta, own)]


def guesses(points: list[list[float]], epsilon: float, delta: float) -> dict[str, float]:
    """How often an attacker is right at most, from a curve that begins at epsilon 0.

    Of two tables that are equally likely, any rule names the right one with probability (1 + TV) / 2 at most,
    and the total variation TV is delta(0). A rule that accuses with probability a under one table accuses
    with at most e^epsilon a + delta(epsilon) under the other, for every epsilon.
    """
    caught = min(math.exp(min(x, 700.0)) * FALSE_ALARMS + d for x, d in points)
    return {
        "right": (1 + points[0][1]) / 2,
        "right_by_epsilon": 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700.0))),
        "false_alarms": FALSE_ALARMS,
        "caught": min(1.0, caught),
    }


def counted(plan: Plan) -> list[tuple[Release, int]]:
    """All releases of a plan, those of what was learnt first, and how many fits make each."""
    return [
        *((release, 1) for release in plan.learning),
        *((release, plan.fits) for release in plan.releases),
    ]


def shares(plan: Plan) -> list[float] | None:
    """Share of each release in the price, in squares of mu; None if they cannot be told apart.

    That of a release that is not Gaussian is by the least Gaussian above its curve.
    """
    if not plan.budget.private or plan.parts:
        return None
    slack = _SLACK_SHARE * plan.budget.delta / len(counted(plan))
    squares = [_squared(release, fits, plan, slack) for release, fits in counted(plan)]
    total = sum(squares)
    return [square / total for square in squares] if 0 < total < math.inf else None


def _squared(release: Release, fits: int, plan: Plan, slack: float) -> float:
    event: Event = Repeated(release.event(plan.neighbours), release.count * fits)
    return accounting.cover(event, slack).mu ** 2
