"""DP-SCD and SEQ DP-SCD as they were published, with what a visible batch really costs.

Both add noise to the dual variables of a batch as well as to v = X alpha. The published price uses that an
adversary does not know the batch, but alpha changes nowhere else: whoever sees it sees the batch. So there
is no gain from sampling. Batches here are those of shuffled epochs: a record takes part in exactly one
step of each epoch, and in E epochs it is in E Gaussian releases, whose exact price is that of one with the
root of E times the sensitivity.

Not for use: the generator is NumPy's, and noise is floating-point noise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpglm.accounting import gaussian_mu
from dpglm.kernels.arguments import DualVariables, Form
from dpglm.losses import Squared
from dpglm.queries import DualForm

if TYPE_CHECKING:
    from scd_problems import Task, Vector

DELTA = 1e-3


def published(task: Task, share: float, epochs: int, clip: float, epsilon: float, seed: int) -> Vector:
    """Algorithm 1: the steps of a batch are independent; sensitivity sqrt(2) C for zero-out."""
    deviation = math.sqrt(2 * epochs) * clip / _mu(epsilon)
    return _run(task, share, epochs, clip, lambda batch: deviation, seed, one_by_one=False)


def sequential(task: Task, share: float, epochs: int, clip: float, epsilon: float, seed: int) -> Vector:
    """The steps of a batch one after the other; sensitivity 2 C sqrt(L (L + 1))."""
    deviation = 2 * math.sqrt(epochs) * clip / _mu(epsilon)
    return _run(
        task,
        share,
        epochs,
        clip,
        lambda batch: deviation * math.sqrt(batch * (batch + 1)),
        seed,
        one_by_one=True,
    )


def without_noise(task: Task, epochs: int, seed: int) -> list[Vector]:
    """Sequential steps without clip or noise: the coefficients after each epoch."""
    rng, n = np.random.default_rng(seed), task.shape[0]
    state = _State(task)
    kept = []
    for _ in range(epochs):
        state.one_by_one(rng.permutation(n), math.inf)
        kept.append(state.w.copy())
    return kept


def _mu(epsilon: float) -> float:
    return gaussian_mu(epsilon, DELTA) if math.isfinite(epsilon) else math.inf


class _State:
    """Dual variables, v and w = v / (strength n)."""

    def __init__(self, task: Task) -> None:
        n, p = task.shape
        self.task, self.records = task, task.records
        self.alpha, self.v, self.w = np.zeros(n), np.zeros(p), np.zeros(p)
        self.form = DualForm(n, *task.problem.coordinate_form(p))
        self.single = np.full(n, 1 / (n * task.strength))

    def together(self, batch: Vector, clip: float) -> None:
        task, y = self.task, self.records.y[batch]
        X = task.train.X[batch]
        weight = np.full(len(batch), len(batch) / (task.shape[0] * task.strength))
        moves = np.clip(task.loss.dual_step(self.alpha[batch], X @ self.w, y, weight), -clip, clip)
        self.alpha[batch] += moves
        self.v += X.T @ moves

    def one_by_one(self, batch: Vector, clip: float) -> None:
        loss, records = self.task.loss, self.records
        limit = np.full(records.n_records, clip)
        variables = DualVariables(records.y, self.single, limit, self.alpha)
        records.ascend(Form.of(loss), variables, self.v, self.w, self.form.compiled, batch.copy())

    def perturb(self, batch: Vector, deviation: float, rng: np.random.Generator) -> None:
        """Noise on the batch's dual variables, which are then put back into their range, and on v."""
        alpha = self.alpha[batch] + deviation * rng.standard_normal(len(batch))
        if not isinstance(self.task.loss, Squared):
            y = self.records.y[batch]
            alpha = y * np.clip(y * alpha, 0, 1)
        self.alpha[batch] = alpha
        self.v += deviation * rng.standard_normal(len(self.v))
        self.w = self.v / (self.task.strength * self.task.shape[0])


def _run(task, share, epochs, clip, deviation, seed, one_by_one) -> Vector:  # noqa: ANN001
    """Mean of the last quarter of the iterates."""
    rng, n = np.random.default_rng(seed), task.shape[0]
    state, parts = _State(task), max(1, round(1 / share))
    steps = epochs * parts
    kept, first_kept = np.zeros(task.shape[1]), steps - math.ceil(steps / 4)
    largest = math.ceil(n / parts)
    for epoch in range(epochs):
        for k, batch in enumerate(np.array_split(rng.permutation(n), parts)):
            (state.one_by_one if one_by_one else state.together)(batch, clip)
            state.perturb(batch, deviation(largest), rng)
            if epoch * parts + k >= first_kept:
                kept += state.w
    return kept / (steps - first_kept)
