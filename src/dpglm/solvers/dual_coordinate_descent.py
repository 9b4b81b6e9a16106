"""Private dual coordinate descent: stochastic dual coordinate ascent on batches, with secret variables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import strict
from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Loss
from ..mechanisms import Gaussian
from ..penalties import L2, Separable
from ..plan import Plan, Releasable
from ..problem import Problem
from ..queries import DualForm, DualStep
from .audit_cases import AuditCase, opposed, opposed_in_scaled_columns
from .base import PREDICTION_NOISE, Result, Solver, Task, clip_fraction, equal_releases
from .exact import dual_minimiser
from .iterates import TailMean

MOST_DUAL_STEPS, MOST_OF_ALL, MOST_VISITS = 1000, 10_000, 5e7
LITTLE_NOISE = 5e-5
USUAL_RATE = 0.2
LEAST_FRACTION = 0.3
LONGEST_PATH = 0.8
JUMP = 0.4
LARGEST_WEIGHT = 1e100
_MOST_EPOCHS = 10_000
_FREEDOM = 50.0


@dataclass(frozen=True)
class DualCoordinateDescentPlan(Plan):
    """Plan of `DualCoordinateDescent`; without releases it is one for the exact minimiser.

    Columns are scaled to equal declared bounds if there is a ``quadratic`` term in their coefficients.
    """

    solver: ClassVar[str] = "dual coordinate descent"
    may_release: ClassVar[Releasable] = {DualStep.name: (Gaussian,)}

    batch_size: int
    clip: float
    overlap: float
    average: bool
    quadratic: float

    def _passes_of_a_fit(self) -> None:
        """None: it reads the rows of batches, and keeps a number for each, of a resident table."""
        return None


@dataclass(frozen=True)
class DualCoordinateDescent(Solver[DualCoordinateDescentPlan]):
    """Every record of a batch takes its best dual step; the sum of steps times rows is released.

    For penalties with an L2 part. There is no learning rate: a step is the exact minimiser of the record's
    part of the dual problem for squared, Huber and hinge losses, and a safeguarded Newton step for others.
    Dual variables belong to the records and stay secret, so noise goes to the released sums only.

    Parameters
    ----------
    batch_size : int, optional
        Expected size of a Poisson batch; as large as the table or larger, every step reads all records.
    clip : float, optional
        Largest L2 norm of what one record adds to a step: its dual step is scaled down to it. Nothing is lost
        by that, because the next step of the record continues from its present dual variable.
    steps : int, optional
        Number of steps.
    overlap : float
        How parallel the rows of a batch are assumed to be, above 0 and at most 1: a record's prediction is
        taken to change with a batch of L records as with 1 + overlap (L - 1) steps of one, the others' on the
        longest rows. With 1 no step is too long even if all rows are parallel. Down to a half, steps are at
        most twice as long and converge on any table; below, only if the largest eigenvalue of the mean outer
        product is less than twice the overlap, for rows of norm 1.
    average : bool
        Return the mean of the last quarter of the iterates instead of the last one.

    Notes
    -----
    With an infinite epsilon the solver returns the exact minimiser: it visits one record after the other
    until the duality gap vanishes, with Newton steps in between if the slope of the loss jumps and there are
    at most 500 coefficients. With ``steps`` it takes so many steps of batches without noise. The intercept
    gets a small L2 part around its start, which vanishes without noise.

    Algorithm 1 of the paper below, which releases the dual variables too; its experiments are
    ``experiments/scd_paper.py`` (Figures 1 to 3), and its Algorithm 2, the primal form, is
    ``experiments/scd_primal.py``.

    References
    ----------
    Damaskinos, G., Mendler-Dünner, C., Guerraoui, R., Papandreou, N. and Parnell, T. (2021): Differentially
    private stochastic coordinate descent. AAAI 35(8), 7176-7184. doi:10.1609/aaai.v35i8.16882,
    arXiv:2006.07272.
    """

    plan_type: ClassVar[type[Plan]] = DualCoordinateDescentPlan
    exact_query: ClassVar[str] = DualStep.name

    batch_size: int | None = None
    clip: float | None = None
    steps: int | None = None
    overlap: float = 2 / 3
    average: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.number("overlap", self.overlap, "above 0 and at most 1", lambda share: 0 < share <= 1)

    def plan_for(self, task: Task) -> DualCoordinateDescentPlan:
        problem, n = task.problem, task.n
        if not (isinstance(problem.penalty, Separable) and problem.penalty.strong_convexity > 0):
            raise UnsupportedProblem(
                f"{type(self).__name__} needs a penalty that is a sum over coordinates with an L2 part, such "
                f"as L2 or ElasticNet, not {problem.penalty!r}: use GradientDescent"
            )
        quadratic = 0.0
        if task.private:
            quadratic = _quadratic(task) if self.clip is None else 0.0
            problem, _ = _in_equal_columns(problem, task.p, quadratic)
            batch_size, clip, steps = default_settings(
                problem, n, task.p, task.noise, self.batch_size, self.clip, self.steps, self.overlap
            )
        else:
            if type(problem.loss).conjugate is Loss.conjugate:
                raise UnsupportedProblem(
                    f"{type(self).__name__} without noise needs the conjugate of the loss, which "
                    f"{problem.loss.name} does not state"
                )
            if not _starts_inside(problem):
                raise UnsupportedProblem(
                    f"{type(self).__name__} without noise starts from dual variables of 0, which are no "
                    f"slopes of {problem.loss.name} at the least target: use Newton or GradientDescent"
                )
            batch_size = self.batch_size or 1 if self.steps else 1
            clip, steps = self.clip or math.inf, self.steps or n * _MOST_EPOCHS
        batch_size, clip, steps = min(int(batch_size), n), task.enforced(clip), int(steps)
        release = equal_releases(
            DualStep.name, Gaussian, steps, task.moved * clip,
            sampling=task.batches(batch_size), entries=task.dimension,
        )  # fmt: skip
        releases = (release,) if task.private or self.steps else ()
        return DualCoordinateDescentPlan(
            *task.facts, releases, steps, batch_size, clip, float(self.overlap), self.average, quadratic
        ).calibrated()

    @classmethod
    def run(cls, plan: DualCoordinateDescentPlan, problem: Problem, curator: Curator) -> Result:
        solved, scales = _in_equal_columns(problem, plan.n_features, plan.quadratic)
        form, query = _form(solved, plan), _query(solved, plan, scales)
        if not plan.releases:
            return dual_minimiser(plan, form, query, curator)
        release, v = plan[query.name], np.zeros(len(form.l2))
        w = form.point(v)
        opened, tail = curator.open(query, w, release.mechanism), TailMean(plan.steps, w)
        for _ in range(plan.steps):
            v += opened.step(w, release.sampling)
            w = form.point(v)
            tail.add(w)
        if plan.average:
            w = tail.mean
        if scales is not None:
            w = problem.from_scaled_columns(w, scales, solved)
        gap = None if plan.budget.private else opened.gap(w, form.around(w))[0]
        return Result(w, plan.steps, gap)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        # The dual variable never reaches the slope: every step is clipped, as the first.
        return (
            opposed(cls(steps=2, clip=0.1, batch_size=8), 2, L2(1.0)),
            opposed(cls(steps=2, clip=0.1, batch_size=2), 1, L2(1.0)),
            # The weak penalty on the intercept makes every step short.
            opposed(cls(steps=2, clip=5e-4, batch_size=8), 1, L2(1.0), fit_intercept=True, crowd=7),
            opposed(cls(steps=1, clip=0.1, batch_size=1), 1, L2(1.0), crowd=3),
            opposed_in_scaled_columns(cls(steps=2, batch_size=8), L2(1.0)),
        )


def _quadratic(task: Task) -> float:
    """Strength of the quadratic term of scaled columns, as in objective perturbation; 0 if none are scaled.

    The L2 part of the penalty is that of the columns as they are, and holds large ones back too little for
    noise that is the same for all scaled columns.
    """
    scales = task.problem.scales_of_bounds(task.p)
    if scales is None:
        return 0.0
    smoothness = task.problem.bend() * task.problem.in_scaled_columns(scales).radius(task.p) ** 2
    return smoothness * task.noise * clip_fraction(task.problem, task.noise) / PREDICTION_NOISE


def _in_equal_columns(problem: Problem, p: int, quadratic: float) -> tuple[Problem, Vector | None]:
    """The problem for columns that are scaled to equal bounds, with a quadratic term, if there is one."""
    scales = problem.scales_of_bounds(p) if quadratic > 0 else None
    return (problem, None) if scales is None else (problem.in_scaled_columns(scales, quadratic), scales)


def _starts_inside(problem: Problem) -> bool:
    """Whether 0 lies in the domain of the conjugate for the least and the largest target."""
    usual = (-1.0, 1.0) if problem.loss.kind == "classification" else (0.0, 1.0)
    targets = np.array(problem.bounds.target or usual)
    return bool(np.isfinite(problem.loss.conjugate(np.zeros(2), targets)).all())


def default_settings(
    problem: Problem, n: int, p: int, noise: float,
    batch_size: int | None, clip: float | None, steps: int | None, overlap: float,
) -> tuple[int, float, int]:  # fmt: skip
    """(batch_size, clip, steps) of dual coordinate descent; those that are given are kept.

    ``path`` is the longest path of a dual variable over the largest slope. Derived in docs/defaults.md.
    """
    batch_size = min(batch_size or max(math.ceil(n * USUAL_RATE), p), n)
    smoothness = problem.bend()
    bend = smoothness if math.isfinite(problem.loss.smoothness()) else JUMP * smoothness
    weakest, rate = problem.penalty.strong_convexity, batch_size / n
    answered = (1 + overlap * (batch_size - 1)) / n
    row = problem.bounds.radius(p) ** 2 / weakest + _intercept(problem, p)[1]
    weight = min(answered * row, LARGEST_WEIGHT)
    whole = problem.slope_bound() * problem.radius(p)
    # With little noise, paths are as long as the largest slope is far, and there is time to go them.
    little = max(1.0, LITTLE_NOISE / noise)
    longest = LONGEST_PATH * min(math.sqrt(little), 10.0)
    more = min(MOST_DUAL_STEPS * little, MOST_OF_ALL, MOST_VISITS / batch_size)
    most_steps = max(int(more), MOST_DUAL_STEPS)
    path = min(PREDICTION_NOISE * weakest / (noise * bend * problem.radius(p) ** 2), longest)
    if clip is None:
        most = clip_fraction(problem, noise)
        least = path * (1 + weight * smoothness) / (rate * (steps or most_steps))
        fraction = max(most + (LEAST_FRACTION - most) * min(path / LONGEST_PATH, 1.0), least)
        fraction = min(fraction, max(most, LEAST_FRACTION))
        clip = fraction * whole / (1 + weight * smoothness)
    if steps is None:
        steps = math.ceil(min(max(path * whole / (rate * clip), 1), most_steps))
    return batch_size, clip, steps


def _intercept(problem: Problem, p: int) -> tuple[float, float]:
    """Strength of the L2 part of the intercept, and the squared constant feature over it.

    The strength is that of the other coefficients, or a small share of the curvature along the intercept.
    """
    if not problem.fit_intercept:
        return 1.0, 0.0
    square = problem.constant(p) ** 2
    strength = min(problem.penalty.strong_convexity, problem.bend() * square / _FREEDOM)
    return strength, square / strength


def _form(problem: Problem, plan: DualCoordinateDescentPlan) -> DualForm:
    p = plan.n_features
    l1, l2, low, high = problem.coordinate_form(p)
    _, intercept = problem.split(l2)
    intercept[:] = _intercept(problem, p)[0]
    form = DualForm(plan.n_records, l1, l2, low, high, intercept=problem.fit_intercept)
    return form.around(problem.start(p))


def _query(problem: Problem, plan: DualCoordinateDescentPlan, scales: Vector | None = None) -> DualStep:
    n, p = plan.n_records, plan.n_features
    strength, (intercept, of_constant) = problem.penalty.strong_convexity, _intercept(problem, p)
    largest = problem.bounds.radius(p) ** 2 / strength + of_constant
    shared = plan.overlap * (plan.batch_size - 1) / n * largest if plan.batch_size > 1 else 0.0
    constant = problem.constant(p) if scales is not None and problem.fit_intercept else None
    return DualStep(
        problem.loss, plan.clip, 1 / (n * strength), 1 / (n * intercept), shared, scales, constant
    )
