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
from ..queries import HeldOutScores
from ..queries.held_out import score_for
from ..split import Split
from ..tables import Capability
from .base import AnySolver, AuditCase, Choice, Result, Solver, Task, opposed, require_public_size
from .path import FREEDOMS, followed

LEAST_SHARE, MOST_SHARE = 0.02, 0.1
"""Range of the share of rows that are held out by default."""

FINE, USELESS = 0.005, 0.03
"""Noise of a score, over the largest loss, that the default share aims at, and that it must stay below."""

HALVINGS = 4
"""Iterates are kept after all steps, half of them, a quarter, ..."""


@dataclass(frozen=True)
class AlongPlan(Plan):
    """Plan of `Along`: its one part is the plan of the fit; without releases that fit is all there is."""

    solver: ClassVar[str] = "path"
    may_release: ClassVar[Releasable] = {HeldOutScores.name: (Exponential,)}

    share: float
    stops: tuple[float, ...]
    candidates: int
    most: float

    @property
    def split(self) -> Split:
        """The rows for training, and the rows that are held out."""
        return Split(self.share)

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
                f"its loss on the other {self.n_records - fit.n_records}"
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
    """Fit by another solver, and take the model along its way that has the least loss on held-out rows.

    The models are iterates, steps of greedy descent or Frank-Wolfe, rounds of Newton's method, and a ridge
    path from the released Gram matrix, as the solver has them. Which one is taken is a draw of the
    exponential mechanism. A record is either in the fit or held out, by its position, and pays for one of
    both.

    Parameters
    ----------
    inner : str or Solver
        What fits.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 10 %, as much as a good choice needs. If
        10 % are not enough, nothing is held out and the fit to all rows is returned.
    """

    plan_type: ClassVar[type[Plan]] = AlongPlan
    takes_outputs: ClassVar[bool] = True

    inner: str | AnySolver = "auto"
    share: float | None = None

    def plan_for(self, task: Task) -> AlongPlan:
        require_public_size(task, "PrivatePath")
        from . import get

        solver, share = get(self.inner, task), self._share(task)
        training = Split(share).training.before(task.n)
        single = task.problem.outputs == 1  # scores are of one prediction a record
        if share and solver.path and single and 0 < training < task.n:
            fit = solver.plan_for(replace(task, n=training))
            stops = stops_of(fit.steps) if "steps" in solver.path else []
            candidates = len(stops) + 1 + (len(FREEDOMS) if "ridge" in solver.path else 0)
            if candidates > 1:
                score, most = score_for([task.problem.loss], task.problem.bounds.target)
                query = HeldOutScores(score, most, candidates, task.n - training)
                release = Release(
                    query.name, Exponential(1.0), 1, f"{query.of_one_score:.4g}", entries=candidates
                )
                return AlongPlan(
                    *task.facts, (release.scaled(_least_noise(release, task)),), fit.steps, share,
                    tuple(map(float, stops)), candidates, most, parts=(fit,),
                )  # fmt: skip
        fit = solver.plan_for(task)
        return AlongPlan(*task.facts, (), fit.steps, 0.0, (), 1, 0.0, parts=(fit,))

    def _share(self, task: Task) -> float:
        if not task.private:
            return 0.0
        if self.share is not None:
            return float(self.share)
        mu = gaussian_mu(task.budget.epsilon, task.budget.delta) / math.sqrt(task.fits)
        noise = min(1 / mu, 2 * task.fits / task.budget.epsilon)
        rows = math.log(HALVINGS + len(FREEDOMS) + 1) * noise
        if rows / (MOST_SHARE * task.n) > USELESS:
            return 0.0
        return min(max(rows / (FINE * task.n), LEAST_SHARE), MOST_SHARE)

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
            models = [*path.points, ("the whole fit", result.w)]
            # As many as planned: a model that was not visited is the last one once more.
            models += [models[-1]] * (plan.candidates - len(models))
            query = HeldOutScores(
                score_for([problem.loss], problem.bounds.target)[0], plan.most, plan.candidates,
                plan.n_records - fit.n_records,
            )  # fmt: skip
            points = np.column_stack([w for _, w in models])
            k = held_out.open(query, points, plan[query.name].mechanism).choose()
        name, w = models[k]
        return Result(w, result.steps, chosen=Choice(k, name))

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """The record is held out: the first row of a table always is."""
        from .gradient_descent import GradientDescent

        inner = GradientDescent(steps=2, clip=0.1, step_size=20.0)
        return (opposed(cls(inner, share=0.4), 1, crowd=7),)


def stops_of(steps: int) -> list[int]:
    """After how many steps a model is kept: a half of all, a quarter, ..., from the smallest on."""
    return sorted({steps >> k for k in range(1, HALVINGS + 1)} - {0})


def _least_noise(release: Release, task: Task) -> float:
    """The least factor of the noise of a release with which it keeps within the budget, alone."""
    price = Counter({release.event(task.neighbours): 1}) + release.mechanism.imprecision(release.entries)
    return calibrate(Repeated(together(price), task.fits), task.budget.epsilon, task.budget.delta)
