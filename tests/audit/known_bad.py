"""Mechanisms that promise more than they keep, as found in papers and in the wild.

Each function runs the auditor on one of them and returns its report; those with a ``right`` argument can also
run the same thing done right, which must pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpglm import Bounds, Budget, LogisticRegression, Neighbours
from dpglm.accounting import Exponential, PoissonGaussian, Pure, Repeated, compose
from dpglm.audit import Claim, audit, audit_function, audit_probabilities, examine
from dpglm.audit.targets import TranscriptTarget
from dpglm.losses import Squared
from dpglm.mechanisms import Gaussian as GaussianMechanism
from dpglm.mechanisms import LaplaceNoisyMax, Randomness
from dpglm.penalties import Zero
from dpglm.problem import Problem
from dpglm.queries import ClippedGradient
from dpglm.solvers import AuditCase, GradientDescent, gradient_descent

BUDGET = Budget(1.0, 0.01)
LOGISTIC = GradientDescent.audit_cases()[0]


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

    return audit_function(run, _as_if_scores_moved_together(right), runs=20_000)


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

    return audit_function(run, claim, runs=40_000)


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

    return audit_function(run, claim, runs=20_000)


@dataclass(frozen=True)
class NotOnTheLast(GaussianMechanism):
    """Noise on all coordinates but the last."""

    def release(self, answer, sensitivity, randomness):
        released = super().release(answer, sensitivity, randomness)
        released[-1] = answer[-1]
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
    return audit(LogisticRegression(random_state=0, classes=[-1, 1]), runs=100)


class ScaledByTheLargestRow(LogisticRegression):
    """Divides the table by its largest norm before the fit."""

    def fit(self, X, y):
        return super().fit(X / np.linalg.norm(X, axis=1).max(), y)


def data_dependent_scaling():
    rows = np.tile([[1.0, 0.0], [-1.0, 0.0]], (200, 1))
    labels = np.tile([1, -1], 200)
    model = ScaledByTheLargestRow(classes=[-1, 1], fit_intercept=False, delta=0.01)
    return audit(model, rows, labels, ([0.0, 1.0], 1), ([0.0, 1000.0], 1), runs=150, random_state=0)


class ClippedAfterTheSum(ClippedGradient):
    """Adds up whole gradients and clips their mean."""

    def __call__(self, data, *public):
        mean = ClippedGradient(self.loss, math.inf)(data, *public) / data.n_records
        return mean * min(1.0, self.clip / np.linalg.norm(mean)) * data.n_records


def clip_after_average(monkeypatch):
    monkeypatch.setattr(gradient_descent, "ClippedGradient", ClippedAfterTheSum)
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
    monkeypatch.setattr(gradient_descent, "ClippedGradient", SensitivityOfTheMean)
    return _examined(TranscriptTarget.of(LOGISTIC, BUDGET, Neighbours.REPLACE_ONE))


def _with_mechanism(mechanism: type[GaussianMechanism]):
    """Gradient descent as planned, but for the mechanism that adds the noise."""
    target = TranscriptTarget.of(LOGISTIC, BUDGET, Neighbours.REPLACE_ONE)
    (release,) = target.plan.releases
    wrong = replace(release, mechanism=mechanism(release.mechanism.noise))
    return _examined(TranscriptTarget(target.case, replace(target.plan, releases=(wrong,))))


def _examined(target):
    return examine(target, runs=1_000, random_state=0)


def _priced(event, delta=0.01):
    return Claim(compose(event).epsilon(delta), delta, event)
