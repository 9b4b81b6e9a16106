"""What a solver is: a plan made without data, and a run that sees nothing but the plan and releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from .. import strict
from ..accounting import gaussian_mu
from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import Mechanism
from ..mechanisms.sampling import Everyone, Poisson, Sampling
from ..penalties import Separable
from ..plan import Plan, Release
from ..plan.private_size import FARTHEST
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import QUERIES, ClippedGradient
from ..queries.base import LARGEST_CLIP, LARGEST_COEFFICIENT, LEAST_CLIP, require_enforceable
from ..tables import Capability
from .audit_cases import AuditCase
from .iterates import Model
from .record_share import RecordShare

PlanType = TypeVar("PlanType", bound=Plan)

_COUNTS = ("steps", "batch_size", "periods")
_LEVELS = ("clip", "step_size")
_EVERYONE = Everyone()


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How far coefficients may be from what they estimate; all of it was released.

    Attributes
    ----------
    covariance : array of shape (d, d)
        Covariance of the coefficients w, from sampling and from noise.
    privacy : array of shape (d, d)
        The part of it that noise causes.
    determined : bool
        Whether noise left enough of the records to state an interval.
    reason : str
        Why the fit is not determined; empty if it is.
    estimand : str
        What the coefficients estimate, in a sentence.
    deviance : (float, float), optional
        The released deviance and the deviation of its noise, if it was paid for.
    """

    covariance: Vector
    privacy: Vector
    determined: bool
    reason: str
    estimand: str
    deviance: tuple[float, float] | None = None


