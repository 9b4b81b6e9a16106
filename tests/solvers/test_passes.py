"""Which solver runs on which table, how often it reads it, and which one auto takes."""

import warnings

import numpy as np
import pytest

from dpglm import GLMClassifier, LinearSVC, LogisticRegression, Stream, solvers
from dpglm.bounds import Bounds
from dpglm.errors import UnsupportedProblem
from dpglm.penalties import L1, L2, AnyFeature, ElasticNet, L1Ball, Submodular
from dpglm.plan import PassCount, Plan
from dpglm.solvers.base import MOST_PASSES

pytestmark = pytest.mark.filterwarnings("ignore:.*random_state.*")

rng = np.random.default_rng(0)
N, P = 240, 4
X = rng.standard_normal((N, P)) / 3
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] > 0, 1, -1)


class Counted:
    """A stream of several blocks, and how often it was read to its end: once before all passes of a plan."""

    def __init__(self):
        self.reads = 0
        self.stream = Stream(self.read, N, P)

    def read(self):
        for start in range(0, N, 70):
            yield X[start : start + 70], Y[start : start + 70]
        self.reads += 1


def fitted(solver, penalty, table=None, **settings):
    settings = {"epsilon": 2.0, "penalty": penalty, "solver": solver} | settings
    model = GLMClassifier(classes=[-1, 1], random_state=1, **settings)
    return model.fit(X, Y) if table is None else model.fit(table.stream, None)


SERVED = [
    (solvers.GradientDescent(steps=7), L2(0.01)),
    (solvers.GradientDescent(steps=7, batch_size=60), L2(0.01)),
    (solvers.GradientDescent(steps=7, clip=0.5, batch_size=60), L2(0.01)),
    (solvers.PreconditionedDescent(steps=7), L2(0.01)),
    (solvers.GreedyCoordinateDescent(steps=5), ElasticNet(0.001, 0.01)),
    (solvers.GreedyCoordinateDescent(steps=5, second_moments="private"), L1(0.001)),
    (solvers.FrankWolfe(steps=9, selection="gumbel", refresh=0.0), L1Ball(2.0)),
    (solvers.ObjectivePerturbation(), L2(0.01)),
    (solvers.OutputPerturbation(), L2(0.1)),
    (solvers.DualFrankWolfe(steps=2), Submodular(0.01, AnyFeature(), l2=0.1)),
]


@pytest.mark.parametrize("solver, penalty", SERVED)
def test_a_solver_on_a_stream_gives_what_it_gives_in_memory_in_the_passes_it_plans(solver, penalty):
    table = Counted()
    here, there = fitted(solver, penalty, table), fitted(solver, penalty)
    assert np.allclose(here.coef_, there.coef_, rtol=1e-9, atol=1e-12)
    assert here.plan_ == there.plan_
    passes = here.plan_.passes
    assert table.reads == 1 + passes.most if passes.is_exact else table.reads <= 1 + passes.most
    assert f"passes    {passes}\n" in str(here.plan_)
    assert "passes" in here.plan_._repr_html_()
    assert Plan.from_json(here.plan_.to_json()).passes == passes


def test_the_usual_number_of_passes_is_of_the_right_size():
    for penalty in (L2(0.1), L2(0.01), L2(0.001)):
        table = Counted()
        passes = fitted(solvers.ObjectivePerturbation(), penalty, table).plan_.passes
        assert passes.usual / 3 <= table.reads <= 3 * passes.usual


@pytest.mark.parametrize(
    "solver, penalty, missing, others",
    [
        (solvers.CoordinateDescent(), L2(0.1), "columns", "GradientDescent, GreedyCoordinateDescent, O"),
        (solvers.DualCoordinateDescent(), L2(0.1), "rows", "GradientDescent, GreedyCoordinateDescent, O"),
        (
            solvers.FrankWolfe(selection="lazy"), L1Ball(1.0), "rows and columns",
            "GradientDescent, FrankWolfe with its defaults or ObjectivePerturbation",
        ),
    ],
)  # fmt: skip
def test_solvers_that_need_a_resident_table_are_refused(solver, penalty, missing, others):
    table = Counted()
    with pytest.raises(UnsupportedProblem, match=rf"needs .* {missing} at random, Stream .*: use {others}"):
        fitted(solver, penalty, table)
    assert table.reads == 0
    assert fitted(solver, penalty).plan_.passes is None


def test_greedy_steps_without_noise_need_a_resident_table():
    with pytest.raises(UnsupportedProblem, match="columns at random"):
        fitted(solvers.GreedyCoordinateDescent(), L2(0.1), Counted(), epsilon=np.inf)


@pytest.mark.parametrize("selection, steps", [(None, None), (None, 3), ("heap", 3)])
def test_frank_wolfe_without_noise_runs_on_a_stream(selection, steps):
    solver = solvers.FrankWolfe(steps=steps, selection=selection)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three steps are not enough
        here, there = (fitted(solver, L1Ball(1.0), table, epsilon=np.inf) for table in (Counted(), None))
    assert np.allclose(here.coef_, there.coef_, atol=1e-9)
    assert here.plan_.passes is None


