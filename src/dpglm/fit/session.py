"""A fit, from a recipe and a table to coefficients and a guarantee."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import progress, strict
from ..accounting import Event
from ..curator import Curator
from ..data.raw_counts import TableSize
from ..errors import PlanMismatch, PrivacyWarning, UnsupportedProblem, silent
from ..ledger import Reservation, current_account, reserve
from ..mechanisms import Randomness
from ..penalties import Separable
from ..plan import Plan
from ..plan.private_size import count_of, count_release
from ..privacy import Guarantee, Neighbours
from ..problem import Problem
from ..queries import RecordCount
from ..solvers import AnySolver, Result, record_share
from .presentations import ClassWeights
from .recipe import PlannedFit, Recipe
from .tables import FitTable

_MANY = 1 << 20
_APART = 4


@dataclass
class Session:
    """What pays for releases, makes them and logs them, until the log is compared with the plan.

    Parameters
    ----------
    who : str
        What releases, in an error.
    randomness : Randomness
    account : str or None
        Address of the account that pays, if one does.
    verbose : int
    curate : callable
        Makes the curator of some records; an audit gives one that writes down all releases.
    """

    who: str
    randomness: Randomness
    account: str | None = None
    verbose: int = 0
    curate: Callable[[Any, Neighbours, Randomness], Curator] = Curator
    payment: Reservation | None = None
    _curators: list[Curator] = field(default_factory=list)

    @property
    def spends(self) -> bool:
        """Whether a budget is spent: not with a seed, which promises nothing, nor in an audit."""
        return self.randomness.secure and current_account() != ""

    def reserve(self, plan: Plan, at_epsilon: Callable[[float], Plan], ready: Callable[[], None]) -> None:
        """Charge the account for a plan, if there is one.

        ``at_epsilon`` plans the same with another budget, and ``ready`` is called before the charge: an error
        that it raises costs nothing.
        """
        self.payment = reserve(
            self.account, plan, secure=self.randomness.secure, planned=at_epsilon, ready=ready
        )

    def curator(self, records: Any, neighbours: Neighbours) -> Curator:
        """The curator of some records, whose releases belong to this session."""
        self._curators.append(self.curate(records, neighbours, self.randomness))
        return self._curators[-1]

    def progress(self, plan: Plan) -> AbstractContextManager[None]:
        """Show how much of a plan is done, if that is wanted.

        Releases are counted, or passes where a release takes a number of them that is not known beforehand.
        """
        if not strict.verbosity("verbose", self.verbose) and not progress.is_wanted():
            return nullcontext()
        if plan.passes is not None and not plan.passes.is_exact:
            return progress.shown(plan.solver, "passes", plan.passes.usual, exact=False)
        releases = sum(release.count for release in plan.releases) or plan.steps
        before = sum(release.count for release in plan.learning)
        return progress.shown(
            plan.solver, "releases", before + releases * plan.fits, exact=plan.budget.private
        )

    def close(self, plan: Plan) -> dict[str, object]:
        """Compare the log with the plan and commit the charge; return what the guarantee states of it."""
        spent = sum((curator.spent for curator in self._curators), Counter[Event]())
        if plan.budget.private and spent != plan.price:
            raise PlanMismatch(f"{self.who} released something other than its plan: the fit is refused")
        if self.payment is None:
            return {}
        self.payment.commit()
        return {"ledger": self.payment.words}


@dataclass(frozen=True)
class Outcome:
    """What a fit returns: all of it was released, or is public."""

    recipe: Recipe
    problem: Problem
    plan: Plan
    results: Sequence[Result]
    findings: Sequence[Any]
    guarantee: Guarantee


@np.errstate(all="ignore")  # a warning about a number would reveal something about a record
def run(recipe: Recipe, table: FitTable, session: Session) -> Outcome:
    """Fit by a recipe: plan, reserve, run the preludes, solve, compare the log with the plan, commit."""
    if recipe.counts_records:
        recipe = _counted(recipe, table, session)
    problem, solver, plan = recipe.planned()
    _warn(recipe, problem, plan, session)
    with session.progress(plan):
        table = table.for_solver(solver, plan, problem)
        records = table.records(recipe, _most(recipe, plan))
        if not recipe.counts_records:
            session.reserve(plan, _planner(recipe), records.require_readable)
        findings = []
        for prelude in recipe.preludes:
            finding = prelude.run(plan, records, lambda some: session.curator(some, plan.neighbours))
            recipe, changed = finding.applied(recipe), finding.table(table, recipe)
            if changed is not table:
                table, records = changed, changed.records(recipe, _most(recipe, plan))
            findings.append(finding)
        if findings and not plan.budget.private:  # exact findings may be part of the problem
            problem, solver, plan = recipe.planned()
        results = [
            solver.run(plan, problem, session.curator(records.with_target(target), plan.neighbours))
            for target in map(recipe.presented_target, recipe.targets)
        ]
    facts = session.close(plan)
    _warn_of_steps(plan, results)
    if records.trusted:
        facts["trusted"] = records.trusted
    guarantee = _guarantee(recipe, problem, plan, results, facts, session.randomness)
    return Outcome(recipe, problem, plan, results, findings, guarantee)


def _most(recipe: Recipe, plan: Plan) -> int:
    """How many records there can be, if their number is private."""
    return plan.table_size if recipe.counts_records else 0


def _planner(recipe: Recipe) -> Callable[[float], Plan]:
    """The plan of the same fit at another epsilon."""
    return lambda epsilon: replace(recipe, epsilon=epsilon).planned().plan


def _counted(recipe: Recipe, table: FitTable, session: Session) -> Recipe:
    """The recipe for a released number of records, once the whole fit is charged for.

    What an account pays for is checked first with plans for few and for many records, since any of them may
    follow from the count: an error must not cost it. A refusal depends on no count.
    """
    count = count_release(recipe.budget)
    _ = recipe.for_size(1).problem  # refuses units, for whom a count of records is not private
    if session.account is not None:
        for problem, solver, plan in _possible_fits(recipe, possible_counts(count.mechanism.noise)):
            table.for_solver(solver, plan, problem)
    plan = recipe.before_the_count()
    plan.require_drawable()

    def read_once() -> None:
        if not table.is_read:
            table.records(recipe.for_size(1)).require_readable()

    session.reserve(plan, lambda epsilon: replace(recipe, epsilon=epsilon).before_the_count(), read_once)
    curator = session.curator(TableSize(table.shape[0]), recipe.neighbours)
    (released,) = curator.release(RecordCount(), count.mechanism)
    return recipe.for_size(count_of(float(released), count))


def _possible_fits(recipe: Recipe, counts: Sequence[int]) -> list[PlannedFit]:
    """The plans that may follow from a count, one for each solver; what cannot be planned is refused."""
    kinds: dict[type[AnySolver], PlannedFit] = {}
    for n in counts:
        try:
            with silent():  # the plan of the fit may be another one
                planned = recipe.for_size(n).planned()
        except ValueError as error:
            if not kinds:
                raise
            raise UnsupportedProblem(
                f"the number of records is private, so the fit must be possible whatever it is, and if it is "
                f"{n:,} it is not: {error}"
            ) from None
        kinds[type(planned.solver)] = planned
    return list(kinds.values())


def possible_counts(noise: float) -> list[int]:
    """Numbers of records to try a fit with before its records are counted: many first, then few and more.

    Each is four times the one before, from the least that a count with this noise can say on: limits of
    solvers depend on powers of the number of records, and settings change little between two of these.
    """
    least = max(1, math.ceil(noise))
    return [max(least, _MANY)] + [least * _APART**k for k in range(20) if least * _APART**k < _MANY]


def _warn(recipe: Recipe, problem: Problem, plan: Plan, session: Session) -> None:
    """Say what public numbers already tell of a fit; one that is known to fail is refused."""
    if plan.hopeless is not None and not recipe.counts_records and session.spends:
        raise UnsupportedProblem(plan.hopeless)
    warn_of_delta(plan)
    for warning in (plan.warning, *(prelude.warning(plan) for prelude in recipe.preludes)):
        if warning is not None:
            warnings.warn(warning, PrivacyWarning, stacklevel=4)
    if session.verbose:
        print(plan)
    warn_of_strong_l1(problem, recipe.n_features)


def _warn_of_steps(plan: Plan, results: Sequence[Result]) -> None:
    if not plan.budget.private and any(result.steps >= plan.steps for result in results):
        warnings.warn(
            f"{plan.solver} took all of its steps without noise and may not have reached the minimum",
            ConvergenceWarning,
            stacklevel=4,
        )


def _guarantee(
    recipe: Recipe, problem: Problem, plan: Plan, results: Sequence[Result], facts: dict[str, object],
    randomness: Randomness,
) -> Guarantee:  # fmt: skip
    """The guarantee of a fit, with a warning if few of the records counted."""
    stated = {
        "bounds": str(problem.declared_bounds),
        "loss": repr(problem.loss),
        "penalty": repr(problem.penalty),
        **dict(recipe.facts),
    }
    for presentation in recipe.presentations:
        stated |= presentation.facts()
    share_in_words = None
    if plan.budget.private:
        shares = [result.records for result in results]
        shares += [each.records for each in recipe.presentations if isinstance(each, ClassWeights)]
        share = record_share.combined([each for each in shares if each is not None])
        share_in_words = record_share.in_words(share, plan.unit)
        small = record_share.warning(share)
        if small is not None:
            warnings.warn(small, PrivacyWarning, stacklevel=5)
    return guarantee_of(plan, randomness, {**stated, **facts}, share_in_words)


def guarantee_of(
    plan: Plan, randomness: Randomness, public: dict[str, object], record_share: str | None = None
) -> Guarantee:
    """The promise of what kept to its plan."""
    facts = {
        **_stated_size(plan),
        "p": plan.n_features,
        **public,
        "plan": f"{plan.solver} with {plan.settings_in_words}",
    }
    if plan.learning:
        facts["learning"] = plan.learning_in_words
    return Guarantee(
        epsilon=plan.epsilon,
        delta=plan.budget.delta,
        neighbours=plan.neighbours.value,
        public=facts,
        releases=tuple(plan.stated_releases()) if plan.budget.private else (),
        composition=plan.composition,
        randomness=randomness.description,
        secure=randomness.secure,
        not_covered=plan.neighbours.not_covered_for(plan.unit),
        unit=plan.unit,
        record_share=record_share,
    )


def randomness_of(random_state: object) -> Randomness:
    """Where noise comes from; with a seed it is predictable, which a warning says."""
    if random_state is None:
        return Randomness()
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    if isinstance(random_state, np.random.Generator):
        random_state = random_state.integers(2**63)
    if not isinstance(random_state, Integral) or isinstance(random_state, bool):
        raise ValueError(
            f"random_state must be None, an integer, a RandomState or a Generator, got {random_state!r}"
        )
    warnings.warn(
        "random_state makes the noise predictable: the fit can be repeated but is not private",
        PrivacyWarning,
        stacklevel=4,
    )
    return Randomness(int(random_state))


def _stated_size(plan: Plan) -> dict[str, object]:
    """The number of records, as a promise states it."""
    if plan.count is None:
        return {"n": plan.n_records}
    noise = plan.count.mechanism.noise
    return {"n": f"{plan.n_records}, a released count whose noise has deviation {noise:.3g}"}


def warn_of_delta(plan: Plan) -> None:
    """Warn of a delta that is no promise to each record."""
    if plan.budget.private and plan.budget.delta > 1 / plan.n_records:
        warnings.warn(
            f"delta = {plan.budget.delta:g} exceeds 1/n: such a promise may release whole records",
            PrivacyWarning,
            stacklevel=4,
        )


def warn_of_strong_l1(problem: Problem, n_features: int) -> None:
    """Warn of an L1 strength that leaves no coefficient, or hardly one, within the declared bounds."""
    strength = problem.penalty.coordinate_form()[0] if isinstance(problem.penalty, Separable) else 0.0
    limit = _strongest_l1(problem, n_features)
    if strength >= limit:
        effect = "makes every coefficient 0 for any records within the bounds: choose one well below {:g}"
    elif strength > limit / 4:
        effect = "leaves few or no coefficients: from {:g} on, all are 0 for any records within the bounds"
    else:
        return
    warnings.warn(f"an L1 strength of {strength:g} {effect.format(limit)}", UserWarning, stacklevel=4)


def _strongest_l1(problem: Problem, n_features: int) -> float:
    """The L1 strength from which on the minimiser is 0 for every table within the bounds.

    It is the largest mean of slope times feature at coefficients of 0. With an intercept the slopes add up to
    0 there, so their mean size is at most half the range of targets, and at most the Lipschitz constant.
    Without one it is the largest slope of a prediction of 0, which a convex loss has at an end of the range.
    """
    if problem.fit_intercept or problem.outputs > 1:
        slope = problem.slope_bound()
    elif problem.loss.kind != "classification" and problem.bounds.target is None:
        slope = math.inf
    else:
        ends = np.array(problem.bounds.target or (-1.0, 1.0))
        slope = float(np.abs(problem.loss.derivative(np.zeros(2), ends)).max())
    return slope * problem.bounds.largest_feature(n_features)
