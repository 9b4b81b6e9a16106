"""Private Frank-Wolfe over an L1 ball (Talwar, Thakurta and Zhang, 2015; Raff, Khanna and Lu, 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import STRUCTURES, Exponential, Gaussian
from ..penalties import L2, AnyFeature, Cardinality, ElasticNet, L1Ball, Submodular
from ..plan import PassCount, Plan, Releasable, Release
from ..problem import Problem
from ..queries import PLAIN, DualVertices, InterceptSlope, Minimiser, VertexScores
from ..queries.base import LARGEST_COEFFICIENT
from ..tables import Capability, RowsAndColumns
from .audit_cases import AuditCase, opposed
from .base import Result, Solver, Task, equal_releases, require_bounded_slopes, require_smooth
from .exact import STEPS_WITHOUT_NOISE, exact_minimiser
from .iterates import Iterates, tail_weights
from .perturbation import default_clip, minimiser, passes_of_search, steps_of_search

MOST_VERTICES = 10_000
SELECTIONS = ("lazy", *STRUCTURES)
_INTERCEPT_RELEASES = 8
# The widest ball of vertices, what of a signal widens it, and how far inside of the ball coefficients are.
_WIDEST, _SIGNAL, _INSIDE = 4.0, 0.008, 0.8
# How far bounds of features are above their typical size, and which correlation selections shall still find.
_BOUND_OVER_ENTRY, _CORRELATION = 3.0, 0.12


@dataclass(frozen=True)
class FrankWolfePlan(Plan):
    """Plan of `FrankWolfe`; without releases it is one for the exact minimiser."""

    solver: ClassVar[str] = "Frank-Wolfe"
    may_release: ClassVar[Releasable] = {VertexScores.name: (Exponential,), InterceptSlope.name: (Gaussian,)}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"selection": SELECTIONS}

    clip: float
    intercept_clip: float
    step_size: float | None
    average: bool
    selection: str
    refresh: float

    def _passes_of_a_fit(self) -> PassCount | None:
        return super()._passes_of_a_fit() if self.selection in PLAIN else None


@dataclass(frozen=True)
class FrankWolfe(Solver[FrankWolfePlan]):
    """w <- (1 - step) w + step * v for a vertex v of an L1 ball, selected privately.

    For problems with the penalty `L1Ball`. A vertex is +-radius along one feature, so T steps leave at most
    T coefficients that are not 0, and nothing but the choice of a vertex, its sign included, is released.
    On sparse tables with the default selection a step reads the entries of the chosen features and
    little else, whatever the number of features.

    Parameters
    ----------
    steps : int, optional
        Number of steps.
    clip : float, optional
        Largest absolute value that one record adds to the sum of a feature.
    step_size : float, optional
        Weight of the vertex in the next point, the same at every step; by default 2 / (t + 2) at step t >= 1.
    average : bool
        Return the mean of the last quarter of the iterates instead of the last one.
    selection : {"lazy", "binned", "grouped", "gumbel", "heap"}, optional
        How the vertex is found. "heap" is the plain maximum, only for an infinite epsilon, where it is the
        default; all others have the same law if ``refresh`` is 0. "lazy", the default for a finite epsilon,
        computes few sums. The others keep all of them, and so does "lazy" if bounds are so wide that the
        rounding of margins could exceed the noise. A table that is not in memory is read once in each step,
        with "gumbel", which is the default there, or "heap".
    refresh : float
        Tolerance of kept sums. A step shrinks all coefficients. The slopes of records with the selected
        feature are recomputed at every step, all others once coefficients have shrunk by this share. So a
        slope is off by at most the smoothness of the loss times the margin times this share, and exact for 0.
        "lazy", and squared loss without noise, are exact for any value.
    intercept_share : float
        Share of the budget for the intercept, which is not in the ball: it takes 8 steps of its own.

    Notes
    -----
    Where coefficients are well inside of the ball and noise is little, steps go to vertices of a ball up to
    four times as wide and are shorter in proportion, unless ``step_size`` is given (docs/defaults.md): they
    shrink coefficients less. The result is in the ball.

    With an infinite epsilon and no ``steps`` the solver returns the exact minimiser over the ball, found as
    in `GradientDescent`. With ``steps`` it takes plain Frank-Wolfe steps without noise, and returns the gap,
    an upper bound on objective minus minimum with the intercept held fixed.

    References
    ----------
    Talwar, Thakurta and Zhang, "Nearly optimal private LASSO", NIPS 2015: Algorithm 2, with the price of
    exact composition.

    Raff, Khanna and Lu, "Scaling up differentially private LASSO regularized logistic regression via faster
    Frank-Wolfe iterations", NeurIPS 2023, arXiv:2310.19978: Algorithm 2 is the update of kept sums, and
    ``selection="grouped"`` takes the place of Algorithm 4. The sign of a vertex, which is free there, is
    selected and paid for here.
    """

    plan_type: ClassVar[type[Plan]] = FrankWolfePlan
    path: ClassVar[tuple[str, ...]] = ("steps",)
    choices: ClassVar[dict[str, tuple[str | None, ...]]] = {"selection": (None, *SELECTIONS)}

    steps: int | None = None
    clip: float | None = None
    step_size: float | None = None
    average: bool = False
    selection: str | None = None
    refresh: float = 0.01
    intercept_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_size is not None and self.step_size >= 1:
            raise ValueError(f"step_size must lie strictly between 0 and 1, got {self.step_size!r}")
        strict.level("refresh", self.refresh)

    def plan_for(self, task: Task) -> FrankWolfePlan:
        problem, p = task.problem, task.p
        radius = _radius(problem)
        require_smooth(problem, type(self).__name__)
        if self.selection is not None and (self.selection == "heap") == task.private:
            why = "is without noise, for an infinite epsilon" if task.private else "adds noise: use 'heap'"
            raise UnsupportedProblem(f"selection {self.selection!r} {why}")
        usual = "lazy" if task.resident else "gumbel"
        selection = self.selection or (usual if task.private else "heap")
        steps, clip, intercept_clip = STEPS_WITHOUT_NOISE, self.clip or math.inf, math.inf
        if task.private:
            steps, clip, intercept_clip = default_settings(problem, p, task.noise, self.clip, radius)
            steps = task.affordable(steps)
        steps, clip = int(self.steps or steps), task.enforced(clip)
        if problem.fit_intercept:
            task.enforced(intercept_clip, "clip of the intercept")
        share = self.intercept_share if problem.fit_intercept else 0.0
        releases = [
            equal_releases(
                VertexScores.name, Exponential, steps, task.moved * clip, share=1 - share, entries=2 * p
            )
        ]
        if problem.fit_intercept:
            moved = task.moved * intercept_clip
            releases.append(
                equal_releases(InterceptSlope.name, Gaussian, _INTERCEPT_RELEASES, moved, share=share)
            )
        if not task.private and self.steps is None:
            releases = []
        return FrankWolfePlan(
            *task.facts, tuple(releases), steps, clip, intercept_clip, self.step_size, self.average,
            selection, self.refresh,
        ).calibrated()  # fmt: skip

    @classmethod
    def needs(cls, plan: FrankWolfePlan) -> frozenset[Capability]:
        plain = not plan.releases or plan.selection in PLAIN
        return super().needs(plan) | (frozenset() if plain else {RowsAndColumns})

    @classmethod
    def run(
        cls, plan: FrankWolfePlan, problem: Problem, curator: Curator, stops: Sequence[int] | None = None
    ) -> Result:
        if not plan.releases:
            return exact_minimiser(plan, problem, curator)
        p, radius = plan.n_features, _radius(problem)
        largest = problem.bounds.largest_feature(p)
        query = VertexScores(problem.loss, plan.clip, p, largest, plan.selection, plan.refresh)
        mechanism, counted = plan[query.name].mechanism, tail_weights(plan.steps)
        t = np.arange(1.0, plan.steps + 1)
        sizes = 2 / (t + 2) if plan.step_size is None else np.full(plan.steps, plan.step_size)
        w, mean, moved = problem.start(p), np.zeros(p), 0
        features, intercept = problem.split(w)
        widest, iterates = _widest(plan, problem), Iterates(stops)
        for stretch in _stretches(plan.steps, problem.fit_intercept, widest > 1.0):
            if stretch is None:
                intercept -= _intercept_step(plan, problem, curator, w, moved)
                moved += 1
                continue
            inside = stretch.start > 0 and float(np.abs(features).sum()) <= _INSIDE * radius
            wider = widest if inside else 1.0
            # Moves are as long; coefficients shrink less between them.
            lengths, reach = sizes[stretch] / wider, wider * radius
            choices = curator.open(query, w, mechanism).run(lengths, reach)
            for step in iterates.within(stretch.start, stretch.stop):
                here, point = step - stretch.start, features.copy()
                _move(point, lengths[:here], choices[:here], reach)
                iterates.add(step, partial(problem.join, _inside(problem, point, wider), intercept))
            if plan.average:
                mean += _sum_of_iterates(features, lengths, choices, reach, counted[stretch])
            _move(features, lengths, choices, reach)
            features[:] = _inside(problem, features, wider)
        if plan.average:
            features[:] = _inside(problem, mean / counted.sum(), widest)
        gap = None if plan.budget.private else curator.open(query, w, mechanism).gap(radius)
        return Result(w, plan.steps, gap, iterates=iterates.models)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        ball = L1Ball(1.0)
        return (
            # One feature: what lowers the score of one of its two vertices raises that of the other.
            opposed(cls(steps=1, clip=0.1), 1, ball),
            opposed(cls(steps=2, clip=0.1, selection="binned", refresh=10.0), 1, ball),
            opposed(cls(steps=1, clip=0.1, intercept_share=0.5), 1, ball, fit_intercept=True, crowd=7),
        )


def default_settings(
    problem: Problem, p: int, noise: float, clip: float | None, radius: float
) -> tuple[int, float, float]:
    """(steps, clip, intercept_clip) of Frank-Wolfe; a clip that is given is kept (docs/defaults.md)."""
    slope, largest = problem.slope_bound(), problem.bounds.largest_feature(p)
    if clip is None:
        require_bounded_slopes(problem)
        clip = slope * min(largest, problem.bounds.radius(p) * p**-0.25)
    if not math.isfinite(slope):
        slope = clip / largest  # beyond it the clip cuts the largest entry, too
    noise_of_one = clip * noise * math.log(2 * p)  # of a selection that has all of the budget
    progress = math.ceil((0.45 * problem.bend() * radius * (clip / slope) ** 2 / noise_of_one) ** (2 / 3))
    steps = min(max(progress, 1), MOST_VERTICES)
    entry = largest / _BOUND_OVER_ENTRY
    if entry < clip / slope:
        found = math.floor((_CORRELATION * slope * entry / noise_of_one) ** 2)
        # An odd number: while steps overshoot along one feature, every second one takes the last one back.
        steps = min(steps, max(found - (found % 2 == 0), 1))
    return steps, clip, slope * problem.constant(p)


def _radius(problem: Problem) -> float:
    """The radius of the ball that the coefficients are in."""
    if not isinstance(problem.penalty, L1Ball):
        raise UnsupportedProblem(
            f"FrankWolfe needs the penalty L1Ball(radius), not {type(problem.penalty).__name__}: "
            "use GradientDescent"
        )
    radius = problem.penalty.radius
    if not radius < LARGEST_COEFFICIENT:
        raise UnsupportedProblem(
            f"the radius of the L1Ball must be below {LARGEST_COEFFICIENT:g}, where products with records "
            f"would overflow, got {radius!r}: give features in larger units"
        )
    return radius


def _intercept_step(
    plan: FrankWolfePlan, problem: Problem, curator: Curator, w: Vector, before: int
) -> float:
    """A step down the released slope of the intercept, as long as the curvature along it allows.

    If the loss turns linear inside the range of targets, the first step may cross half of the range, and
    each of the following half as much as the one before.
    """
    query = InterceptSlope(problem.loss, plan.intercept_clip)
    slope = float(curator.release(query, plan[query.name].mechanism, w)[0])
    curvature = problem.loss.smoothness() * problem.constant(plan.n_features) ** 2
    return max(1.0, problem.stretch() / 2.0**before) * slope / (plan.n_records * curvature)


def _stretches(steps: int, fit_intercept: bool, in_parts: bool) -> Iterator[slice | None]:
    """Stretches of steps, and None wherever the intercept moves between them.

    It moves twice before the first step, because a wrong intercept distorts the scores of all features, and
    then after each of equal parts of the steps. Without an intercept all steps are one stretch, unless the
    ball of vertices may change from part to part.
    """
    if fit_intercept:
        yield None
    parts = _INTERCEPT_RELEASES - 2 if fit_intercept or in_parts else 1
    ends = [steps * k // parts for k in range(parts + 1)]
    for start, stop in zip(ends, ends[1:], strict=False):
        if fit_intercept:
            yield None
        if start < stop:
            yield slice(start, stop)
    if fit_intercept:
        yield None


def _widest(plan: FrankWolfePlan, problem: Problem) -> float:
    """Radius of the ball of vertices that steps inside of the ball go to, over its radius.

    Selections by exponential weights choose among all vertices, and steps shrink all coefficients: together
    they pull towards 0, however many steps there are. The pull is the scale of the weights over the radius
    of the vertices. With a larger radius noise shrinks less, so the ball grows only where the scale is small
    against what the slope of a rare feature changes by (docs/defaults.md).
    """
    noise, slope = plan[VertexScores.name].mechanism.noise, problem.slope_bound()
    if noise == 0 or plan.step_size is not None or not math.isfinite(slope):
        return 1.0
    p, scale = plan.n_features, noise * plan.neighbours.records_moved / plan.n_records
    signal = problem.bend() * _radius(problem) * plan.clip / (slope**2 * p * scale)
    return min(max(_SIGNAL * signal, 1.0), _WIDEST)


def _inside(problem: Problem, features: Vector, wider: float) -> Vector:
    """The nearest point of the ball, for a point that vertices of a wider one may have led out of it."""
    return problem.penalty.prox(features, 0.0) if wider > 1.0 else features


def _move(w: Vector, sizes: Vector, choices: NDArray[np.int64], radius: float) -> None:
    """Take steps towards the chosen vertices."""
    # What is left of w, and of each move, at the end.
    left = np.cumprod(np.append(1.0, 1 - sizes[::-1]))[::-1]
    if w.any():
        w *= left[0]
    np.add.at(w, choices // 2, _moves(sizes, choices, radius) * left[1:])


def _sum_of_iterates(
    w: Vector, sizes: Vector, choices: NDArray[np.int64], radius: float, counted: Vector
) -> Vector:
    """The sum of the iterates, each times its weight in ``counted``."""
    total = np.zeros(len(sizes) + 1)  # what each move adds to it, for a move of 1
    for k in reversed(range(len(sizes))):
        total[k] = counted[k] + (1 - sizes[k + 1] if k + 1 < len(sizes) else 0.0) * total[k + 1]
    sums: Vector = w * ((1 - sizes[0]) * total[0])
    np.add.at(sums, choices // 2, _moves(sizes, choices, radius) * total[:-1])
    return sums


def _moves(sizes: Vector, choices: NDArray[np.int64], radius: float) -> Vector:
    return np.where(choices % 2, radius, -radius) * sizes


_USUAL_STEPS = 10


@dataclass(frozen=True)
class DualFrankWolfePlan(Plan):
    """Plan of `DualFrankWolfe`."""

    solver: ClassVar[str] = "dual Frank-Wolfe"
    may_release: ClassVar[Releasable] = {DualVertices.name: (Exponential,), Minimiser.name: (Gaussian,)}

    clip: float
    strength: float
    sparse: bool
    search_steps: int

    def _passes_of_a_fit(self) -> PassCount:
        """Each release searches for a minimiser."""
        return passes_of_search(self.search_steps).times(sum(release.count for release in self.releases))


@dataclass(frozen=True)
class DualFrankWolfe(Solver[DualFrankWolfePlan]):
    """s <- (1 - step) s + step * v for vertices v of the dual ball; coefficients follow from releases.

    For penalties that are a norm with an L2 part: `Submodular` with ``l2`` and `ElasticNet`. The dual problem
    is over the unit ball of the dual norm, times the strength, and its gradient is the minimiser theta(s) of
    loss + L2 part + s · theta. If the ball has two vertices for each feature, as for `AnyFeature`, a vertex
    is selected privately at each step, and theta(s) is released at the end. Elsewhere theta(s) is released
    with Gaussian noise at each step, the vertex follows from it, and so do the coefficients.

    Parameters
    ----------
    steps : int, optional
        Number of steps.
    clip : float, optional
        Largest L2 norm of one record's gradient. Where the gradient would exceed it, the loss is continued as
        a straight line.
    sparse : bool
        Set coefficients to 0 that noise alone could explain (see ``Penalty.support``).
    share : float
        Share of the budget for the selections, where vertices are selected; the rest is for theta(s).

    Notes
    -----
    The intercept gets the L2 part of the other coefficients, around its start. With an infinite epsilon the
    solver returns the exact minimiser, without that L2 part, steps, clipping and ``sparse``.

    A theta(s) has the sensitivity of the result of `OutputPerturbation`. The mean of all has at most 1.16
    times its noise, some of which the proximal step at the end removes: with 10 steps both solvers are about
    equally good. With selected vertices only half of the budget is left for theta(s), and it is worse.

    References
    ----------
    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: Algorithm 2, with an L2 part, and with coefficients that follow from what is
    released.

    Bach, "Duality between subgradient and conditional gradient methods", SIAM Journal on Optimization 25,
    2015, doi:10.1137/130941961: the mean of the theta(s).
    """

    plan_type: ClassVar[type[Plan]] = DualFrankWolfePlan

    steps: int | None = None
    clip: float | None = None
    sparse: bool = True
    share: float = 0.5

    def plan_for(self, task: Task) -> DualFrankWolfePlan:
        norm = _norm(task.problem)
        require_smooth(task.problem, type(self).__name__)
        releases: tuple[Release, ...] = ()
        steps, clip, search = STEPS_WITHOUT_NOISE, 0.0, 0
        if task.private:
            steps = int(self.steps or _USUAL_STEPS)
            clip = task.enforced(default_clip(task.problem, task.p, task.noise, self.clip))
            query = _gradient(task.problem, norm, task.n, task.p, clip, task.table_size)
            releases, search = self._releases(task, norm, query, steps), steps_of_search(query)
        plan = DualFrankWolfePlan(*task.facts, releases, steps, clip, norm.l2, self.sparse, search)
        return plan.calibrated()

    @classmethod
    def run(cls, plan: DualFrankWolfePlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        p, norm = plan.n_features, _norm(problem)
        query = _gradient(problem, norm, plan.n_records, p, plan.clip, plan.table_size)
        steps = _by_vertices if norm.function.few_vertices else _by_gradients
        w, s, deviations = steps(plan, norm, query, problem.start(p), curator)
        # theta(s) is the minimiser for the slope -(l2 theta + s) of the loss; this is the one with the norm.
        features, _ = problem.split(w)
        free = features + problem.split(s)[0] / norm.l2
        features[:] = norm.function.prox(free, norm.strength / norm.l2)
        if plan.sparse:
            noise = plan[query.name].mechanism.noise * float(query.sensitivity(plan.neighbours))
            features[:] = np.where(norm.support(free, deviations * noise), features, 0.0)
        return Result(w, plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        two_steps, cardinality = cls(2, clip=0.1, sparse=False), Submodular(0.01, Cardinality(), l2=1.0)
        return (
            opposed(two_steps, 2, cardinality),
            # One feature: what lowers the score of one of its two vertices raises that of the other.
            opposed(two_steps, 1, Submodular(0.01, AnyFeature(), l2=1.0)),
            opposed(replace(two_steps, steps=1), 1, cardinality, fit_intercept=True, crowd=7),
        )

    def _releases(self, task: Task, norm: Submodular, query: Minimiser, steps: int) -> tuple[Release, ...]:
        theta = partial(
            equal_releases, Minimiser.name, Gaussian,
            sensitivity=query.sensitivity(task.neighbours), entries=task.dimension,
        )  # fmt: skip
        if not norm.function.few_vertices:
            return (theta(steps),)
        scores = DualVertices(query, norm.strength).sensitivity(task.neighbours)[0]
        choices = equal_releases(
            DualVertices.name, Exponential, steps, scores, share=self.share, entries=2 * task.p
        )
        return choices, theta(1, share=1 - self.share)


def _norm(problem: Problem) -> Submodular:
    """The penalty as a norm with an L2 part."""
    penalty = problem.penalty
    if isinstance(penalty, ElasticNet):
        penalty = Submodular(penalty.l1, Cardinality(), penalty.l2)
    if not isinstance(penalty, Submodular):
        raise UnsupportedProblem(
            "DualFrankWolfe needs a penalty that is a norm with an L2 part, Submodular(..., l2=...) or "
            f"ElasticNet, not {type(penalty).__name__}: OutputPerturbation takes any with an L2 part"
        )
    return penalty


def _gradient(problem: Problem, norm: Submodular, n: int, p: int, clip: float, table_size: int) -> Minimiser:
    """The query for theta(s): the problem with a linear term in place of the norm."""
    # A vertex has entries of one sign after flipping, which add up to the price of all features.
    longest = norm.strength * norm.function.value(np.arange(p))
    query = minimiser(replace(problem, penalty=L2(norm.l2)), n, p, clip, table_size=table_size)
    return replace(query, push=query.push + longest)


def _by_gradients(
    plan: DualFrankWolfePlan, norm: Submodular, query: Minimiser, start: Vector, curator: Curator
) -> tuple[Vector, Vector, float]:
    """Weighted means of all released theta(s) and their s; noise of the former in units of one release."""
    p, mechanism = plan.n_features, plan[query.name].mechanism
    w, mean, s, square = np.zeros_like(start), np.zeros_like(start), np.zeros_like(start), 0.0
    pushed = s[:p]  # a view: the intercept is not pushed
    for t in range(1, plan.steps + 1):
        size = 2 / (t + 1)
        theta = curator.release(query, mechanism, s, start)
        w += size * (theta - w)
        mean += size * (s - mean)
        pushed += size * (-norm.strength * norm.linear_minimiser(theta[:p]) - pushed)
        square = (1 - size) ** 2 * square + size**2
    return w, mean, math.sqrt(square)


def _by_vertices(
    plan: DualFrankWolfePlan, norm: Submodular, query: Minimiser, start: Vector, curator: Curator
) -> tuple[Vector, Vector, float]:
    """theta(s) after steps to selected vertices, and that s; noise of the former in units of one release."""
    p, vertices = plan.n_features, DualVertices(query, norm.strength)
    scores, s = curator.open(vertices, start, plan[vertices.name].mechanism), np.zeros_like(start)
    for t in range(1, plan.steps + 1):
        chosen = scores.select(s)
        vertex = np.zeros_like(s)
        vertex[chosen % p] = norm.strength if chosen < p else -norm.strength
        s += 2 / (t + 1) * (vertex - s)
    return curator.release(query, plan[query.name].mechanism, s, start), s, 1.0
