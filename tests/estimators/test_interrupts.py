"""Ctrl-C ends a fit at once, and nothing of it is left."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from dpglm import GLMRegressor, LogisticRegression, Stream, solvers

pytestmark = pytest.mark.filterwarnings("ignore:.*random_state.*", "ignore:.*target.*")

X = np.random.default_rng(0).standard_normal((60, 3)) / 3
Y = np.where(X[:, 0] > 0, 1, -1)


class Interrupted:
    """A source that is interrupted in the middle of one of its passes."""

    def __init__(self, passes):
        self.reads, self._passes = 0, passes

    def __call__(self):
        self.reads += 1
        yield X[:30], Y[:30]
        if self.reads == self._passes:
            raise KeyboardInterrupt
        yield X[30:], Y[30:]


@pytest.mark.parametrize(
    "solver", ["auto", solvers.GradientDescent(steps=9), solvers.GreedyCoordinateDescent(9)]
)
@pytest.mark.parametrize("estimator", [LogisticRegression(classes=[-1, 1]), GLMRegressor()])
def test_an_interrupted_fit_leaves_no_attribute(estimator, solver):
    model = estimator.__class__(**estimator.get_params()).set_params(solver=solver)
    before, read = dict(vars(model)), Interrupted(passes=4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Stream(read, 60, 3), None)
    assert vars(model) == before
    assert read.reads == 4  # nothing is read after it


def test_an_interrupted_or_failed_fit_leaves_an_earlier_one_as_it_was():
    model = LogisticRegression(classes=[-1, 1]).fit(X[:, :2], Y)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(Stream(Interrupted(passes=3), 60, 3), None)
    with pytest.raises(ValueError):
        model.set_params(solver="no such").fit(X, Y)
    assert vars(model.set_params(solver="auto")) == before


PROGRAM = textwrap.dedent(
    """
    import time
    import numpy as np
    from dpglm import LogisticRegression, Stream, solvers

    X = np.zeros((60, 3))

    def read():
        print("reads", flush=True)
        for start in (0, 30):
            time.sleep(0.05)
            yield X[start : start + 30], np.ones(30)

    model = LogisticRegression(classes=[-1, 1], solver=solvers.GradientDescent(steps=10_000))
    before = dict(vars(model))
    try:
        model.fit(Stream(read, 60, 3), None)
    except KeyboardInterrupt:
        print("interrupted", vars(model) == before, flush=True)
    """
)


def test_a_signal_ends_a_fit_at_once():
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "reads\n"
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=300)[0].splitlines()
        finally:
            process.kill()
    assert said[-1] == "interrupted True"
    assert said.count("reads") <= 20
