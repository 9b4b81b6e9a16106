"""The fits of different classes share records, and nothing of their noise."""

import numpy as np
import pytest

from dpglm import GLMClassifier
from dpglm.estimators.classifiers import LogisticRegression
from dpglm.fit import session
from dpglm.penalties import L2, L1Ball
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    FrankWolfe,
    GradientDescent,
    ObjectivePerturbation,
    OutputPerturbation,
)

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

P, RIDGE = 400, L2(0.1)
SOLVERS = [
    GradientDescent(steps=1, average=False),
    GradientDescent(steps=2, average=False, batch_size=20),
    CoordinateDescent(),
    DualCoordinateDescent(),
    OutputPerturbation(),
    ObjectivePerturbation(quadratic=1.0),
]


def noise_of_classes(solver, random_state, penalty=RIDGE):
    """Coefficients of three classes on a table of zeros, where they are nothing but noise.

    No record is of the first two classes, so the targets of their fits are equal.
    """
    model = GLMClassifier(
        1.0, penalty=penalty, solver=solver, classes=[0, 1, 2], delta=1e-3,
        fit_intercept=False, random_state=random_state,
    )  # fmt: skip
    return model.fit(np.zeros((50, P)), np.full(50, 2)).coef_


@pytest.mark.parametrize("random_state", [3, None], ids=["seeded", "keyed"])
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_the_noise_of_two_classes_is_independent(solver, random_state):
    """The variance of a difference is the sum of both: within 6.6 deviations of the correlation of noise."""
    noise = noise_of_classes(solver, random_state)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        both = np.flatnonzero((noise[first] != 0) & (noise[second] != 0))
        assert len(both) > P / 4
        a, b = noise[first][both], noise[second][both]
        assert abs(np.mean((a - b) ** 2) / np.mean(a**2 + b**2) - 1) < 6.6 / np.sqrt(len(both))
        assert np.mean(a == b) < 0.02


def test_selections_of_two_classes_are_independent():
    """All features have the same score: choices of 40 steps among 800 vertices hardly meet by chance."""
    chosen = noise_of_classes(FrankWolfe(steps=40), 5, L1Ball(1.0)) != 0
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert chosen[first].sum() >= 30
        assert (chosen[first] & chosen[second]).sum() <= 20


def test_every_class_reads_on_in_one_stream(monkeypatch):
    """One source of randomness is made for a fit, whatever the number of classes."""
    made = []

    kept = session.Randomness
    monkeypatch.setattr(session, "Randomness", lambda *seed: made.append(seed) or kept(*seed))
    LogisticRegression(1.0, classes=[0, 1, 2, 3]).fit(np.zeros((30, 2)), np.zeros(30))
    assert made == [()]
