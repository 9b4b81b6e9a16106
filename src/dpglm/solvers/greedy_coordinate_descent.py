"""Private greedy coordinate descent (Mangold, Bellet, Salmon and Tommasi, 2023, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Vector, split
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import Exponential, Gaussian, Laplace, LaplaceNoisyMax, Mechanism
from ..penalties import Separable
from ..plan import Plan, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import RULES, CoordinateRule, CoordinateScores, CoordinateSums
from . import defaults
from .base import (
    AuditCase,
    Result,
    Solver,
    noise_of_one_pass,
    opposed,
    positive,
    positive_count,
    proper_clip,
    proper_share,
    require_smooth,
    require_usual_clip,
)
from .moments import SOURCES, Moments, require_separable

SELECTIONS: dict[str, type[Mechanism]] = {"exponential": Exponential, "laplace": LaplaceNoisyMax}
RELEASES = ("auto", "gaussian", "laplace")

_FEW_ROUNDS = 8
"""Beyond this many rounds Gaussian noise is always the lesser one."""

_SETTLED = 1e-7


@dataclass(frozen=True)
class GreedyCoordinateDescentPlan(Plan):
    """Plan of `GreedyCoordinateDescent`."""

    solver: ClassVar[str] = "greedy coordinate descent"
    choices: ClassVar[dict[str, Collection[str]]] = {
        "rule": RULES,
        "second_moments": SOURCES,
        "start": ("zero", "given"),
    }

    steps: int
    clip: float
    step_size: float
    secant: bool
    rule: str
    second_moments: str
    start: str


@dataclass(frozen=True, eq=False)
class GreedyCoordinateDescent(Solver):
    """The best coordinate a step, selected privately: w_j <- prox(w_j - (g_j + noise) * step_size / M_j).

    M_j is the curvature of the mean loss along coordinate j: the loss's smoothness times the second moment
    of feature j. It scales the scores, sets the step and, by C_j = C sqrt(M_j / tr M), the clip of each
    coordinate, so that all scores have one sensitivity. Only the selected slope is released, so the noise
    does not grow with the number of features: for models with few large coefficients among many.

    Parameters
    ----------
    steps : int, optional
        Number of steps, which is also the largest number of coefficients that can differ from the start.
    clip : float, optional
        C in C_j = C sqrt(M_j / tr M).
    step_size : float, optional
        Step in units of 1 / M_j. By default a long one, which is shortened where the slopes released for a
        coordinate at two of its visits show that it would pass by the minimum.
    rule : {"gs-r", "gs-s", "gs-q", "gs"}
        Score of a coordinate: the length of its proximal step, its least subgradient, or the root of the
        decrease it promises (see `CoordinateScores`). "gs" is for penalties without kinks, where they agree.
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
    """

    name: ClassVar[str] = "greedy coordinate descent"

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
        proper_clip(self.clip)
        positive(step_size=self.step_size)
        positive_count(steps=self.steps)
        proper_share(selection_share=self.selection_share, moments_share=self.moments_share)
        for name, known in (("rule", RULES), ("selection", SELECTIONS), ("release", RELEASES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {sorted(known)}, got {getattr(self, name)!r}")
        Moments(self.second_moments, self.moments_share)

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1
    ) -> GreedyCoordinateDescentPlan:
        require_separable(problem, type(self).__name__)
        require_smooth(problem, type(self).__name__)
        l1, _, low, high = _form(problem)
        if self.rule == "gs" and (l1 > 0 or low > -math.inf or high < math.inf):
            raise UnsupportedProblem(
                f"rule 'gs' needs a penalty without kinks, {type(problem.penalty).__name__} has some: "
                f"use 'gs-s', 'gs-r' or 'gs-q'"
            )
        self._start(problem, p)
        moments = Moments(self.second_moments, self.moments_share)
        noise = noise_of_one_pass(n, budget, neighbours, fits) if budget.private else 0.0
        source = moments.source(problem, p, noise)
        steps, clip, step_size = 20_000 * problem.dimension(p), math.inf, 1.0
        if budget.private and None in (self.steps, self.clip, self.step_size):
            steps, clip, step_size = defaults.greedy_coordinate_descent(
                problem, p, noise, self.clip, *moments.typical(source, problem, p)
            )
        steps, moved = int(self.steps or steps), neighbours.records_moved
        clip, step_size = float(self.clip or clip), float(self.step_size or step_size)
        if budget.private:
            require_usual_clip(clip)
        rest = (1 - self.moments_share * (source == "private")) / steps
        first = moments.releases(source, problem, p, neighbours)
        selection = Release(
            CoordinateScores.name,
            SELECTIONS[self.selection](1 / math.sqrt(rest * self.selection_share)),
            steps,
            f"{moved} C / sqrt(tr M)",
            entries=problem.dimension(p),
        )
        deviation = 1 / math.sqrt(rest * (1 - self.selection_share))
        gaussian = Release(CoordinateSums.name, Gaussian(deviation), steps, f"{moved} C_j", follows=True)
        laplace = replace(gaussian, mechanism=Laplace(deviation / math.sqrt(2)))

        def planned(release: Release) -> GreedyCoordinateDescentPlan:
            return GreedyCoordinateDescentPlan(
                n, p, budget, neighbours, fits, (*first, selection, release),
                steps=steps, clip=clip, step_size=step_size, rule=self.rule, second_moments=source,
                secant=budget.private and self.step_size is None,
                start="zero" if self.warm_start is None else "given",
            ).calibrated()  # fmt: skip

        if self.release != "auto":
            return planned(laplace if self.release == "laplace" else gaussian)
        if steps * fits > _FEW_ROUNDS or not budget.private:
            return planned(gaussian)
        # Both have the same deviation before they are scaled to the budget: the smaller factor wins.
        return min(planned(gaussian), planned(laplace), key=lambda plan: plan.releases[-2].mechanism.noise)

    def run(self, plan: GreedyCoordinateDescentPlan, problem: Problem, curator: Curator) -> Result:
        n, p = plan.n_records, plan.n_features
        moments = Moments(self.second_moments, self.moments_share).values(
            plan.second_moments, plan, problem, curator
        )
        curvature = problem.loss.smoothness() * moments
        query = CoordinateScores(
            problem.loss,
            plan.clip * np.sqrt(curvature / curvature.sum()),
            curvature,
            plan.rule,
            _form(problem),
            problem.loss.lipschitz(problem.bounds.target) * problem.features(p),
        )
        step = plan.step_size / curvature
        # The curvature along the constant feature is known: a longer step would pass by the minimum.
        _, along_constant = problem.split(step)
        along_constant[:] = min(plan.step_size, problem.stretch()) / problem.split(curvature)[1]
        rule = CoordinateRule(step / n, step, *problem.coordinate_form(p))
        selection, release = plan.releases[-2].mechanism, plan.releases[-1].mechanism
        w = self._start(problem, p)
        scores = curator.open(query, w)

        visited: dict[int, tuple[float, float]] = {}

        def advance() -> tuple[int, float]:
            j = scores.select(selection)
            slope = scores.release(j, release)
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
        for _ in range(plan.steps):
            advance()
        return Result(w, plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        settings: dict[str, Any] = {"steps": 2, "clip": 0.1, "step_size": 0.1}
        solvers = (
            cls(**settings, second_moments="bounds", release="gaussian"),
            cls(**settings, second_moments="bounds", selection="laplace", release="laplace"),
            cls(**settings, second_moments="private", moments_share=0.9),
        )
        # The bystanders make both scores large; the record in question raises one and lowers the other.
        row = np.full(2, 0.5**0.5)
        bystanders = (np.tile(row, (7, 1)), np.ones(7))
        first, second = (row * [1, -1], 1.0), (row * [-1, 1], 1.0)
        opposite = tuple(
            replace(opposed(solver, 2), bystanders=bystanders, first=first, second=second)
            for solver in solvers
        )
        # Second moments differ most between two corners of the ball.
        corners = ((np.array([1.0, 0.0]), 1.0), (np.array([0.0, 1.0]), 1.0))
        moments = replace(opposite[2], first=corners[0], second=corners[1])
        return (*opposite[:2], moments, opposed(solvers[0], 1, fit_intercept=True, crowd=7))

    def _start(self, problem: Problem, p: int) -> Vector:
        """The public starting point, the intercept in units of its constant feature."""
        w = problem.start(p)
        if self.warm_start is None:
            return w
        given = np.asarray(self.warm_start, dtype=np.float64)
        if given.shape not in ((p,), w.shape) or not np.isfinite(given).all():
            raise ValueError(
                f"warm_start must be {p} finite coefficients"
                + (", or these and an intercept" if problem.fit_intercept else "")
            )
        features, intercept = problem.split(w)
        features[:], given_intercept = split(given, p)
        if given_intercept.size:
            intercept[:] = given_intercept / problem.constant(p)
        return problem.prox(w, 0.0)


def _shorten(rule: CoordinateRule, j: int, change: float, move: float) -> None:
    """Keep a step from passing by the minimum on a line through the last two released slopes of coordinate j.

    Both are public. They show how strongly slopes that are clipped respond, which second moments do not.
    """
    if change * move > 0:
        factor = min(1.0, move / (change * rule.rate[j]))
        rule.rate[j] *= factor
        rule.step[j] *= factor


def _settle(advance: Callable[[], tuple[int, float]], w: Vector, p: int, most: int) -> int:
    """Steps without noise until they are short beside the longest one along a feature; returns their number.

    A step that sets a coefficient to zero may be short although others would not be. So more steps in turn
    have to be short than coefficients were there to be set to zero.
    """
    longest, short, there = 0.0, 0, np.count_nonzero(w)
    for done in range(1, most + 1):
        j, length = advance()
        if j < p:
            longest = max(longest, length)
        if length <= _SETTLED * longest:
            short += 1
        else:
            short, there = 0, np.count_nonzero(w)
        if short > there:
            return done
    return most


def _form(problem: Problem) -> tuple[float, float, float, float]:
    assert isinstance(problem.penalty, Separable)
    return problem.penalty.coordinate_form()
