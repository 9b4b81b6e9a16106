"""One of the models along a fit, chosen by its loss on rows that were held out, or on all rows."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..accounting import (
    Gaussian,
    Repeated,
    calibrate,
    calibrate_beside,
    compose,
    gaussian_mu,
    together,
)
from ..curator import Curator
from ..mechanisms import Exponential
from ..plan import Plan, Release
from ..privacy import Budget
from ..problem import Problem
from ..queries import Gains
from ..queries.gains import gain_for
from ..split import Split
from ..tables import Capability
from .along_plan import SPREAD, AlongPlan, handicap_of
from .base import AnySolver, AuditCase, Choice, Result, Solver, Task, opposed, require_public_size
from .derived import FREEDOMS, none_counts, sparse_counts
from .path import Model, followed

LEAST_SHARE, MOST_SHARE = 0.02, 0.05
"""Range of the share of rows that are held out by default."""

LEAST_BUDGET, MOST_BUDGET = 0.01, 0.05
"""Range of the share of the budget, in squared mu, for a choice on all rows by default."""

FINE = 0.05
"""Handicap of a record, over the cut of its gain, that the default shares aim at."""

HALVINGS = 4
"""Iterates are kept after all steps, half of them, a quarter, ..."""


@dataclass(frozen=True)
class Along(Solver[AlongPlan]):
    """Fit by another solver, and take a model along its way instead if its loss is less.

    The models are iterates, steps of greedy descent or Frank-Wolfe, rounds of Newton's method, and models
    that follow from the last one: a ridge path and sparse models, refitted to the released Gram matrix if
    there is one. Which one is taken is a draw of the exponential mechanism among their gains over the whole
    fit, less a handicap. The gains are on rows that are held out by their positions, so that a record pays
    for the fit or for the choice. Or they are on all rows, corrected for what the whole fit gains on its own
    rows alone, and the choice has a share of the budget. A released Gram matrix says how large the correction
    is, so this is the default where there is one.

    Parameters
    ----------
    inner : str or Solver
        What fits.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 5 %, as much as a good choice needs, or none
        if there is a Gram matrix. If it takes more than 5 %, the fit to all rows is returned.
    budget_share : float, optional
        Share of the budget, in squared mu, for a choice on all rows; by default from 1 to 5 % if there is a
        Gram matrix. If it takes more than 5 %, the fit with the whole budget is returned.
    """

    plan_type: ClassVar[type[Plan]] = AlongPlan
    takes_outputs: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True

    inner: str | AnySolver = "auto"
    share: float | None = None
    budget_share: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None and self.budget_share is not None:
            raise ValueError("share and budget_share are two ways to choose: give one of them")

    def plan_for(self, task: Task) -> AlongPlan:
        require_public_size(task, "PrivatePath")
        from . import get, require_suited

        solver = get(self.inner, task)
        require_suited(solver, task.problem)
        # Gains are of one prediction.
        shares = self._shares(task, solver) if task.private and task.problem.outputs == 1 else (0.0, 0.0)
        share, budget_share = shares
        training = Split(share).training.before(task.n)
        if 0 < training < task.n or budget_share:
            left = _left(task.budget, budget_share) if budget_share else task.budget
            fit = solver.plan_for(replace(task, n=training, budget=left))
            stops = stops_of(fit.steps) if "steps" in solver.path else []
            candidates = 1 + len(stops) + _derived(task, solver)
            if candidates > 1:
                score, most = gain_for(task.problem.loss, task.problem.bounds.target)
                query = Gains(score, most, candidates - 1, task.n - training or task.n)
                moved = query.of_one(task.neighbours)
                release = Release(query.name, Exponential(1.0), 1, f"{moved:.4g}", entries=candidates)
                least = _least_noise(release, task, fit if budget_share else None)
                return AlongPlan(
                    *task.facts, (release.scaled(least),), fit.steps, *shares, tuple(map(float, stops)),
                    candidates, most, parts=(fit,),
                )  # fmt: skip
        fit = solver.plan_for(task)
        return AlongPlan(*task.facts, (), fit.steps, 0.0, 0.0, (), 1, 0.0, parts=(fit,))

    def _shares(self, task: Task, solver: AnySolver) -> tuple[float, float]:
        """The share of the rows that are held out, or of the budget; 0 if there are not enough rows.

        The default shares make the handicap of a record FINE.
        """
        if not solver.path:
            return 0.0, 0.0
        if self.share is not None or self.budget_share is not None:
            return float(self.share or 0.0), float(self.budget_share or 0.0)
        mu = gaussian_mu(task.budget.epsilon, task.budget.delta) / math.sqrt(task.fits)
        candidates = 1 + HALVINGS + _derived(task, solver)
        if "gram" in solver.path:
            room = FINE * task.n - SPREAD * math.sqrt(task.n)
            alone = handicap_of(task.moved / mu, candidates, 0.0)
            wanted = (alone / room) ** 2 if room > 0 else math.inf
            return 0.0, max(wanted, LEAST_BUDGET) if wanted <= MOST_BUDGET else 0.0
        noise = task.moved * min(1 / mu, 2 * task.fits / task.budget.epsilon)
        alone = handicap_of(noise, candidates, 0.0)
        rows = ((SPREAD + math.sqrt(SPREAD**2 + 4 * FINE * alone)) / (2 * FINE)) ** 2
        return max(rows / task.n, LEAST_SHARE) if rows <= MOST_SHARE * task.n else 0.0, 0.0

    @classmethod
    def needs(cls, plan: AlongPlan) -> frozenset[Capability]:
        from . import solver_of

        return solver_of(plan.parts[0]).needs(plan.parts[0])

    @classmethod
    def run(cls, plan: AlongPlan, problem: Problem, curator: Curator) -> Result:
        from . import run as run_by_plan

        (fit,) = plan.parts
        if not plan.chooses:
            return run_by_plan(fit, problem, curator)
        with curator.apart(plan.split) if plan.held_out else nullcontext((curator, curator)) as parts:
            fitted, judges = parts
            with followed([int(stop) for stop in plan.stops]) as path:
                result = run_by_plan(fit, problem, fitted)
            # As many as planned: a model that was not visited is the whole fit once more.
            models = [Model("the whole fit", result.w), *path.points]
            models += [models[0]] * (plan.candidates - len(models))
            score, _ = gain_for(problem.loss, problem.bounds.target)
            query = Gains(score, plan.most, plan.candidates - 1, plan.judges)
            points = np.column_stack([model.w for model in models])
            credit = np.array([0.0 if plan.held_out else model.credit for model in models[1:]])
            mechanism = plan[query.name].mechanism
            k = judges.open(query, points, mechanism).choose(plan.handicap - credit)
        return Result(models[k].w, result.steps, chosen=Choice(k, models[k].name), records=result.records)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """The record is held out: the first row of a table always is. Or it is in the fit and judges, too.

        All rows of the fit are alike. One held-out row makes up for the handicap of a shorter fit, so that
        the record decides.
        """
        from .gradient_descent import GradientDescent

        inner = GradientDescent(steps=2, clip=0.1, step_size=20.0)
        case = opposed(cls(inner, share=0.4), 1, crowd=7)
        _, other, *idle = Split(0.4).held_out.taken(0, 8) - 1
        row, _ = case.second
        rows, targets = np.tile(row, (7, 1)), np.ones(7)
        rows[idle], targets[other] = 0.0, -1.0
        held_out = replace(case, bystanders=(rows, targets), first=(row, -1.0), second=(row, 1.0))
        judge = replace(held_out, solver=cls(inner, budget_share=0.5))
        return held_out, held_out.beside(weight=3.0, offset=0.5), judge


def stops_of(steps: int) -> list[int]:
    """After how many steps a model is kept: a half of all, a quarter, ..., from the smallest on."""
    return sorted({steps >> k for k in range(1, HALVINGS + 1)} - {0})


def _derived(task: Task, solver: AnySolver) -> int:
    """How many models a solver offers that follow from its last one."""
    sparse = len(sparse_counts(task.problem, task.p)) if "sparse" in solver.path else 0
    return sparse + (len(FREEDOMS) + len(none_counts(task.problem)) if "ridge" in solver.path else 0)


def _left(budget: Budget, share: float) -> Budget:
    """What is left of a budget after a share of it, in squared mu."""
    mu = gaussian_mu(budget.epsilon, budget.delta) * math.sqrt(1 - share)
    return Budget(compose(Gaussian(1 / mu)).epsilon(budget.delta), budget.delta)


def _least_noise(release: Release, task: Task, beside: Plan | None) -> float:
    """The least factor of the noise of a release with which it keeps within the budget, beside a fit."""
    price = Counter({release.event(task.neighbours): 1}) + release.mechanism.imprecision(release.entries)
    event, budget = Repeated(together(price), task.fits), (task.budget.epsilon, task.budget.delta)
    return calibrate(event, *budget) if beside is None else calibrate_beside(beside.event, event, *budget)
