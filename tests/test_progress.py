"""What a fit shows of its progress: shares of its plan, the same for all records."""

import builtins
import io
import sys

import numpy as np
import pytest

from dpglm import LogisticRegression, Stream, progress, solvers

pytestmark = pytest.mark.filterwarnings("ignore:.*random_state.*", "ignore:.*classes.*")

X = np.random.default_rng(0).standard_normal((90, 3)) / 3
Y = np.where(X[:, 0] > 0, 1, -1)


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)


def stream(y=Y):
    return Stream(lambda: ((X[start : start + 40], y[start : start + 40]) for start in (0, 40, 80)), 90, 3)


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def fit(solver, table=None, y=Y, **settings):
    model = LogisticRegression(classes=[-1, 1], solver=solver, random_state=0, **{"verbose": 1} | settings)
    return model.fit(X, y) if table is None else model.fit(table, None)


ALL = [f"{share} % of its" for share in range(10, 101, 10)]


@pytest.mark.parametrize(
    "solver, unit",
    [
        (solvers.GradientDescent(steps=30), "releases"),
        (solvers.GradientDescent(steps=30, batch_size=9), "releases"),
        (solvers.CoordinateDescent(periods=2), "releases"),
        (solvers.GreedyCoordinateDescent(steps=4), "releases"),
        (solvers.ObjectivePerturbation(), "passes"),
        (solvers.OutputPerturbation(), "passes"),
    ],
)
def test_a_fit_shows_each_tenth_of_its_plan_once(solver, unit, at_once, capsys):
    name = fit(solver).plan_.solver
    assert lines(capsys) == [f"{name}: {words} {unit}" for words in ALL]


@pytest.mark.parametrize("table", [stream(), stream(np.ones(90))])
def test_what_is_shown_in_the_end_is_the_same_for_all_records(table, at_once, capsys):
    fit(solvers.ObjectivePerturbation(), table)
    assert lines(capsys) == [f"objective perturbation: {words} passes" for words in ALL]


def test_a_search_shows_nothing_of_how_many_passes_its_records_take(at_once, capsys):
    with progress.shown("search", "passes", 10, exact=False):
        for _ in range(35):
            progress.passed()
        assert lines(capsys) == []
    assert lines(capsys) == [f"search: {words} passes" for words in ALL]


def test_a_fit_without_noise_shows_the_same(at_once, capsys):
    fit(solvers.GradientDescent(), epsilon=np.inf)
    assert lines(capsys) == [f"gradient descent: {words} releases" for words in ALL]


def test_nothing_is_shown_unless_asked_for_or_of_a_short_fit(capsys, monkeypatch):
    fit(solvers.GradientDescent(steps=3))
    assert lines(capsys) == []
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    fit(solvers.GradientDescent(steps=3), verbose=0)
    assert lines(capsys) == []


def test_what_is_given_up_is_not_shown_as_done(at_once, capsys):
    with pytest.raises(KeyboardInterrupt), progress.shown("fit", "releases", 4):
        progress.released(2)
        raise KeyboardInterrupt
    assert lines(capsys)[-1] == "fit: 50 % of its releases"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar_that_vanishes(at_once, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress.shown("fit", "releases", 4):
        progress.released(1)
        # Inside of another bar: some versions of rich refuse it, then lines are shown.
        with progress.shown("inner", "releases", 2):
            progress.released(2)
        progress.released(3)
    written = sys.stderr.getvalue()
    assert "fit" in written and "inner" in written and "100%" in written and "of its releases" in written
    assert written.endswith("\x1b[2K")  # the line is erased


def test_without_rich_a_terminal_shows_lines(at_once, monkeypatch):
    def without_rich(name, *rest):
        if name.startswith("rich"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    real = builtins.__import__
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(builtins, "__import__", without_rich)
    with progress.shown("fit", "releases", 1):
        progress.released(1)
    assert sys.stderr.getvalue().endswith("fit: 100 % of its releases\n")
