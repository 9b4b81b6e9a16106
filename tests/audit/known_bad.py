"""Mechanisms that promise more than they keep, as found in papers and in the wild.

Each function runs the auditor on one of them and returns its report; those with a ``right`` argument can also
run the same thing done right, which must pass: mostly in fewer runs, since what is done right is audited by
the registry, every night in many runs (`make audit`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpglm import Bounds, Budget, LogisticRegression, Neighbours
from dpglm.accounting import (
    Exponential,
    Gaussian,
    PoissonGaussian,
    Pure,
    Repeated,
    Search,
    compose,
    tries_of,
)
from dpglm.audit import Claim, audit, audit_function, audit_probabilities, examine
from dpglm.audit.targets import TranscriptTarget, blocks, streamed
from dpglm.curator import Curator
from dpglm.data import Records
from dpglm.data.stream import Stream
from dpglm.data.units import Units
from dpglm.losses import Squared
from dpglm.mechanisms import Gaussian as GaussianMechanism
from dpglm.mechanisms import LaplaceNoisyMax, Randomness
from dpglm.mechanisms.randomness import draw_tries
from dpglm.mechanisms.sampling import Poisson
from dpglm.penalties import Zero
from dpglm.problem import Problem
from dpglm.queries import (
    ClippedGradient,
    gradients,  # where the gradient of a loss is chosen
)
from dpglm.solvers import AuditCase, CoordinateDescent, GradientDescent

BUDGET = Budget(1.0, 0.01)
LOGISTIC = GradientDescent.audit_cases()[0]
INTERCEPT = GradientDescent.audit_cases()[2]

NOISY_MAX = LaplaceNoisyMax(1.0)
OPPOSITE = np.array([0.0, -3.0]), np.array([1.0, -4.0])


def _as_if_scores_moved_together(right: bool):
    """The claim for scores that all move in one direction, or else the right one."""
    epsilon = NOISY_MAX.event.epsilon * (1.0 if right else 0.5)
    return Claim(epsilon, 0.0, Pure(epsilon))


def laplace_noisy_max(right: bool = False):
    """Two scores that move in opposite directions, Laplace noise of scale 1 / epsilon' on both."""
    laws = (NOISY_MAX.probabilities(scores, 1.0) for scores in OPPOSITE)
    return audit_probabilities(*laws, _as_if_scores_moved_together(right))


def laplace_noisy_max_sampled(right: bool = False):
    randomness = Randomness(0)

    def run(second):
        return NOISY_MAX.release(OPPOSITE[second], 1.0, randomness)

    return audit_function(run, _as_if_scores_moved_together(right), runs=4_000 if right else 20_000)


def frank_wolfe_with_a_free_sign(right: bool = False):
    """One feature: the index says nothing, the sign of the exact gradient says everything."""
    rng = np.random.default_rng(1)
    noise, steps = 8.0, 3
    claim = _priced(Repeated(Exponential(noise), steps))

    def run(second):
        gradient = -0.5 if second else 0.5
        w = 0.0
        for t in range(steps):
            sign = -np.sign(gradient)
            if right:
                sign = (-1, 1)[np.argmax(np.array([gradient, -gradient]) + rng.gumbel(scale=noise, size=2))]
            w += 2 / (t + 2) * (sign - w)
        return w

    return audit_function(run, claim, runs=4_000)


def visible_dual_variables(right: bool = False):
    """Dual coordinate descent that shows alpha, which changes for the records of the batch only."""
    rng = np.random.default_rng(2)
    rate, steps, noise = 0.1, 5, 2.0
    claim = _priced(Repeated(PoissonGaussian(noise, rate, "zero-out"), steps))

    def run(second):
        inside = rng.random(steps) < rate
        shift = 0.0 if second else 1.0
        v = inside * shift + noise * rng.standard_normal(steps)
        if right:
            return v.sum()
        alpha = inside * (shift + noise * rng.standard_normal(steps))
        return (v * (alpha != 0)).sum() + alpha.sum()

    return audit_function(run, claim, runs=4_000 if right else 10_000)


