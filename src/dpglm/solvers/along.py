"""One of the models along a fit, chosen by its loss on rows that were held out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..accounting import Event, Parallel, Repeated, calibrate, gaussian_mu, together
from ..curator import Curator
from ..mechanisms import Exponential
from ..plan import PassCount, Plan, Releasable, Release
from ..problem import Problem
from ..queries import HeldOutGains
from ..queries.held_out_gains import gain_for
from ..split import Split
from ..tables import Capability
from .base import AnySolver, AuditCase, Choice, Result, Solver, Task, opposed, require_public_size
from .derived import FREEDOMS, sparse_counts
from .path import followed

LEAST_SHARE, MOST_SHARE = 0.02, 0.05
"""Range of the share of rows that are held out by default."""

ODDS = 4.0
"""The whole fit is so much likelier to be taken than all other models together, if none of them is better."""

SPREAD = 0.2
"""Sampling error of a sum of gains, over the largest that it can have: of gains that are all at the cut."""

FINE = 0.05
"""Handicap of a record, over the cut of its gain, that the default share aims at."""

HALVINGS = 4
"""Iterates are kept after all steps, half of them, a quarter, ..."""


@dataclass(frozen=True)
class AlongPlan(Plan):
    """Plan of `Along`: its one part is the plan of the fit; without releases that fit is all there is."""

    solver: ClassVar[str] = "path"
    may_release: ClassVar[Releasable] = {HeldOutGains.name: (Exponential,)}

    share: float
    stops: tuple[float, ...]
    candidates: int
    most: float

    @property
    def split(self) -> Split:
        """The rows for training, and the rows that are held out."""
        return Split(self.share)

    @property
    def held_out(self) -> int:
        """Number of rows that are held out."""
        return self.n_records - self.parts[0].n_records

    @property
    def handicap(self) -> float:
        """What all models but the whole fit lose of their gains, which are sums over the held-out rows."""
        noise = self.releases[0].mechanism.noise
        return self.most * _handicap(noise * self.neighbours.records_moved, self.candidates, self.held_out)

    @property
    def chooses(self) -> bool:
        """Whether there is a choice."""
        return bool(self.releases)

    @property
    def price_of_a_fit(self) -> Counter[Event]:
        (fit,) = self.parts
        if not self.chooses:
            return fit.price_of_a_fit
        prices = fit.price_of_a_fit, super().price_of_a_fit
        return Counter({Parallel(tuple(map(together, prices)), self.split.rule): 1})

    @property
    def composition(self) -> str:
        (fit,) = self.parts
        if not self.chooses:
            return fit.composition
        return (
            f"a record is in one of two disjoint parts ({self.split.rule}), and pays for that one; the fit: "
            f"{fit.composition}"
        )

    @property
    def forecast(self) -> str | None:
        (fit,) = self.parts
        if not self.budget.private:
            return None
        if not self.chooses:
            words = (
                f"nothing to choose, or too few records to choose by: one fit by {fit.solver} to all of them"
            )
        else:
            words = (
                f"one of {self.candidates} models along a fit by {fit.solver} to {fit.n_records} records, by "
                f"its loss on the other {self.held_out}; one that is not the last must have a loss that is "
                f"less by {self.handicap / self.held_out:.2g} in the mean"
            )
        return words if fit.forecast is None else f"{words}; {fit.forecast}"

    @property
    def warning(self) -> str | None:
        return self.parts[0].warning

    @property
    def _counts(self) -> list[int]:
        return [self.parts[0].steps]

    def _passes_of_a_fit(self) -> PassCount | None:
        each = self.parts[0]._passes_of_a_fit()
        return None if each is None else PassCount(each.usual + self.chooses, each.most + self.chooses)


@dataclass(frozen=True)
class Along(Solver[AlongPlan]):
    """Fit by another solver, and take a model along its way instead if its loss on held-out rows is less.

    The models are iterates, steps of greedy descent or Frank-Wolfe, rounds of Newton's method, and models
    that follow from the last one: a ridge path and sparse models, refitted to the released Gram matrix if
    there is one. Which one is taken is a draw of the exponential mechanism among their gains over the whole
    fit, less a public handicap. A record is either in the fit or held out, by its position, and pays for one
    of both.

    Parameters
    ----------
    inner : str or Solver
        What fits.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 5 %, as much as a good choice needs. If that
        takes more than 5 %, nothing is held out and the fit to all rows is returned.
    """

    plan_type: ClassVar[type[Plan]] = AlongPlan
    takes_outputs: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_persons: ClassVar[bool] = True

    inner: str | AnySolver = "auto"
    share: float | None = None

    def plan_for(self, task: Task) -> AlongPlan:
        require_public_size(task, "PrivatePath")
        from . import get, require_suited

        solver = get(self.inner, task)
        require_suited(solver, task.problem)
        share = self._share(task, solver)
        training = Split(share).training.before(task.n)
        if 0 < training < task.n:
            fit = solver.plan_for(replace(task, n=training))
            stops = stops_of(fit.steps) if "steps" in solver.path else []
            candidates = 1 + len(stops) + _derived(task, solver)
            if candidates > 1:
                score, most = gain_for(task.problem.loss, task.problem.bounds.target)
                query = HeldOutGains(score, most, candidates - 1, task.n - training)
                moved = query.of_one(task.neighbours)
                release = Release(query.name, Exponential(1.0), 1, f"{moved:.4g}", entries=candidates)
                return AlongPlan(
                    *task.facts, (release.scaled(_least_noise(release, task)),), fit.steps, share,
                    tuple(map(float, stops)), candidates, most, parts=(fit,),
                )  # fmt: skip
        fit = solver.plan_for(task)
        return AlongPlan(*task.facts, (), fit.steps, 0.0, (), 1, 0.0, parts=(fit,))

    def _share(self, task: Task, solver: AnySolver) -> float:
        """The share of the rows that are held out; 0 if there is nothing to choose, or not enough rows."""
        if not task.private or not solver.path or task.problem.outputs > 1:  # gains are of one prediction
            return 0.0
        if self.share is not None:
            return float(self.share)
        mu = gaussian_mu(task.budget.epsilon, task.budget.delta) / math.sqrt(task.fits)
        noise = task.moved * min(1 / mu, 2 * task.fits / task.budget.epsilon)
        # The number of rows m with a handicap of FINE m.
        alone = _handicap(noise, 1 + HALVINGS + _derived(task, solver), 0.0)
        rows = ((SPREAD + math.sqrt(SPREAD**2 + 4 * FINE * alone)) / (2 * FINE)) ** 2
        return max(rows / task.n, LEAST_SHARE) if rows <= MOST_SHARE * task.n else 0.0

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
        with curator.apart(plan.split) as (training, held_out):
            with followed([int(stop) for stop in plan.stops]) as path:
                result = run_by_plan(fit, problem, training)
            # As many as planned: a model that was not visited is the whole fit once more.
            models = [("the whole fit", result.w), *path.points]
            models += [models[0]] * (plan.candidates - len(models))
            score, _ = gain_for(problem.loss, problem.bounds.target)
            query = HeldOutGains(score, plan.most, plan.candidates - 1, plan.held_out)
            points = np.column_stack([w for _, w in models])
            k = held_out.open(query, points, plan[query.name].mechanism).choose(plan.handicap)
        name, w = models[k]
        return Result(w, result.steps, chosen=Choice(k, name))

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """The record is held out: the first row of a table always is.

        All rows of the fit are alike. One held-out row makes up for the handicap of a shorter fit, so that
        the record decides.
        """
        from .gradient_descent import GradientDescent

        case = opposed(cls(GradientDescent(steps=2, clip=0.1, step_size=20.0), share=0.4), 1, crowd=7)
        _, other, *idle = Split(0.4).held_out.taken(0, 8) - 1
        row, _ = case.second
        rows, targets = np.tile(row, (7, 1)), np.ones(7)
        rows[idle], targets[other] = 0.0, -1.0
        held_out = replace(case, bystanders=(rows, targets), first=(row, -1.0), second=(row, 1.0))
        return held_out, held_out.beside(weight=3.0, offset=0.5)


def stops_of(steps: int) -> list[int]:
    """After how many steps a model is kept: a half of all, a quarter, ..., from the smallest on."""
    return sorted({steps >> k for k in range(1, HALVINGS + 1)} - {0})


def _derived(task: Task, solver: AnySolver) -> int:
    """How many models a solver offers that follow from its last one."""
    sparse = len(sparse_counts(task.problem, task.p)) if "sparse" in solver.path else 0
    return sparse + (len(FREEDOMS) if "ridge" in solver.path else 0)


def _handicap(noise: float, candidates: int, rows: float) -> float:
    """The handicap of models beside the whole fit, over the cut of a record's gain.

    If no model is better, the exponential mechanism takes the whole fit with probability ODDS / (1 + ODDS).
    What held-out rows show by chance comes on top. ``noise`` is the scale of a draw, over that cut.
    """
    return noise * math.log(ODDS * (candidates - 1)) + SPREAD * math.sqrt(rows)


def _least_noise(release: Release, task: Task) -> float:
    """The least factor of the noise of a release with which it keeps within the budget, alone."""
    price = Counter({release.event(task.neighbours): 1}) + release.mechanism.imprecision(release.entries)
    return calibrate(Repeated(together(price), task.fits), task.budget.epsilon, task.budget.delta)