def test_defaults_take_fewer_steps_where_each_reads_the_table_anew():
    for solver, penalty in (
        ("frank-wolfe", L1Ball(50.0)),
        ("greedy-coordinate-descent", None),
    ):
        model = GLMClassifier(epsilon=8.0, classes=[-1, 1], penalty=penalty, solver=solver)
        resident, read_anew = (model.plan(10**7, 20, resident=resident) for resident in (True, False))
        assert read_anew.steps == MOST_PASSES < resident.steps
    ball = GLMClassifier(classes=[-1, 1], penalty=L1Ball(1.0), solver="frank-wolfe")
    assert ball.plan(1000, 20).selection == "lazy"
    assert ball.plan(1000, 20, resident=False).selection == "gumbel"


def test_given_steps_have_the_same_plan_for_every_kind_of_table():
    for solver, penalty in (
        (solvers.GradientDescent(steps=8), None),
        (solvers.FrankWolfe(steps=8, selection="gumbel"), L1Ball(50.0)),
        (solvers.GreedyCoordinateDescent(steps=8), None),
    ):
        model = GLMClassifier(epsilon=8.0, classes=[-1, 1], penalty=penalty, solver=solver)
        assert model.plan(10**7, 20) == model.plan(10**7, 20, resident=False)


def test_every_class_of_a_one_vs_rest_fit_takes_its_passes():
    model = GLMClassifier(classes=[0, 1, 2], solver=solvers.GradientDescent(steps=5))
    assert model.plan(1000, 4).passes == PassCount.exactly(24)


def test_auto_plans_the_same_private_fit_on_a_stream():
    for p, bounds, penalty in (
        (4, Bounds(row_norm=1.0), "l2"),
        (400, Bounds(row_norm=1.0), "l2"),
        (400, Bounds(feature=1.0), "l1"),
    ):
        model = LogisticRegression(epsilon=1.0, classes=[-1, 1], bounds=bounds, penalty=penalty)
        assert model.plan(N, p, resident=False) == model.plan(N, p)
    unequal = LogisticRegression(classes=[-1, 1], bounds=Bounds(feature=[1.0, 9.0]), penalty="l1")
    assert unequal.plan(N, 2, resident=False) == unequal.plan(N, 2)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_auto_plans_few_passes_for_any_number_of_records(epsilon):
    model = LogisticRegression(epsilon=epsilon, classes=[-1, 1])
    usual = [model.plan(10**digits, 50, resident=False).passes.usual for digits in (4, 6, 8, 9)]
    assert max(usual) <= 62


def test_a_thousand_billion_records_have_a_plan_and_defaults_that_refuse_say_what_to_give():
    """As docs/scale.md states: the default delta is too small for some prices."""
    n = 10**12

    def plan(solver, **settings):
        model = LogisticRegression(epsilon=1.0, classes=[-1, 1], penalty="l1", solver=solver, **settings)
        return model.plan(n, 50, resident=False)

    narrow = LogisticRegression(epsilon=1.0, classes=[-1, 1]).plan(n, 50, resident=False)
    assert (narrow.solver, narrow.passes.most) == ("Newton", 5)
    assert plan("auto").solver == plan(solvers.GradientDescent()).solver == "gradient descent"
    for solver in (solvers.ObjectivePerturbation(), solvers.GreedyCoordinateDescent()):
        with pytest.raises(ValueError, match="delta must be 0 or at least 1e-20"):
            plan(solver)
        assert plan(solver, delta=1e-15).passes.usual > 100


@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_auto_says_what_works_for_a_loss_whose_slope_jumps(epsilon):
    table = Counted()
    with pytest.raises(UnsupportedProblem, match=r"hinge.*GradientDescent with a step_size.*smoothed_h"):
        LinearSVC(epsilon=epsilon, classes=[-1, 1]).fit(table.stream, None)
    assert table.reads == 0


def test_what_is_said_to_work_for_the_hinge_loss_works():
    steps = solvers.GradientDescent(steps=3, step_size=0.5)
    assert np.isfinite(fitted(steps, L2(0.1), Counted(), loss="hinge").coef_).all()
    assert fitted("auto", L2(0.1), Counted(), loss="smoothed_hinge").plan_.solver == "preconditioned descent"


def test_whether_a_table_is_resident_must_be_said_by_a_bool():
    with pytest.raises(ValueError, match="resident"):
        LogisticRegression(classes=[-1, 1]).plan(N, P, resident="no")


def test_a_number_of_passes_reads_as_what_it_is():
    assert str(PassCount.exactly(1200)) == "1,200"
    assert str(PassCount(60, 3000).times(2)) == "about 120, at most 6,000"