def shuffled_batches(right: bool = False):
    """One epoch of fixed batches, priced as if every record came by its own coin.

    All other records push the sum down, so that the batch of the record in question stands out.
    """
    rng = np.random.default_rng(3)
    batches, noise = 20, 0.5
    claim = _priced(Repeated(PoissonGaussian(noise, 1 / batches, "zero-out"), batches))

    def run(second):
        sums = noise * rng.standard_normal(batches)
        if right:
            return (sums + (not second) * (rng.random(batches) < 1 / batches)).max()
        sums[rng.integers(batches)] += 1.0 if second else 2.0
        return sums.max()

    return audit_function(run, claim, runs=4_000 if right else 20_000)


@dataclass(frozen=True)
class NotOnTheLast(GaussianMechanism):
    """Noise on all coordinates but the last."""

    def release(self, answer, sensitivity, randomness):
        released = super().release(answer, sensitivity, randomness)
        released[-1] = np.asarray(answer)[-1]
        return released


def noise_forgotten_on_one_coordinate():
    return _with_mechanism(NotOnTheLast)


@dataclass(frozen=True)
class SameSeed(GaussianMechanism):
    """The generator is made anew for every release, with the same seed."""

    def release(self, answer, sensitivity, randomness):
        return super().release(answer, sensitivity, Randomness(7))


def seed_reused_in_every_release():
    return _with_mechanism(SameSeed)


def seed_reused_in_every_fit():
    return audit(LogisticRegression(random_state=0, classes=[-1, 1]), runs=40)


class ScaledByTheLargestRow(LogisticRegression):
    """Divides the table by its largest norm before the fit."""

    def fit(self, X, y):
        return super().fit(X / np.linalg.norm(X, axis=1).max(), y)


def data_dependent_scaling():
    rows = np.tile([[1.0, 0.0], [-1.0, 0.0]], (200, 1))
    labels = np.tile([1, -1], 200)
    model = ScaledByTheLargestRow(classes=[-1, 1], fit_intercept=False, delta=0.01)
    return audit(model, rows, labels, ([0.0, 1.0], 1), ([0.0, 1000.0], 1), runs=24, random_state=0)


class ClippedAfterTheSum(ClippedGradient):
    """Adds up whole gradients and clips their mean."""

    def __call__(self, data, *public):
        mean = np.asarray(ClippedGradient(self.loss, math.inf)(data, *public)) / data.n_records
        return mean * min(1.0, self.clip / np.linalg.norm(mean)) * data.n_records


def clip_after_average(monkeypatch):
    monkeypatch.setattr(gradients, "ClippedGradient", ClippedAfterTheSum)
    problem = Problem(Squared(), Zero(), Bounds(row_norm=1.0, target=(-100.0, 100.0)), fit_intercept=False)
    case = AuditCase(
        GradientDescent(steps=2, clip=1.0, step_size=0.1), problem, (np.zeros((7, 2)), np.zeros(7)),
        (np.array([1.0, 0.0]), 100.0), (np.array([1.0, 0.0]), -100.0),
    )  # fmt: skip
    return _examined(TranscriptTarget.of(case, BUDGET, Neighbours.REPLACE_ONE))


class SensitivityOfTheMean(ClippedGradient):
    """Answers a sum with the sensitivity of a mean over eight records."""

    def sensitivity(self, neighbours):
        return super().sensitivity(neighbours) / 8


def sensitivity_of_a_mean_for_a_sum(monkeypatch):
    monkeypatch.setattr(gradients, "ClippedGradient", SensitivityOfTheMean)
    return _examined(TranscriptTarget.of(LOGISTIC, BUDGET, Neighbours.REPLACE_ONE))


@dataclass(frozen=True)
class OneNoise(GaussianMechanism):
    """One number is drawn and added to every entry."""

    def release(self, answer, sensitivity, randomness):
        return answer + super().release(np.zeros(1), sensitivity, randomness)


def one_noise_for_all_entries():
    return _with_mechanism(OneNoise)


class ShortKey(LogisticRegression):
    """Keys its noise with eight bits."""

    bits = 8

    def fit(self, X, y):
        if self.random_state is not None:
            self.random_state %= 2**self.bits
        return super().fit(X, y)


class LongKey(ShortKey):
    bits = 62


def eight_bit_key(right: bool = False):
    model = (LongKey if right else ShortKey)(classes=[-1, 1], solver=GradientDescent(steps=1))
    return audit(model, runs=60 if right else 240, random_state=0)


