"""Output perturbation: the exact minimiser, released once with noise."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import strict
from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import Gaussian, LinearTerm
from ..penalties import L2
from ..plan import PassCount, Plan, Releasable, Release
from ..problem import Problem
from ..queries import Minimiser
from ..queries.proximal_gradient import fallback_steps
from .audit_cases import AuditCase, opposed, opposed_in_scaled_columns
from .base import PREDICTION_NOISE, Result, Solver, Task, clip_of_gradients, equal_releases, require_smooth
from .exact import STEPS_WITHOUT_NOISE, exact_minimiser

_USUAL_SHARE, _USUAL_BESIDES = 1 / 12, 20
_LEAST_LIMIT, _MOST_TIMES, _MOST_BESIDES = 1_000, 8, 5_000


@dataclass(frozen=True)
class OutputPerturbationPlan(Plan):
    """Plan of `OutputPerturbation`."""

    solver: ClassVar[str] = "output perturbation"
    may_release: ClassVar[Releasable] = {Minimiser.name: (Gaussian,)}

    clip: float
    strength: float
    sparse: bool
    search_steps: int

    def _passes_of_a_fit(self) -> PassCount:
        return passes_of_search(self.search_steps)


@dataclass(frozen=True)
class OutputPerturbation(Solver[OutputPerturbationPlan]):
    """The minimiser of loss + penalty, found exactly and released once with Gaussian noise.

    For any penalty with an L2 part: one record moves the minimiser by at most twice its largest gradient
    norm over n times the strength of that part. So noise falls as the L2 part grows, and is large for a weak
    one. `ObjectivePerturbation` needs less noise.

    Parameters
    ----------
    clip : float, optional
        Largest L2 norm of one record's gradient. Where the gradient would exceed it, the loss is continued as
        a straight line.
    sparse : bool
        Set coefficients to 0 that noise alone could explain, if the penalty induces zeros, and level jumps
        that it could explain, if the penalty draws coefficients to equal values (see ``Penalty.denoised``).

    Notes
    -----
    The intercept gets the L2 part of the other coefficients, around its start. With an infinite epsilon the
    solver returns the exact minimiser, without that L2 part, clipping and ``sparse``.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk minimization", Journal of
    Machine Learning Research 12, 2011, arXiv:0912.0071: output perturbation, here with Gaussian noise.

    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: section 4.1, with the L2 part that its Theorem 1 lacks.
    """

    plan_type: ClassVar[type[Plan]] = OutputPerturbationPlan
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True

    clip: float | None = None
    sparse: bool = True

    def plan_for(self, task: Task) -> OutputPerturbationPlan:
        problem = task.problem
        require_smooth(problem, type(self).__name__)
        releases: tuple[Release, ...] = ()
        steps, clip, strength, search = STEPS_WITHOUT_NOISE, 0.0, problem.penalty.strong_convexity, 0
        if task.private:
            steps, clip = 1, task.enforced(default_clip(problem, task.p, task.noise, self.clip))
            query = minimiser(problem, task.n, task.p, clip, table_size=task.table_size)
            sensitivity, search = query.sensitivity(task.neighbours), steps_of_search(query)
            releases = (equal_releases(query.name, Gaussian, 1, sensitivity, entries=task.dimension),)
        plan = OutputPerturbationPlan(*task.facts, releases, steps, clip, strength, self.sparse, search)
        return plan.calibrated()

    @classmethod
    def run(cls, plan: OutputPerturbationPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        p = plan.n_features
        query = minimiser(problem, plan.n_records, p, plan.clip, table_size=plan.table_size)
        mechanism = plan[query.name].mechanism
        start = problem.start(p)
        w = curator.release(query, mechanism, np.zeros_like(start), start)
        if plan.sparse:
            noise = mechanism.noise * float(query.sensitivity(plan.neighbours))
            features, _ = problem.split(w)
            features[:] = problem.penalty.denoised(features, noise)
        return Result(problem.prox(w, 0.0), plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            opposed(cls(clip=0.1), 2, L2(1.0)),
            opposed(cls(clip=0.1), 1, L2(1.0), fit_intercept=True, crowd=7),
            opposed(cls(clip=0.1), 1, L2(1.0), fit_intercept=True, crowd=7).with_weights(
                weight=3.0, offset=0.5
            ),
            opposed(cls(clip=0.1), 2, L2(1.0)).with_units(first=12, second=3),
        )


def steps_of_search(query: Minimiser) -> int:
    """How many steps are enough to find the minimiser over any table; each reads the table once."""
    tolerance = query.tolerance(query.push, closely=True)
    return fallback_steps(query.condition, query.farthest(query.push) * query.strength / tolerance)


def passes_of_search(steps: int) -> PassCount:
    """The passes of a search for a minimiser, for which so many steps are enough.

    A power iteration and fast steps come first, which usually end long before (docs/defaults.md). In doubles
    and in pairs of doubles they are given up after as many steps, which blocks of growing length exceed up to
    three times; then follow the steps that are enough for any table. Extrapolation and certificates are
    beside these.
    """
    usual = _USUAL_BESIDES + math.ceil(steps * _USUAL_SHARE)
    return PassCount(usual, _MOST_TIMES * max(steps, _LEAST_LIMIT) + _MOST_BESIDES)


def default_clip(problem: Problem, p: int, noise: float, clip: float | None) -> float:
    """The clip of output perturbation: the given one, or the default, at most the largest gradient."""
    largest = problem.loss.lipschitz(problem.bounds.target) * problem.radius(p)
    return min(clip_of_gradients(problem, p, noise, clip)[0], largest)


def minimiser(
    problem: Problem, n: int, p: int, clip: float, quadratic: float = 0.0, table_size: int = 0,
    scales: Vector | None = None, table_radius: float | None = None,
) -> Minimiser:  # fmt: skip
    """The query for the minimiser of a problem, with an L2 part on the intercept as on its features.

    With scales it is the problem for the scaled columns of a table whose rows have this radius.
    """
    strength = problem.penalty.strong_convexity + quadratic
    return Minimiser(
        problem.loss, clip, problem.penalty, n, p, problem.radius(p), quadratic,
        strength if problem.fit_intercept else None, strength * float(np.linalg.norm(problem.start(p))),
        problem.fall(), table_size, problem.bounds.rows_per_unit or 1, scales,
        problem.constant(p) if scales is not None and problem.fit_intercept else None, table_radius,
    )  # fmt: skip


CURVATURE_SHARE = 0.25
_CURVATURE_SHARE_OF_LEVELS = 0.07
_HIDDEN = 4.0  # deviations that hide a zero, or that coefficients are equal


@dataclass(frozen=True)
class ObjectivePerturbationPlan(Plan):
    """Plan of `ObjectivePerturbation`."""

    solver: ClassVar[str] = "objective perturbation"
    may_release: ClassVar[Releasable] = {Minimiser.name: (LinearTerm,)}

    clip: float
    quadratic: float
    search_steps: int
    scales_columns: bool

    def _passes_of_a_fit(self) -> PassCount:
        return passes_of_search(self.search_steps)

    @property
    def deviation(self) -> float:
        """Standard deviation of each entry of the linear term added to the mean loss; 0 without noise.

        Where columns are scaled, it is that of the feature with the least bound. That of another one is as
        many times larger as its bound.

        A norm penalty sets coefficients to 0 where its strength exceeds the slope of this term plus the loss,
        so a first strength to try is this times the dual norm of a standard normal vector.
        """
        moved = self.neighbours.records_moved
        return sum(release.mechanism.noise for release in self.releases) * moved * self.clip / self.n_records


@dataclass(frozen=True)
class ObjectivePerturbation(Solver[ObjectivePerturbationPlan]):
    """The minimiser of loss + penalty + a quadratic term + a random linear term.

    For any convex penalty. Its zeros and its equal values remain in the result, because the noise is part of
    the objective. There is hardly more noise than in one release of a sum of gradients.

    Parameters
    ----------
    clip : float, optional
        Largest L2 norm of one record's gradient. Where the gradient would exceed it, the loss is continued as
        a straight line.
    quadratic : float, optional
        Strength of the quadratic term, quadratic / 2 norm(w)², that is added to the mean loss. It may be 0 if
        the L2 part of the penalty is strong enough for the budget.

    Notes
    -----
    Columns of unequal declared bounds are scaled to equal ones first, up to 1,000 features and for a penalty
    that is a sum over coordinates, unless ``clip`` or ``quadratic`` is given: noise and quadratic term are
    then those of scaled columns, and the penalty is that of the columns as they are.

    The intercept gets the L2 part of the other coefficients, around its start. With an infinite epsilon the
    solver returns the exact minimiser, without that L2 part, clipping and ``quadratic``.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk minimization", Journal of
    Machine Learning Research 12, 2011, arXiv:0912.0071.

    Kifer, Smith and Thakurta, "Private convex empirical risk minimization and high-dimensional regression",
    Conference on Learning Theory, PMLR 23, 2012: penalties with kinks.

    Redberg, Koskela and Wang, "Improving the privacy and practicality of objective perturbation for
    differentially private linear learners", NeurIPS 2023, arXiv:2401.00583: the price.

    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: section 4.3, norms from submodular functions.
    """

    plan_type: ClassVar[type[Plan]] = ObjectivePerturbationPlan
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True

    clip: float | None = None
    quadratic: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quadratic is not None:
            strict.level("quadratic", self.quadratic)

    def plan_for(self, task: Task) -> ObjectivePerturbationPlan:
        problem, n, p = task.problem, task.n, task.p
        require_smooth(problem, type(self).__name__)
        releases: tuple[Release, ...] = ()
        steps, clip, quadratic, search = STEPS_WITHOUT_NOISE, 0.0, 0.0, 0
        scales: Vector | None = None
        if task.private:
            table_radius = problem.radius(p)
            if self.clip is None and self.quadratic is None:
                problem, scales = _in_equal_columns(problem, p)
            clip, quadratic = default_settings(
                problem, n, p, task.noise, task.budget.epsilon / task.fits, self.clip, self.quadratic
            )
            steps, clip, quadratic = 1, task.enforced(clip), float(quadratic)
            if self.quadratic is None:
                _warn_of_short_reach(problem, p, quadratic)
            query = minimiser(problem, n, p, clip, quadratic, task.table_size, scales, table_radius)
            search = steps_of_search(query)
            mechanism = LinearTerm(1.0, **query.perturbation(task.neighbours))
            sensitivity, entries = f"{task.moved * clip:.4g}", 2 * task.dimension
            releases = (Release(query.name, mechanism, 1, sensitivity, entries=entries),)
        plan = ObjectivePerturbationPlan(
            *task.facts, releases, steps, clip, quadratic, search, scales is not None
        )
        try:
            plan = plan.calibrated()
        except ValueError as error:
            raise UnsupportedProblem(
                f"{type(self).__name__} cannot keep to this budget with a quadratic term of {quadratic:g}: "
                f"{error}"
            ) from None
        if task.private:
            _finishing(plan, query)  # refuses what cannot be found closely enough
        return plan

    @classmethod
    def run(cls, plan: ObjectivePerturbationPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        p = plan.n_features
        solved, scales = _in_equal_columns(problem, p) if plan.scales_columns else (problem, None)
        query = minimiser(
            solved, plan.n_records, p, plan.clip, plan.quadratic, plan.table_size, scales, problem.radius(p)
        )
        w = curator.open(query, solved.start(p), plan[query.name].mechanism).release()
        # Noise after the minimisation moved zeros, equal values, and points out of a constraint set.
        noise = _finishing(plan, query)
        features, _ = problem.split(w)
        features[:] = problem.penalty.rounded(features, _HIDDEN * noise)
        if scales is not None:
            return Result(problem.from_scaled_columns(w, scales, solved), plan.steps)
        return Result(problem.prox(w, 0.0), plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            opposed(cls(clip=0.1, quadratic=0.0), 2, L2(1.0)),
            opposed(cls(clip=0.1, quadratic=0.0), 1, L2(1.0), fit_intercept=True, crowd=7),
            opposed_in_scaled_columns(cls(), L2(1.0)),
        )


def _in_equal_columns(problem: Problem, p: int) -> tuple[Problem, Vector | None]:
    """The problem for columns that are scaled to equal declared bounds, and their scales, where they can be.

    Noise and quadratic term are the same for all coordinates: those of a small column would be sized by the
    largest one.
    """
    scales = problem.scales_of_bounds(p)
    return (problem, None) if scales is None else (problem.in_scaled_columns(scales), scales)


def default_settings(
    problem: Problem, n: int, p: int, noise: float, epsilon: float,
    clip: float | None, quadratic: float | None,
) -> tuple[float, float]:  # fmt: skip
    """(clip, quadratic) of objective perturbation, for one fit; those that are given are kept.

    The curvature of a record costs at most a quarter of ``epsilon``, and less before a penalty that takes
    noise away makes the quadratic term weaker. Derived in docs/defaults.md.
    """
    clip, fraction = default_clip(problem, p, noise, clip), clip_of_gradients(problem, p, noise, clip)[1]
    if quadratic is None:
        wanted = problem.smoothness(p) / problem.stretch() * noise * fraction / PREDICTION_NOISE
        least, weak = (
            problem.smoothness(p) / (n * math.expm1(min(share * epsilon, 100.0)))
            for share in (CURVATURE_SHARE, _CURVATURE_SHARE_OF_LEVELS)
        )
        weaker = max(wanted * problem.penalty.noise_share(p, noise * clip), min(wanted, weak))
        quadratic = max(max(weaker, least) - problem.penalty.strong_convexity, 0.0)
    return clip, quadratic


def reach(problem: Problem, p: int, quadratic: float) -> tuple[float, float]:
    """How far a quadratic term lets predictions move from their start, and how far they may have to."""
    if problem.bounds.target is None or problem.stretch() == 1.0:
        return math.inf, 0.0
    width = problem.bounds.target[1] - problem.bounds.target[0]
    return problem.slope_bound() * problem.radius(p) ** 2 / quadratic if quadratic > 0 else math.inf, width


def _warn_of_short_reach(problem: Problem, p: int, quadratic: float) -> None:
    """Warn if the quadratic term that the budget requires keeps predictions from crossing the range."""
    near, width = reach(problem, p, quadratic)
    if near < width:
        warnings.warn(
            f"the quadratic term that the budget asks for keeps predictions within {near:.2g} of where "
            f"they start, and targets have a range of {width:.2g}: a loss that turns linear at a larger "
            "residual, or another solver, reaches farther",
            UserWarning,
            stacklevel=4,
        )


def _finishing(plan: ObjectivePerturbationPlan, query: Minimiser) -> float:
    """Deviation of the noise that hides that the minimiser is not exact."""
    mechanism = plan[query.name].mechanism
    assert isinstance(mechanism, LinearTerm)
    return mechanism.deviation(query, plan.neighbours.records_moved * plan.clip)
