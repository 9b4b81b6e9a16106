"""Private greedy coordinate descent (Mangold, Bellet, Salmon and Tommasi, 2023, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .. import strict
from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import Additive, Exponential, Gaussian, Laplace, LaplaceNoisyMax, Round, Selection
from ..penalties import Separable
from ..plan import Plan, Releasable, Release
from ..plan.private_size import FARTHEST
from ..problem import Problem
from ..queries import RULES, CoordinateRule, CoordinateScores, SecondMoments
from ..queries.coordinate import MOST_PULL
from ..tables import Capability, Columns
from .audit_cases import CORNERS, AuditCase, opposed, second_moments_case
from .base import MOST_PRIVATE_STEPS, Result, Solver, Task, require_bounded_slopes, require_smooth
from .coordinate_descent import (
    SOURCES,
    SecondMomentPrelude,
    Source,
    least_moment,
    moments_over_bounds,
    require_separable,
    second_moments,
    typical_row,
)
from .iterates import Iterates, TailMean

SELECTIONS: dict[str, type[Selection]] = {"exponential": Exponential, "laplace": LaplaceNoisyMax}
RELEASES = ("auto", "gaussian", "laplace")

_FEW_ROUNDS = 8
"""Beyond this many rounds Gaussian noise is always the lesser one."""

_SETTLED = 1e-7
_LITTLE_NOISE = 5e-5


@dataclass(frozen=True)
class GreedyCoordinateDescentPlan(Plan):
    """Plan of `GreedyCoordinateDescent`."""

    solver: ClassVar[str] = "greedy coordinate descent"
    may_release: ClassVar[Releasable] = {SecondMoments.name: (Gaussian,), CoordinateScores.name: (Round,)}
    choices: ClassVar[dict[str, Collection[str]]] = {
        "rule": RULES,
        "second_moments": SOURCES,
        "start": ("zero",),
    }

    clip: float
    step_size: float
    secant: bool
    rule: str
    second_moments: Source
    start: str | tuple[float, ...]


@dataclass(frozen=True, eq=False)
class GreedyCoordinateDescent(Solver[GreedyCoordinateDescentPlan]):
    """The best coordinate a step, selected privately: w_j <- prox(w_j - (g_j + noise) * step_size / M_j).

    M_j is the curvature of the mean loss along coordinate j: the loss's smoothness times the second moment
    of feature j. It scales the scores, sets the step and, by C_j = C sqrt(M_j / tr M), the clip of each
    coordinate, so that all scores have one sensitivity. Only the selected slope is released, so the noise
    does not grow with the number of features: for models with few large coefficients among many. A step reads
    a dense table once, of a sparse table in memory only what the last step changed.

    Parameters
    ----------
    steps : int, optional
        Number of steps, which is also the largest number of coefficients that can differ from the start.
    clip : float, optional
        C in C_j = C sqrt(M_j / tr M).
    step_size : float, optional
        Step in units of 1 / M_j. By default a long one, which is shortened where two released slopes of a
        coordinate show that it would pass the minimum.
    rule : {"gs-r", "gs-s", "gs-q", "gs"}
        Score of a coordinate: the length of its proximal step, its least subgradient, or the root of its
        estimated decrease (see `CoordinateScores`). "gs" is for penalties without kinks, where all agree.
    selection : {"exponential", "laplace"}
        Exponential mechanism, or the largest score after Laplace noise, which costs more.
    release : {"auto", "gaussian", "laplace"}
        Noise of the slope of the selected coordinate. "auto" is Gaussian, or Laplace for so few steps that
        the plan has less noise with it.
    selection_share : float
        Share of the budget (of the squared Gaussian parameter) for the selections.
    second_moments : "bounds", "private", "even" or array of shape (n_features,), optional
        Where M_j comes from: the declared feature bounds, a private release that takes ``moments_share`` of
        the budget, an even share of the largest row norm, or declared values. By default the bounds if
        features have them, else the release, or even shares for so many features that a release is too noisy.
        Without a budget the exact second moments are used, whatever is given.
    moments_share : float
        Share of the budget for releasing second moments.
    warm_start : array of shape (n_features,) or (n_features + 1,), optional
        Public coefficients to start from, with the intercept as the last entry; without it, or without
        ``warm_start``, the usual start.

    Notes
    -----
    Algorithms 1 and 2 of the paper below; its experiments are ``experiments/gcd_paper.py`` (Figures 1, 3 and
    4, Tables 2 to 4). `steps_if_convex` and `steps_if_strongly_convex` are the numbers of steps of its
    Theorems 4.4 and 4.7. In place of the noise of Theorem 4.2, whose proof counts a selection at half of its
    price, rounds are composed exactly.

    References
    ----------
    Mangold, P., Bellet, A., Salmon, J. and Tommasi, M. (2023): High-dimensional private empirical risk
    minimization by greedy coordinate descent. AISTATS. arXiv:2207.01560.
    """

    plan_type: ClassVar[type[Plan]] = GreedyCoordinateDescentPlan
    path: ClassVar[tuple[str, ...]] = ("steps",)
    choices: ClassVar[dict[str, Collection[str]]] = {
        "rule": RULES,
        "selection": SELECTIONS,
        "release": RELEASES,
    }

    steps: int | None = None
    clip: float | None = None
    step_size: float | None = None
    rule: str = "gs-r"
    selection: str = "exponential"
    release: str = "auto"
    selection_share: float = 2 / 3
    second_moments: str | ArrayLike | None = None
    moments_share: float = 0.05
    warm_start: ArrayLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        SecondMomentPrelude(self.second_moments, self.moments_share)

    def plan_for(self, task: Task) -> GreedyCoordinateDescentPlan:
        problem, p = task.problem, task.p
        require_separable(problem, type(self).__name__)
        require_smooth(problem, type(self).__name__)
        if self.rule == "gs":
            _require_no_kinks(problem)
        start = "zero" if self.warm_start is None else _given(self.warm_start, problem, p)
        moments = SecondMomentPrelude(self.second_moments, self.moments_share)
        source = moments.source(problem, p, task.noise)
        steps, clip, step_size = self._settings(task, source)
        first, left = moments.releases(source, task, steps=self.step_size is None)
        rest = left / steps
        selection = SELECTIONS[self.selection](1 / math.sqrt(rest * self.selection_share))
        deviation = 1 / math.sqrt(rest * (1 - self.selection_share))
        gaussian, laplace = Gaussian(deviation), Laplace(deviation / math.sqrt(2))

        secant = task.private and self.step_size is None and not (source == "bounds" and first)

        def planned(additive: Additive) -> GreedyCoordinateDescentPlan:
            words = f"{task.moved} C / sqrt(tr M)", f"{task.moved} C_j"
            mechanism = Round(selection, additive)
            rounds = Release(CoordinateScores.name, mechanism, steps, words, entries=task.dimension)
            plan = GreedyCoordinateDescentPlan(
                *task.facts, (*first, rounds), steps=steps, clip=clip, step_size=step_size, rule=self.rule,
                second_moments=source, secant=secant, start=start,
            ).calibrated()  # fmt: skip
            if task.private:
                _require_moderate(plan, task)
            return plan

        if self.release != "auto":
            return planned(laplace if self.release == "laplace" else gaussian)
        if steps * task.fits > _FEW_ROUNDS or not task.private:
            return planned(gaussian)
        # Both have the same deviation before they are scaled to the budget: the smaller factor wins.
        return min(planned(gaussian), planned(laplace), key=_selection_noise)

    def _settings(self, task: Task, source: Source) -> tuple[int, float, float]:
        """Steps, clip and step size: as they are given, or by default from what is public."""
        problem, p = task.problem, task.p
        steps, clip, step_size = 20_000 * task.dimension, math.inf, 1.0
        if task.private and None in (self.steps, self.clip, self.step_size):
            steps, clip, step_size = default_settings(
                problem, p, task.noise, self.clip, *typical_row(source, problem, p)
            )
            steps = task.affordable(steps)
        clip = task.enforced(self.clip or clip)
        return int(self.steps or steps), clip, float(self.step_size or step_size)

    @classmethod
    def needs(cls, plan: GreedyCoordinateDescentPlan) -> frozenset[Capability]:
        # Without noise a fit takes thousands of steps, which no table is read anew for.
        return super().needs(plan) | (frozenset() if plan.budget.private else {Columns})

    @classmethod
    def run(
        cls, plan: GreedyCoordinateDescentPlan, problem: Problem, curator: Curator,
        stops: Sequence[int] | None = None,
    ) -> Result:  # fmt: skip
        n, p = plan.n_records, plan.n_features
        w = _start(plan.start, problem, p)
        moments = second_moments(plan.second_moments, plan, problem, curator)
        curvature = problem.loss.smoothness() * moments
        clips = plan.clip * np.sqrt(curvature / curvature.sum())
        largest = problem.loss.lipschitz(problem.bounds.target) * problem.features(p)
        query = CoordinateScores(problem.loss, clips, curvature, plan.rule, _form(problem), largest, n)
        step = plan.step_size / curvature
        if plan.second_moments == "bounds" and plan.budget.private:
            _, release = plan[query.name].lines
            filled = moments_over_bounds(plan, problem, curator, release.mechanism)
            if filled is not None:
                step = problem.stretch() / (curvature * filled)
        # The curvature along the constant feature is known: a longer step would pass the minimum.
        _, along_constant = problem.split(step)
        along_constant[:] = min(plan.step_size, problem.stretch()) / problem.split(curvature)[1]
        rule = CoordinateRule(step / n, step, *problem.coordinate_form(p))
        scores = curator.open(query, w, plan[query.name].mechanism)

        visited: dict[int, tuple[float, float]] = {}

        def advance() -> tuple[int, float]:
            j, slope = scores.step()
            if plan.secant:
                if j in visited:
                    _shorten(rule, j, slope - visited[j][0], w[j] - visited[j][1])
                visited[j] = slope, w[j]
            moved = rule.apply(j, w[j], slope)
            length = abs(moved - w[j]) / math.sqrt(step[j])
            w[j] = moved
            scores.move(j, moved)
            return j, length

        if not plan.budget.private:
            return Result(w, _settle(advance, w, p, plan.steps))
        tail, iterates = TailMean(plan.steps, w), Iterates(stops)
        for done in range(1, plan.steps + 1):
            advance()
            tail.add(w)
            iterates.add(done, lambda: w)
        # So many steps end in noise that a mean removes; after fewer, the last point is the best.
        found = tail.mean if plan.steps > MOST_PRIVATE_STEPS else w
        return Result(found, plan.steps, iterates=iterates.models)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        small = partial(cls, steps=2, clip=0.1, step_size=0.1)
        solvers = (
            small(second_moments="bounds", release="gaussian"),
            small(second_moments="bounds", selection="laplace", release="laplace"),
            small(second_moments="private", moments_share=0.9),
        )
        # The bystanders make both scores large; the record in question raises one and lowers the other.
        row = np.full(2, 0.5**0.5)
        bystanders = (np.tile(row, (7, 1)), np.ones(7))
        first, second = (row * [1, -1], 1.0), (row * [-1, 1], 1.0)
        opposite = tuple(
            replace(opposed(solver, 2), bystanders=bystanders, first=first, second=second)
            for solver in solvers
        )
        moments = replace(opposite[2], first=CORNERS[0], second=CORNERS[1])
        intercept = opposed(solvers[0], 1, fit_intercept=True, crowd=7)
        beside = second_moments_case(cls(steps=2, clip=0.1, moments_share=0.5))
        return (*opposite[:2], moments, intercept, beside)


def default_settings(
    problem: Problem, p: int, noise: float, clip: float | None, norm: float, density: float
) -> tuple[int, float, float]:
    """(steps, clip, step_size) of greedy coordinate descent; a clip that is given is kept.

    ``norm`` and ``density`` are those of `typical_row`. Derived in docs/defaults.md.
    """
    signal_to_noise = max(math.sqrt(8e-3 / noise), 1.0)
    if clip is None:
        require_bounded_slopes(problem)
        bounded = problem.loss.lipschitz(problem.bounds.target) <= problem.slope_bound()
        usual, most = (0.25, 1.0) if bounded else (0.08, 2.0)
        clip = min(signal_to_noise * usual, most / density) * problem.slope_bound() * norm
    most = MOST_PRIVATE_STEPS * max(1.0, math.sqrt(_LITTLE_NOISE / noise))
    steps = math.ceil(min(0.6 / (noise * math.log(1 + problem.dimension(p))), most))
    return steps, clip, max(4.0 / signal_to_noise, 1.0) * problem.stretch() / density**2


def _require_no_kinks(problem: Problem) -> None:
    """Refuse a penalty with kinks, where a slope alone says little about a step."""
    l1, _, low, high = _form(problem)
    if l1 > 0 or low > -math.inf or high < math.inf:
        raise UnsupportedProblem(
            f"rule 'gs' needs a penalty without kinks, {type(problem.penalty).__name__} has some: "
            f"use 'gs-s', 'gs-r' or 'gs-q'"
        )


def _require_moderate(plan: GreedyCoordinateDescentPlan, task: Task) -> None:
    """Refuse steps that could lead too far, and a penalty beside which a score would not be precise."""
    problem, p = task.problem, task.p
    start, (least, share) = _start(plan.start, problem, p), least_moment(plan.second_moments, plan, problem)
    mechanism = plan[CoordinateScores.name].mechanism
    assert isinstance(mechanism, Round)
    noise = mechanism.additive.noise * task.moved / task.table_size
    curvature = problem.loss.smoothness() * least
    step = plan.step_size * plan.clip / curvature * task.table_size / task.n
    task.require_reach(start, plan.steps, step, noise)
    l1, l2, _, _ = _form(problem)
    farthest = float(np.abs(problem.split(start)[0]).max(initial=0.0))
    clip = plan.clip * math.sqrt(share)
    # A coefficient that leaves the start is pulled back as strongly as noise may push it.
    if not task.n * (l1 + l2 * farthest) / clip + task.table_size * FARTHEST * noise <= MOST_PULL:
        raise UnsupportedProblem(
            "the penalty, its pull at the start, or noise is so large beside the clip that rounding would "
            "show: use a weaker penalty, a larger clip or epsilon, or a start nearer to zero"
        )


def _given(coefficients: ArrayLike, problem: Problem, p: int) -> tuple[float, ...]:
    """Public coefficients to start from, perhaps with an intercept, as numbers."""
    given = strict.doubles(coefficients)
    if given is None or given.shape not in ((p,), (problem.dimension(p),)) or not np.isfinite(given).all():
        raise ValueError(
            f"warm_start must be {p} finite coefficients"
            + (", or these and an intercept" if problem.fit_intercept else "")
        )
    return tuple(given.tolist())


def _start(start: str | tuple[float, ...], problem: Problem, p: int) -> Vector:
    """The public starting point, the intercept in units of its constant feature."""
    w = problem.start(p)
    if isinstance(start, str):
        return w
    features, intercept = problem.split(w)
    features[:], given = np.split(np.array(_given(start, problem, p)), [p])
    if given.size:
        intercept[:] = given / problem.constant(p)
    return problem.prox(w, 0.0)


def _selection_noise(plan: GreedyCoordinateDescentPlan) -> float:
    return plan[CoordinateScores.name].lines[0].mechanism.noise


def _shorten(rule: CoordinateRule, j: int, change: float, move: float) -> None:
    """Keep a step from passing the minimum on a line through the last two released slopes of coordinate j.

    Both are public. They show the curvature of clipped slopes, which second moments do not.
    """
    if change * move > 0:
        factor = min(1.0, move / (change * rule.rate[j]))
        rule.rate[j] *= factor
        rule.step[j] *= factor


def _settle(advance: Callable[[], tuple[int, float]], w: Vector, p: int, most: int) -> int:
    """Steps without noise until they are short relative to the longest along a feature; returns their number.

    A step that sets a coefficient to zero may be short although others would not be. So more steps in a row
    must be short than there are coefficients that differ from zero.
    """
    longest, short, nonzero = 0.0, 0, np.count_nonzero(w)
    for done in range(1, most + 1):
        j, length = advance()
        if j < p:
            longest = max(longest, length)
        if length <= _SETTLED * longest:
            short += 1
        else:
            short, nonzero = 0, np.count_nonzero(w)
        if short > nonzero:
            return done
    return most


def _form(problem: Problem) -> tuple[float, float, float, float]:
    assert isinstance(problem.penalty, Separable)
    l1, l2, low, high = problem.penalty.coordinate_form()
    if not (isinstance(low, float) and isinstance(high, float)):
        raise UnsupportedProblem(
            "GreedyCoordinateDescent needs one interval for all coefficients: use GradientDescent"
        )
    return l1, l2, low, high


def steps_if_convex(n_samples: int, epsilon: float, delta: float, *, slope: float, distance: float) -> int:
    r"""Number of steps of Theorem 4.4, 1, for `GreedyCoordinateDescent` and a convex objective.

    .. math:: T = \frac{(R\, n\, \varepsilon / S)^{2/3}}{4 \log(1/\delta)^{1/3}}

    Parameters
    ----------
    n_samples : int
        Public number of records.
    epsilon, delta : float
        Budget of the fit.
    slope : float
        S: the largest L_j / sqrt(M_j), with L_j a bound of a record's slope along coordinate j and M_j the
        curvature there. With the clip rule of the solver it is clip / sqrt(tr M).
    distance : float
        R: the sum of sqrt(M_j) abs(w_j) from the start to a minimiser, or more.

    Returns
    -------
    int

    Examples
    --------
    >>> from dpglm.solvers import GreedyCoordinateDescent, steps_if_convex
    >>> steps = steps_if_convex(20_000, 1.0, 1e-9, slope=1.0, distance=2.0)
    >>> steps
    106
    >>> solver = GreedyCoordinateDescent(steps=steps, step_size=1.0)
    """
    n, epsilon, log = _budget(n_samples, epsilon, delta)
    ratio = _positive("distance", distance) * n * epsilon / _positive("slope", slope)
    return _steps(ratio ** (2 / 3) / (4 * log ** (1 / 3)))


def steps_if_strongly_convex(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    slope: float,
    gap: float,
    strong_convexity: float,
    sparsity: float = 1.0,
    failure: float = 0.05,
) -> int:
    r"""Number of steps of Theorem 4.4, 2, and of Theorem 4.7, for a strongly convex objective.

    .. math:: T = \frac{4}{\mu} \log \frac{\mu\, \Delta\, n^2 \varepsilon^2}
       {512\, S^2 \log(1/\delta) \log(8 p / \zeta)^2}, \qquad \mu = \frac{m}{k}

    and one step where the argument of the logarithm is so small that the theorem promises nothing.

    Parameters
    ----------
    n_samples, n_features : int
        Public size of the table.
    epsilon, delta : float
        Budget of the fit.
    slope : float
        S: the largest L_j / sqrt(M_j), as for `steps_if_convex`.
    gap : float
        The objective at the start less its minimum, or more.
    strong_convexity : float
        m, with respect to the norm sum of sqrt(M_j) abs(w_j) (Theorem 4.4), or, with ``sparsity``, to the
        root of the sum of M_j w_j² (Theorem 4.7).
    sparsity : float
        k = s + tau of Theorem 4.7: the largest number of non-zeros of an iterate plus the number of large
        coefficients of the minimiser.
    failure : float
        zeta: the bounds of the theorems fail at most so often.

    Returns
    -------
    int

    Notes
    -----
    The formula follows the proofs where statements differ from them. Each step shrinks the gap by the factor
    1 - mu / 4 (inequality 53; the statement of Theorem 4.4 in the appendix has 1 - mu / 2). So T needs the
    factor 4, which Theorem 4.7 leaves out: with its T the first term of its bound shrinks to the fourth root
    only. With the noise of Theorem 4.2 a step loses at most
    beta = 128 T S² log(1/delta) log(8 T p / zeta)² / (n epsilon)², of which inequality 55 has a quarter. T is
    where the first term equals 4 beta / mu, with beta taken at T = 1.

    Examples
    --------
    >>> from dpglm.solvers import steps_if_strongly_convex
    >>> steps_if_strongly_convex(
    ...     10**6, 100, 1.0, 1e-12, slope=1.0, gap=0.5, strong_convexity=0.4, sparsity=10
    ... )
    962
    """
    n, epsilon, log = _budget(n_samples, epsilon, delta)
    p = strict.whole("n_features", n_features)
    share = "above 0 and below 1"
    failure = strict.number("failure", failure, share, lambda value: 0 < value < 1)
    mu = _positive("strong_convexity", strong_convexity) / _positive("sparsity", sparsity)
    scale = (n * epsilon / _positive("slope", slope)) ** 2
    balance = mu * _positive("gap", gap) * scale / (512 * log * math.log(8 * p / failure) ** 2)
    return _steps(4 / mu * math.log(balance)) if balance > 1 else 1


def _budget(n_samples: int, epsilon: float, delta: float) -> tuple[int, float, float]:
    delta = strict.number("delta", delta, "above 0 and below 1", lambda value: 0 < value < 1)
    return strict.whole("n_samples", n_samples), _positive("epsilon", epsilon), math.log(1 / delta)


def _positive(name: str, value: float) -> float:
    return strict.number(name, value, "above 0 and finite", lambda found: 0 < found < math.inf)


def _steps(count: float) -> int:
    return max(1, round(min(count, float(strict.MOST // 2))))
