"""The best of a random number of fits of random candidates, each scored on rows that were held out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from .. import strict
from ..accounting import (
    LAWS,
    Event,
    Imprecision,
    NegativeBinomial,
    Parallel,
    PoissonTries,
    Repeated,
    Search,
    Tries,
    calibrate,
    compose,
    together,
    tries_of,
)
from ..accounting import (
    Gaussian as GaussianEvent,
)
from ..curator import Curator
from ..mechanisms import Gaussian
from ..mechanisms.randomness import TRIES_DISTANCE
from ..plan import PassCount, Plan, Releasable, Release
from ..privacy import Budget
from ..problem import Problem
from ..queries import HeldOutScores
from ..queries.held_out import score_for
from ..split import Split
from ..tables import Capability
from .base import AnySolver, AuditCase, Choice, Result, Solver, Task, require_public_size

LEAST_SHARE, MOST_SHARE = 0.02, 0.1
"""Range of the share of rows that are held out by default."""

FINE = 0.005
"""Noise of a score, over the largest loss, that the default share aims at."""

LEAST_CHANCE = 1 / 2
"""A law is chosen by default only if it tries one of the best 1/runs of candidates this often."""


@dataclass(frozen=True)
class Candidate:
    """A model that may be tried: the problem that it solves for a table of a size, and what solves it."""

    problem: Callable[[int, int], Problem]
    solver: str | AnySolver


@dataclass(frozen=True)
class SearchedPlan(Plan):
    """Plan of `Searched`: its parts are the plans of one try of each candidate."""

    solver: ClassVar[str] = "search"
    may_release: ClassVar[Releasable] = {HeldOutScores.name: (Gaussian,)}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"law": LAWS}

    share: float
    most: float
    law: str
    runs: float
    stop: float

    @property
    def split(self) -> Split:
        """The rows for training, and the rows that are held out."""
        return Split(self.share)

    @property
    def tries(self) -> Tries:
        """The law of the number of tries."""
        if self.law == "poisson":
            return PoissonTries(self.runs)
        return NegativeBinomial(0.0 if self.law == "logarithmic" else 1.0, self.stop)

    @property
    def search(self) -> Search:
        """What a search costs."""
        score = together(super().price_of_a_fit)
        rule = self.split.rule
        events = [Parallel((together(part.price_of_a_fit), score), rule) for part in self.parts]
        return Search(tuple(together({event: 1}) for event in events), self.tries)

    @property
    def price_of_a_fit(self) -> Counter[Event]:
        if not self.budget.private:
            return Counter()
        return Counter({self.search: 1, Imprecision(TRIES_DISTANCE): 1})

    @property
    def composition(self) -> str:
        if not self.budget.private:
            return super().composition
        return (
            f"as the best of a secret number of tries ({self.tries.words}), from the privacy curve of one "
            f"try, rounded against us; in a try a record is in one of two disjoint parts "
            f"({self.split.rule}), and pays for that one"
        )

    @property
    def forecast(self) -> str | None:
        if not self.budget.private:
            return None
        each = self.parts[0].budget.epsilon
        even = even_split(self.budget, self.fits, self.runs)
        return (
            f"{self.tries.words}, each of one of {len(self.parts)} candidates with epsilon {each:.3g}; an "
            f"even split over {math.ceil(self.runs)} tries would leave each epsilon {even:.3g}"
        )

    @property
    def warning(self) -> str | None:
        return next((part.warning for part in self.parts if part.warning is not None), None)

    @property
    def _counts(self) -> list[int]:
        return [self.steps]

    def _passes_of_a_fit(self) -> PassCount | None:
        return None


@dataclass(frozen=True)
class Searched(Solver[SearchedPlan]):
    """Try random candidates a random number of times, and take the best by its loss on held-out rows.

    Parameters
    ----------
    candidates : tuple of Candidate
        Each is drawn with the same probability, again and again.
    runs : float
        How many tries there are on average.
    law : {"auto", "logarithmic", "geometric", "poisson"}
        The law of that number; "auto" takes the one that leaves most to each try.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 10 %.
    """

    plan_type: ClassVar[type[Plan]] = SearchedPlan
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True
    choices: ClassVar[dict[str, tuple[str | None, ...]]] = {"law": ("auto", *LAWS)}

    candidates: tuple[Candidate, ...]
    runs: float = 10.0
    law: str = "auto"
    share: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.number("runs", self.runs, "from 2 to 1000", lambda runs: 2 <= runs <= 1000)
        if not self.candidates:
            raise ValueError("there must be at least one candidate")

    def plan_for(self, task: Task) -> SearchedPlan:
        require_public_size(task, "PrivateSearch")
        problems = self._problems(task)
        score, most = score_for([problem.loss for problem in problems], task.problem.bounds.target)
        law, tries, mu = self._cheapest(task)
        share = self._share(task, mu)
        training = Split(share).training.before(task.n)
        if not 0 < training < task.n:
            raise ValueError(f"n_samples = {task.n} is too few: some rows must be held out")
        budget = task.budget
        if task.private:
            budget = Budget(compose(GaussianEvent(1 / mu)).epsilon(budget.delta), budget.delta)
        query = HeldOutScores(score, most, 1, task.n - training)
        release = Release(
            query.name, Gaussian(1 / mu if mu else 0.0), 1, f"{query.sensitivity(task.neighbours):.4g}"
        )
        parts = tuple(
            self._plan(k, replace(task, problem=problem, n=training, budget=budget, fits=1))
            for k, problem in enumerate(problems)
        )
        plan = SearchedPlan(
            *task.facts, (release,), max(part.steps for part in parts), share, most, law, float(self.runs),
            tries.stop if isinstance(tries, NegativeBinomial) else 0.0, parts=parts,
        )  # fmt: skip
        return _calibrated(plan) if task.private else plan

    def _problems(self, task: Task) -> list[Problem]:
        problems = [candidate.problem(task.n, task.p) for candidate in self.candidates]
        for problem in problems:
            same = (
                problem.bounds == task.problem.bounds and problem.fit_intercept == task.problem.fit_intercept
            )
            if not same or (problem.loss.kind == "classification") != (
                task.problem.loss.kind == "classification"
            ):
                raise ValueError(
                    "all candidates must have the same bounds, the same fit_intercept and the same kind of "
                    "targets: they share the records"
                )
        return problems

    def _plan(self, k: int, task: Task) -> Plan:
        from . import get, require_suited

        solver = get(self.candidates[k].solver, task)
        require_suited(solver, task.problem)
        plan: Plan = solver.plan_for(task)
        return plan

    def _cheapest(self, task: Task) -> tuple[str, Tries, float]:
        """The law, and the mu that it leaves to a try; 0 without noise."""
        law = strict.one_of("law", self.law, ["auto", *LAWS])
        names = LAWS if law == "auto" else (law,)
        laws = [(name, tries_of(name, self.runs)) for name in names]
        if not task.private:
            return (*laws[0], 0.0)
        wide = [one for one in laws if one[1].missed(1 / self.runs) <= 1 - LEAST_CHANCE] or laws
        return max(
            ((*one, mu_of_a_try(one[1], task.budget, task.fits)) for one in wide), key=lambda one: one[2]
        )

    def _share(self, task: Task, mu: float) -> float:
        if self.share is not None:
            return float(self.share)
        return min(max(1 / (mu * FINE * task.n), LEAST_SHARE), MOST_SHARE) if mu else MOST_SHARE

    @classmethod
    def needs(cls, plan: SearchedPlan) -> frozenset[Capability]:
        from . import solver_of

        return frozenset(need for part in plan.parts for need in solver_of(part).needs(part))

    def run(  # type: ignore[override]  # the problems of the candidates are not part of the plan
        self, plan: SearchedPlan, problem: Problem, curator: Curator
    ) -> Result:
        from . import run as run_by_plan

        problems = [candidate.problem(plan.n_records, plan.n_features) for candidate in self.candidates]
        losses, target = [one.loss for one in problems], problem.bounds.target
        held, mechanism = plan.n_records - plan.parts[0].n_records, plan[HeldOutScores.name].mechanism

        def attempt(one: Curator, k: int) -> tuple[float, Result]:
            score, _ = score_for([losses[k], *losses], target)  # the loss of the candidate predicts
            query = HeldOutScores(score, plan.most, 1, held)
            with one.apart(plan.split) as (training, held_out):
                result = run_by_plan(plan.parts[k], problems[k], training)
                found = float(held_out.release(query, mechanism, result.w[:, None])[0])
            return found, replace(result, chosen=Choice(k, f"candidate {k}", -found / held))

        if plan.budget.private:
            best = curator.best_of(plan.search, attempt)
            return best or Result(problem.start(plan.n_features), 0)
        _, best = max((attempt(curator, k) for k in range(len(plan.parts))), key=lambda one: one[0])
        k = best.chosen.index if best.chosen else 0
        whole = replace(plan.parts[k], n_records=plan.n_records)
        return replace(run_by_plan(whole, problems[k], curator), chosen=best.chosen)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """A search hides its releases: its models are audited as a whole, in the tests of the auditor."""
        return ()


def mu_of_a_try(tries: Tries, budget: Budget, fits: int = 1) -> float:
    """The mu of a Gaussian try of a search that keeps within a budget."""
    event = Repeated(Search((GaussianEvent(1.0),), tries), fits)
    return 1 / calibrate(event, budget.epsilon, budget.delta)


def even_split(budget: Budget, fits: int, runs: float) -> float:
    """The epsilon that is left to each of so many tries of which all are released."""
    count = math.ceil(runs)
    noise = calibrate(Repeated(GaussianEvent(1.0), count * fits), budget.epsilon, budget.delta)
    return compose(GaussianEvent(noise)).epsilon(budget.delta)


def _calibrated(plan: SearchedPlan) -> SearchedPlan:
    """The plan with all noise raised, if need be, to what keeps within the budget."""
    factor = max(1.0, calibrate(plan.event, plan.budget.epsilon, plan.budget.delta))
    parts = tuple(
        replace(part, releases=tuple(release.scaled(factor) for release in part.releases))
        for part in plan.parts
    )
    return replace(plan, releases=tuple(one.scaled(factor) for one in plan.releases), parts=parts)