@dataclass(frozen=True)
class Result:
    """What a run returns: coefficients, number of steps taken, and an upper bound on objective minus minimum.

    Only some solvers have the bound, and only without noise: it is a function of the records. Only some have
    an uncertainty. A choice among models states which one it took, and its released score if it has one. Some
    release what tells which share of the records counted. ``iterates`` are models along the fit, if a run was
    asked for them.
    """

    w: Vector
    steps: int
    gap: float | None = None
    uncertainty: Uncertainty | None = None
    chosen: Choice | None = None
    records: RecordShare | None = None
    iterates: tuple[Model, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Which of some models was taken.

    Attributes
    ----------
    index : int
        Its place among the candidates.
    name : str
        Which it is, in words.
    score : float, optional
        Its released mean loss on held-out rows.
    """

    index: int
    name: str
    score: float | None = None


@dataclass(frozen=True)
class Task:
    """What a plan is made for: the problem, the size n x p of the table, the budget. All of it is public.

    ``resident`` states whether the table stays in memory; if not, it is read anew in every pass. ``spare`` is
    how many more records than n there may be, where their number is private and n a released count.
    """

    problem: Problem
    n: int
    p: int
    budget: Budget
    neighbours: Neighbours
    fits: int = 1
    resident: bool = True
    spare: int = 0

    @property
    def table_size(self) -> int:
        """The most records that the table can have."""
        return self.n + self.spare

    @property
    def facts(self) -> tuple[int, int, Budget, Neighbours, int]:
        """The fields that every plan has first."""
        return self.n, self.p, self.budget, self.neighbours, self.fits

    @property
    def private(self) -> bool:
        """Whether there is a budget to keep to."""
        return self.budget.private

    @property
    def moved(self) -> int:
        """How many contributions neighbours differ in."""
        return self.neighbours.records_moved

    @property
    def dimension(self) -> int:
        """Number of coefficients, the intercept included."""
        return self.problem.dimension(self.p)

    @property
    def width(self) -> int:
        """Number of features, the constant one of an intercept included."""
        return self.problem.width(self.p)

    @cached_property
    def noise(self) -> float:
        """Noise of one pass (`noise_of_one_pass`); 0 without a budget."""
        return noise_of_one_pass(self.n, self.budget, self.neighbours, self.fits) if self.private else 0.0

    def affordable(self, steps: int) -> int:
        """A default number of steps that read the table once each: fewer if every pass reads it anew."""
        return steps if self.resident else min(steps, MOST_PASSES)

    def batches(self, batch_size: int | None) -> Sampling:
        """Poisson batches of this expected size; without one, or as large as the table, all records."""
        rate = 1.0 if batch_size is None else min(1.0, batch_size / self.n)
        return Everyone() if rate == 1.0 else Poisson(rate)

    def require_reach(self, start: Vector, steps: int, step: float, noise: float) -> None:
        """Refuse steps with which coefficients could outgrow what products with records can bear.

        Parameters
        ----------
        start : array
        steps : int
        step : float
            Largest length of a step along a slope at which every record is at the clip.
        noise : float
            Deviation of the noise of a slope over that slope.
        """
        reach = float(np.abs(start).max(initial=0.0)) + steps * step * (1.0 + FARTHEST * noise)
        if self.private and not reach < LARGEST_COEFFICIENT:
            raise UnsupportedProblem(
                f"steps of this length could take coefficients to {reach:.3g}, where products with records "
                "would overflow: use a smaller step_size, a start nearer to zero, or features in larger units"
            )

    def enforced(self, clip: float, name: str = "clip") -> float:
        """The clip as a float; in a private fit one that cannot be enforced is refused."""
        clip = float(clip)
        if self.private and not LEAST_CLIP <= clip <= LARGEST_CLIP:
            raise UnsupportedProblem(
                f"the {name} that follows from the loss and the bounds must be from {LEAST_CLIP:g} to "
                f"{LARGEST_CLIP:g}, got {clip!r}: give data and bounds in other units"
            )
        return clip


@dataclass(frozen=True)
class Solver(ABC, Generic[PlanType]):
    """Settings of an algorithm. ``None`` means: derived from public quantities by ``plan``.

    Settings that several solvers have are checked here by their names: the clip, counts, the step size and
    shares of the budget. Those that must be one of a few names have these in ``choices``.
    """

    plan_type: ClassVar[type[Plan]]
    choices: ClassVar[Mapping[str, Collection[str | None]]] = {}
    path: ClassVar[tuple[str, ...]] = ()
    """Which models along a fit ``run`` returns if it is given ``stops``: "steps" for iterates, "ridge" for a
    ridge path, "sparse" for sparse models; and "gram" if a Gram matrix lets all rows choose among them."""
    takes_outputs: ClassVar[bool] = False
    """Whether it serves losses with several predictions a record."""

    takes_weights: ClassVar[bool] = False
    """Whether records may have weights."""
    takes_offsets: ClassVar[bool] = False
    """Whether margins may have offsets."""
    takes_units: ClassVar[bool] = False
    """Whether persons may have several records."""
    exact_query: ClassVar[str] = ClippedGradient.name
    """The query that a plan without releases asks, which is a plan without noise."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in self.choices and not (value is None and None in self.choices[name]):
                strict.one_of(name, value, [known for known in self.choices[name] if known is not None])
            if name in _COUNTS:
                positive_count(**{name: value})
            elif name in _LEVELS and value is not None:
                strict.positive(name, value)
            elif name.endswith("share") and not (value is None and getattr(type(self), name, value) is None):
                strict.number(name, value, "strictly between 0 and 1", lambda share: 0 < share < 1)
            if name == "clip" and value is not None:
                require_enforceable(name, value)

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1,
        resident: bool = True,
    ) -> PlanType:  # fmt: skip
        """Everything that ``run`` will release, with the least noise that keeps within the budget.

        ``resident`` states whether the table stays in memory.
        """
        task = Task(problem, n, p, budget, neighbours, fits, resident)
        self.require_outputs(task)
        return self.plan_for(task).protecting(problem.unit)

    @classmethod
    def require_outputs(cls, task: Task) -> None:
        """Refuse a loss with several predictions a record, or a penalty on them, if it is not served."""
        problem = task.problem
        if problem.outputs > 1 and not cls.takes_outputs:
            raise UnsupportedProblem(
                f"{cls.__name__} serves losses of one prediction a record, {problem.loss.name} has "
                f'{problem.outputs}: use GradientDescent, PreconditionedDescent, or multi_class="ovr"'
            )
        if problem.outputs > 1 and not isinstance(problem.penalty, Separable):
            raise UnsupportedProblem(
                f"the penalty {type(problem.penalty).__name__} is for one coefficient a feature, "
                f"{problem.loss.name} has {problem.outputs}: use L1, L2, ElasticNet or Box, or "
                'multi_class="ovr"'
            )

    @abstractmethod
    def plan_for(self, task: Task) -> PlanType:
        """The plan for a task, calibrated."""

    @classmethod
    def needs(cls, plan: PlanType) -> frozenset[Capability]:
        """What a table must offer beyond passes for a run of a plan: what its queries need."""
        asked = {release.query for release in plan.releases} or {cls.exact_query}
        return frozenset(need for query in QUERIES if query.name in asked for need in query.needs)

    @classmethod
    @abstractmethod
    def run(cls, plan: PlanType, problem: Problem, curator: Curator) -> Result:
        """Carry out a plan, whatever the settings were that it was made from."""

    @classmethod
    @abstractmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """What the auditor runs: every kind of release at its worst case."""