def sixteen_bit_key(right: bool = False):
    """The key of every run is one of 65,536: some hundred runs repeat one another exactly."""
    keys = np.random.default_rng(4)
    noise = 5.0

    def run(second):
        key = int(keys.integers(2**62 if right else 2**16))
        return second + noise * np.random.default_rng(key).standard_normal(3)

    return audit_function(run, _priced(Gaussian(noise / math.sqrt(3)), delta=1e-5), runs=4_000)


class OneKey(LogisticRegression):
    """Every one-vs-rest fit starts the same stream of noise."""

    def _curator(self, records, neighbours, randomness):
        return super()._curator(records, neighbours, Randomness(self.random_state))


def one_key_for_all_classes(right: bool = False):
    model = (LogisticRegression if right else OneKey)(
        classes=["a", "b", "c"], solver=GradientDescent(steps=2), multi_class="ovr"
    )
    return audit(model, runs=20 if right else 60, random_state=0)


def batches_of_fixed_size(solver, right: bool, monkeypatch):
    """So many records drawn without replacement, priced as if each came by its own coin."""

    class Fixed:
        def __init__(self, rate, randomness):
            self._rate, self._randomness = rate, randomness

        def taken(self, start, stop):
            count = stop - start
            order = np.argsort(self._randomness.integers(1 << 62, count))
            return np.sort(order[: round(self._rate * count)])

    def fixed(self, randomness):
        return Fixed(self.rate, randomness)

    if not right:
        monkeypatch.setattr(Poisson, "draw", fixed)
    (case,) = (
        case
        for case in solver.audit_cases()
        if case.solver.steps == 1 and case.solver.batch_size is not None and not case.problem.has_units
    )
    target = TranscriptTarget.of(case, Budget(3.0, 0.01), Neighbours.REPLACE_ONE)
    return examine(target, runs=300 if right else 1_000, random_state=0)


def price_of_a_record_for_persons(monkeypatch):
    """Every record of a person adds what a record may add."""
    made = Units.of

    def whole(*given):
        persons = made(*given)
        return Units(persons.number, np.ones(len(persons.number)), persons.count)

    monkeypatch.setattr(Units, "of", whole)
    case = next(case for case in GradientDescent.audit_cases() if case.problem.has_units)
    return examine(TranscriptTarget.of(case, BUDGET, Neighbours.REPLACE_ONE), runs=400, random_state=0)


def clip_without_the_constant_feature(solver, right: bool, monkeypatch):
    """Contributions are cut by the norm of the row alone."""
    if not right:
        monkeypatch.setattr(Records, "row_norms", property(lambda self: self.norms))
    case = next(case for case in solver.audit_cases() if case.problem.fit_intercept)
    return examine(TranscriptTarget.of(case, BUDGET, Neighbours.REPLACE_ONE), runs=400, random_state=0)


@dataclass(frozen=True)
class KeepsTargets(GradientDescent):
    """Writes the targets, or where it is right the number of records, into an object that it was handed."""

    right: bool = False
    place: str = "solver"

    def run(self, plan, problem, curator):
        kept = plan.n_records if self.right else curator._records.y.copy()
        where = {"solver": self, "problem": problem, "loss": problem.loss, "plan": plan}[self.place]
        object.__setattr__(where, "kept", [kept])
        return super().run(plan, problem, curator)


def targets_kept_by_the_solver(right: bool = False):
    solver = KeepsTargets(steps=2, right=right)
    return audit(LogisticRegression(classes=[-1, 1], solver=solver), runs=20, random_state=0)


def targets_kept_by_a_registered_solver(right: bool = False, place: str = "solver"):
    solver = KeepsTargets(steps=2, clip=0.1, step_size=0.1, right=right, place=place)
    return _replayed(replace(INTERCEPT, solver=solver), Neighbours.REPLACE_ONE)


@dataclass(frozen=True)
class TellsInPassing(GradientDescent):
    """Returns the right coefficients, and another field of the result that depends on a record."""

    field: str = "none"

    def run(self, plan, problem, curator):
        return replace(super().run(plan, problem, curator), **{self.field: int(curator._records.scale[0])})


def number_of_steps_from_data():
    return _told_in_passing("steps")


def gap_from_data():
    return _told_in_passing("gap")


