"""Model selection: among the models along one fit, and among random candidates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

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
    calibrate_beside,
    compose,
    gaussian_mu,
    together,
    tries_of,
)
from ..accounting import Gaussian as GaussianEvent
from ..curator import Curator
from ..mechanisms import Exponential, Gaussian
from ..mechanisms.randomness import TRIES_DISTANCE
from ..plan import PassCount, Plan, Releasable, Release
from ..privacy import Budget
from ..problem import Problem
from ..queries import Gains, HeldOutScores
from ..queries.model_comparison import gain_for, score_for
from ..tables import Capability, Split
from .audit_cases import AuditCase, opposed
from .base import AnySolver, Choice, Result, Solver, Task, require_public_size
from .iterates import FREEDOMS, Model, none_counts, sparse_counts

LEAST_SHARE, MOST_SHARE = 0.02, 0.05
"""Range of the share of rows that are held out by default."""

LEAST_BUDGET, MOST_BUDGET = 0.01, 0.05
"""Range of the share of the budget, in squared mu, for a choice on all rows by default."""

FINE = 0.05
"""Handicap of a record, over the cut of its gain, that the default shares aim at."""

HALVINGS = 4
"""Iterates are kept after all steps, half of them, a quarter, ..."""

ODDS = 4.0
"""The whole fit is so much likelier to be taken than all other models together, if none of them is better."""

SPREAD = 0.2
"""Sampling error of a sum of gains, over the largest that it can have: of gains that are all at the cut."""

LEAST_SHARE_OF_SEARCH, MOST_SHARE_OF_SEARCH = 0.02, 0.1
"""Range of the share of rows that are held out by default."""

FINE_SCORE = 0.005
"""Noise of a score, over the largest loss, that the default share aims at."""

LEAST_CHANCE = 1 / 2
"""A law is chosen by default only if it tries one of the best 1/runs of candidates this often."""


@dataclass(frozen=True)
class IterateChoicePlan(Plan):
    """Plan of `IterateChoice`: its part is the plan of the fit; without releases that fit is all there is."""

    solver: ClassVar[str] = "path"
    may_release: ClassVar[Releasable] = {Gains.name: (Exponential,)}

    share: float
    budget_share: float
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
    def judges(self) -> int:
        """Number of rows that the choice is by: those that are held out, or all."""
        return self.held_out or self.n_records

    @property
    def handicap(self) -> float:
        """What all models but the whole fit lose of their gains, which are sums over the rows that judge."""
        noise = self.releases[0].mechanism.noise
        return self.most * handicap_of(noise * self.neighbours.records_moved, self.candidates, self.judges)

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
        if not self.held_out:
            return prices[0] + prices[1]
        return Counter({Parallel(tuple(map(together, prices)), self.split.rule): 1})

    @property
    def composition(self) -> str:
        (fit,) = self.parts
        if not self.chooses:
            return fit.composition
        if not self.held_out:
            return super().composition
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
            rows = f"the other {self.held_out}"
            if not self.held_out:
                rows = f"the same records, for {100 * self.budget_share:.2g} % of the budget, in squared mu"
            words = (
                f"one of {self.candidates} models along a fit by {fit.solver} to {fit.n_records} records, by "
                f"its loss on {rows}; one that is not the last must have a loss that is less by "
                f"{self.handicap / self.judges:.2g} in the mean"
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


def handicap_of(noise: float, candidates: int, rows: float) -> float:
    """The handicap of models beside the whole fit, over the cut of a record's gain.

    If no model is better, the exponential mechanism takes the whole fit with probability ODDS / (1 + ODDS).
    What held-out rows show by chance comes on top. ``noise`` is the scale of a draw, over that cut.
    """
    return noise * math.log(ODDS * (candidates - 1)) + SPREAD * math.sqrt(rows)


@dataclass(frozen=True)
class IterateChoice(Solver[IterateChoicePlan]):
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

    plan_type: ClassVar[type[Plan]] = IterateChoicePlan
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

    def plan_for(self, task: Task) -> IterateChoicePlan:
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
                return IterateChoicePlan(
                    *task.facts, (release.scaled(least),), fit.steps, *shares, tuple(map(float, stops)),
                    candidates, most, parts=(fit,),
                )  # fmt: skip
        fit = solver.plan_for(task)
        return IterateChoicePlan(*task.facts, (), fit.steps, 0.0, 0.0, (), 1, 0.0, parts=(fit,))

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
    def needs(cls, plan: IterateChoicePlan) -> frozenset[Capability]:
        from . import solver_of

        return solver_of(plan.parts[0]).needs(plan.parts[0])

    @classmethod
    def run(cls, plan: IterateChoicePlan, problem: Problem, curator: Curator) -> Result:
        from . import run as run_by_plan

        (fit,) = plan.parts
        if not plan.chooses:
            return run_by_plan(fit, problem, curator)
        with curator.apart(plan.split) if plan.held_out else nullcontext((curator, curator)) as parts:
            fitted, judges = parts
            result = run_by_plan(fit, problem, fitted, [int(stop) for stop in plan.stops])
            # As many as planned: a model that was not visited is the whole fit once more.
            models = [Model("the whole fit", result.w), *result.iterates]
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
        return held_out, held_out.with_weights(weight=3.0, offset=0.5), judge


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
    return Budget(compose(GaussianEvent(1 / mu)).epsilon(budget.delta), budget.delta)


def _least_noise(release: Release, task: Task, beside: Plan | None) -> float:
    """The least factor of the noise of a release with which it keeps within the budget, beside a fit."""
    price = Counter({release.event(task.neighbours): 1}) + release.mechanism.imprecision(release.entries)
    event, budget = Repeated(together(price), task.fits), (task.budget.epsilon, task.budget.delta)
    return calibrate(event, *budget) if beside is None else calibrate_beside(beside.event, event, *budget)


@dataclass(frozen=True)
class Candidate:
    """A model that may be tried: the problem that it solves for a table of a size, and what solves it."""

    problem: Callable[[int, int], Problem]
    solver: str | AnySolver


@dataclass(frozen=True)
class RandomSearchPlan(Plan):
    """Plan of `RandomSearch`: its parts are the plans of one try of each candidate."""

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
class RandomSearch(Solver[RandomSearchPlan]):
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

    plan_type: ClassVar[type[Plan]] = RandomSearchPlan
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

    def plan_for(self, task: Task) -> RandomSearchPlan:
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
        plan = RandomSearchPlan(
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
            if problem.outputs != task.problem.outputs:
                raise ValueError("all candidates must have as many predictions per record as the estimator")
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
        return (
            min(max(1 / (mu * FINE_SCORE * task.n), LEAST_SHARE_OF_SEARCH), MOST_SHARE_OF_SEARCH)
            if mu
            else MOST_SHARE_OF_SEARCH
        )

    @classmethod
    def needs(cls, plan: RandomSearchPlan) -> frozenset[Capability]:
        from . import solver_of

        return frozenset(need for part in plan.parts for need in solver_of(part).needs(part))

    def run(  # type: ignore[override]  # the problems of the candidates are not part of the plan
        self, plan: RandomSearchPlan, problem: Problem, curator: Curator
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


def _calibrated(plan: RandomSearchPlan) -> RandomSearchPlan:
    """The plan with all noise raised, if need be, to what keeps within the budget."""
    factor = max(1.0, calibrate(plan.event, plan.budget.epsilon, plan.budget.delta))
    parts = tuple(
        replace(part, releases=tuple(release.scaled(factor) for release in part.releases))
        for part in plan.parts
    )
    return replace(plan, releases=tuple(one.scaled(factor) for one in plan.releases), parts=parts)