AnySolver = Solver[Any]


def equal_releases(
    query: str, mechanism: type[Mechanism], count: int, sensitivity: float | str, *,
    share: float = 1.0, sampling: Sampling = _EVERYONE, entries: int = 1,
) -> Release:  # fmt: skip
    """``count`` releases with equal noise, in proportion to what a share of the budget allows them."""
    stated = sensitivity if isinstance(sensitivity, str) else f"{sensitivity:.4g}"
    return Release(query, mechanism(math.sqrt(count / share)), count, stated, sampling, entries)


def noise_of_one_pass(n: int, budget: Budget, neighbours: Neighbours, fits: int) -> float:
    """Deviation of a mean over n records when the whole budget buys one release of it.

    The unit is the largest contribution of one record. T releases have sqrt(T) times as much noise each.
    """
    return float(neighbours.records_moved * fits**0.5 / (n * gaussian_mu(budget.epsilon, budget.delta)))


def require_smooth(problem: Problem, solver: str) -> None:
    """Refuse a loss whose slope jumps."""
    if not math.isfinite(problem.loss.smoothness()):
        raise UnsupportedProblem(
            f"{solver} needs a loss of bounded curvature, {problem.loss.name} has none: use "
            "DualCoordinateDescent or, in a private fit, GradientDescent with a step_size"
        )


def require_public_size(task: Task, who: str) -> None:
    """Refuse a private number of records to what cuts a table by the positions of its rows."""
    if task.private and not task.neighbours.size_is_public:
        raise UnsupportedProblem(
            f"{who} holds out rows by their positions, which move when a record is added or removed: use "
            'neighbours="zero-out" or "replace-one", or fit one estimator with the settings that you choose'
        )


def positive_count(**settings: int | None) -> None:
    """Refuse settings that are given but not positive whole numbers."""
    for name, value in settings.items():
        if value is not None:
            strict.whole(name, value)


PREDICTION_NOISE = 0.3
"""Noise in predictions that a fit may end with, in units of the largest slope over the smoothness."""

MOST_PRIVATE_STEPS = 500
"""More steps cost time and gain little."""

MOST_PASSES = 200
"""More steps that read a table anew are not taken by default (docs/defaults.md)."""

CROSSING_STEP = 0.08
"""Share of half the range of targets that a step may cross if the loss turns linear inside the range."""


def require_bounded_slopes(problem: Problem) -> None:
    """Refuse to choose a clip for slopes of any size."""
    if not math.isfinite(problem.slope_bound()):
        raise UnsupportedProblem(
            f"the slopes of {problem.loss.name} have no bound: give the solver a clip, or Bounds a target"
        )


def clip_fraction(problem: Problem, noise: float) -> float:
    """Clip over the largest gradient norm.

    It rises as noise vanishes, so that the bias of clipping vanishes too: from 1/2 to 1, or from 1/4 to 2 if
    only the declared range of targets bounds slopes.
    """
    require_bounded_slopes(problem)
    if problem.loss.lipschitz(problem.bounds.target) <= problem.slope_bound():
        return float(min(max(0.5 * (2e-3 / noise) ** 0.25, 0.5), 1.0))
    return float(min(max(0.5 * (8e-3 / noise) ** 0.25, 0.25), 2.0))


def clip_of_gradients(problem: Problem, p: int, noise: float, given: float | None) -> tuple[float, float]:
    """The clip of a gradient, which is kept if it is given, and its share of the largest gradient norm."""
    if given is not None:
        return given, clip_fraction(problem, noise) if math.isfinite(problem.slope_bound()) else 1.0
    fraction = clip_fraction(problem, noise)
    return fraction * problem.slope_bound() * problem.radius(p), fraction