def _told_in_passing(field):
    solver = TellsInPassing(steps=2, clip=0.1, step_size=0.1, field=field)
    return _replayed(replace(LOGISTIC, solver=solver), Neighbours.ZERO_OUT)


def iterations_from_data():
    solver = TellsInPassing(steps=2, field="steps")
    model = LogisticRegression(classes=[-1, 1], neighbours="zero-out", solver=solver)
    return audit(model, runs=20, random_state=0)


def public_choices_from_data(monkeypatch):
    """Coordinates are said to be picked blindly, and are picked where the first record is not zero."""

    def informed(self, stop, count):
        return np.full(count, int(self._records.scale[0])) % stop

    monkeypatch.setattr(Curator, "pick", informed)
    target = TranscriptTarget.of(CoordinateDescent.audit_cases()[0], BUDGET, Neighbours.ZERO_OUT)
    return examine(target, runs=100, random_state=0)


@dataclass(frozen=True)
class AsksForMore(GradientDescent):
    """Asks for a random number below a limit that depends on a record."""

    def run(self, plan, problem, curator):
        curator.pick(1 + int(curator._records.scale[0]), 1)
        return super().run(plan, problem, curator)


def question_from_data():
    solver = AsksForMore(steps=2, clip=0.1, step_size=0.1)
    return _replayed(replace(LOGISTIC, solver=solver), Neighbours.ZERO_OUT)


class LocalSensitivity(ClippedGradient):
    """Scales its noise to the longest gradient that occurs, which is that of the record in question."""

    def __call__(self, data, *public):
        slopes = np.abs(self.loss.derivative(data.dot(public[0]), data.y)) * data.row_norms
        object.__setattr__(self, "largest", min(self.clip, slopes.max()))
        return super().__call__(data, *public)

    def sensitivity(self, neighbours):
        return max(getattr(self, "largest", self.clip), 1e-3) * neighbours.records_moved


def noise_scaled_by_the_data(monkeypatch):
    monkeypatch.setattr(gradients, "ClippedGradient", LocalSensitivity)
    return _replayed(LOGISTIC, Neighbours.ZERO_OUT)


def _replayed(case, neighbours):
    """A few runs, whose replays must tell."""
    return examine(TranscriptTarget.of(case, BUDGET, neighbours), runs=20, random_state=0)


def _with_mechanism(mechanism: type[GaussianMechanism]):
    """Gradient descent as planned, but for the mechanism that adds the noise."""
    target = TranscriptTarget.of(LOGISTIC, BUDGET, Neighbours.REPLACE_ONE)
    (release,) = target.plan.releases
    wrong = replace(release, mechanism=mechanism(release.mechanism.noise))
    return _examined(TranscriptTarget(target.case, replace(target.plan, releases=(wrong,))))


def _examined(target):
    return examine(target, runs=150, random_state=0)


def _priced(event, delta=0.01):
    return Claim(compose(event).epsilon(delta), delta, event)


def search_that_pays_for_one_try(right: bool = False):
    """The best of 25 tries, each fitted and scored with noise, at the price of one try."""
    randomness, rng, mu = Randomness(4), np.random.default_rng(4), 0.8
    tries = tries_of("geometric", 25)
    claim = _priced(Search((Gaussian(1 / mu),), tries) if right else Gaussian(1 / mu))

    def run(second):
        count = draw_tries(tries, randomness) if right else 25
        return (rng.standard_normal(count) + mu * (not second)).max()

    return audit_function(run, claim, runs=1_000 if right else 4_000)


def edge_of_a_block_read_again(right: bool = False):
    """A source that keeps the last row of its first block and puts it before every later one.

    It gives as many records as it states, since the rows at its end are lost.
    """

    def holding(X, y, problem, most=0):
        # The record in question is moved to the edge.
        X, y = np.roll(X, 2, axis=0), np.roll(y, 2)
        places = np.arange(len(y)) if right else np.array([0, 1, 2, 2, 3, 4, 2, 5])
        return streamed(Stream(lambda: blocks(X[places], y[places]), *X.shape), problem)

    once = replace(LOGISTIC, solver=replace(LOGISTIC.solver, steps=1))
    target = TranscriptTarget.of(once, BUDGET, Neighbours.ZERO_OUT, holding)
    return examine(target, runs=60 if right else 125, random_state=6)
