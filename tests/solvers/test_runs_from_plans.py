"""A plan suffices: a run reads the plan, the problem and the curator, no setting of the solver."""

import ast
import inspect
import math
import textwrap
from dataclasses import replace

import numpy as np
import pytest

from dpglm import Bounds, Budget, Neighbours, solvers
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import PlanMismatch, UnsupportedProblem
from dpglm.losses import Hinge, Logistic
from dpglm.mechanisms import Randomness
from dpglm.mechanisms.sampling import Poisson
from dpglm.penalties import L1, L2, AnyFeature, Cardinality, ElasticNet, L1Ball, Submodular
from dpglm.plan import Plan
from dpglm.problem import Problem

rng = np.random.default_rng(0)
N, P = 200, 5
X = rng.standard_normal((N, P)) * np.linspace(0.2, 1.0, P)
Y = np.sign(X @ rng.standard_normal(P) + 0.3)
ROWS, COLUMNS = Bounds(row_norm=1.0), Bounds(feature=np.linspace(1.0, 2.0, P))
MOMENTS, START = np.linspace(0.1, 0.3, P), np.linspace(-0.2, 0.7, P + 1)

# Every branch that a run takes, with and without noise.
CASES = [
    (solvers.GradientDescent(steps=5), L2(0.1)),
    (solvers.GradientDescent(steps=5, clip=0.2, step_size=0.5, batch_size=20, average=False), L1(0.01)),
    (solvers.GradientDescent(steps=5, clip=0.2), L2(0.1)),
    (solvers.PreconditionedDescent(steps=5), L2(0.1)),
    (solvers.CoordinateDescent(steps=9), L1(0.01)),
    (solvers.CoordinateDescent(steps=9, second_moments=MOMENTS, clip_rule="uniform", periods=2), L1(0.01)),
    (solvers.CoordinateDescent(steps=9, second_moments="even", step_size=0.5), L1(0.01)),
    (solvers.GreedyCoordinateDescent(steps=4), L1(0.01)),
    (
        solvers.GreedyCoordinateDescent(steps=4, second_moments=MOMENTS, warm_start=START, rule="gs-q"),
        L1(0.01),
    ),
    (
        solvers.GreedyCoordinateDescent(steps=2, warm_start=START[:P], release="laplace", step_size=0.5),
        L2(0.1),
    ),
    (solvers.FrankWolfe(), L1Ball(1.0)),
    (solvers.FrankWolfe(steps=6), L1Ball(1.0)),
    (solvers.FrankWolfe(steps=8, step_size=0.3, average=True), L1Ball(2.0)),
    (solvers.DualCoordinateDescent(), L2(0.1)),
    (solvers.DualCoordinateDescent(steps=6, batch_size=40, overlap=0.5), ElasticNet(0.01, 0.1)),
    (solvers.DualFrankWolfe(steps=4), Submodular(0.01, Cardinality(), l2=0.1)),
    (solvers.DualFrankWolfe(steps=4, share=0.7, sparse=False), Submodular(0.01, AnyFeature(), l2=0.1)),
    (solvers.OutputPerturbation(), L2(0.1)),
    (solvers.OutputPerturbation(sparse=False), Submodular(0.01, Cardinality(), l2=0.1)),
    (solvers.ObjectivePerturbation(), L1(0.01)),
    (solvers.ObjectivePerturbation(clip=0.3, quadratic=0.2), L2(0.1)),
]  # fmt: skip
BUDGETS = [Budget(2.0, 1e-4), Budget(math.inf, 0.5)]


def curator(problem, table=X, neighbours=Neighbours.REPLACE_ONE):
    records = as_data(table, Y, problem.bounds, problem.constant(table.shape[1]))
    return Curator(records, neighbours, Randomness(9))


def same(one, other):
    return np.array_equal(one.w, other.w) and (one.steps, one.gap) == (other.steps, other.gap)


@pytest.mark.parametrize("solver", solvers.SOLVERS.values(), ids=solvers.SOLVERS)
def test_no_run_sees_the_settings_of_a_solver(solver):
    run = inspect.getattr_static(solver, "run")
    assert isinstance(run, classmethod)
    body = ast.parse(textwrap.dedent(inspect.getsource(run.__func__)))
    assert not any(isinstance(node, ast.Name) and node.id in ("self", "cls") for node in ast.walk(body))


@pytest.mark.parametrize("budget", BUDGETS, ids=["private", "without noise"])
@pytest.mark.parametrize(("solver", "penalty"), CASES, ids=repr)
def test_a_plan_read_back_from_json_runs_to_the_same_model_bit_for_bit(solver, penalty, budget):
    runs_from_json(solver, Problem(Logistic(), penalty, ROWS), X, budget)


@pytest.mark.parametrize(
    "solver", [solvers.CoordinateDescent(steps=9), solvers.GreedyCoordinateDescent(steps=4)], ids=repr
)
def test_a_plan_with_second_moments_from_the_bounds_runs_from_json_too(solver):
    runs_from_json(solver, Problem(Logistic(), L1(0.01), COLUMNS), X, BUDGETS[0])


@pytest.mark.parametrize("solver", solvers.SOLVERS.values(), ids=solvers.SOLVERS)
def test_the_plan_of_every_registered_solver_runs_from_json_at_its_worst_case(solver):
    case = solver.audit_cases()[0]
    runs_from_json(case.solver, case.problem, X[:, : case.bystanders[0].shape[1]], BUDGETS[0])


def runs_from_json(solver, problem, table, budget):
    plan = solver.plan(problem, *table.shape, budget, Neighbours.REPLACE_ONE)
    first, second = curator(problem, table), curator(problem, table)
    again = solvers.run(Plan.from_json(plan.to_json()), problem, second)
    assert same(solver.run(plan, problem, first), again)
    assert first.spent == second.spent and (second.spent == plan.price or not budget.private)


@pytest.mark.parametrize("budget", BUDGETS, ids=["private", "without noise"])
def test_a_plan_for_a_loss_whose_slope_jumps_runs_from_json_too(budget):
    runs_from_json(solvers.DualCoordinateDescent(), Problem(Hinge(), L2(0.1), ROWS), X, budget)


def test_one_plan_runs_once_for_each_of_its_fits():
    problem = Problem(Logistic(), L2(0.1), ROWS)
    plan = solvers.GradientDescent(steps=3).plan(problem, N, P, BUDGETS[0], Neighbours.ZERO_OUT, fits=3)
    held = curator(problem, neighbours=Neighbours.ZERO_OUT)
    for _ in range(3):
        solvers.run(plan, problem, held)
    assert held.spent == plan.price


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("second_moments", (0.1,) * (P - 1)),
        ("second_moments", (0.1,) * (P - 1) + (0.0,)),
        ("start", (0.1,) * (P - 1)),
        ("start", (0.1,) * (P + 2)),
    ],
    ids=str,
)
def test_declared_values_that_do_not_fit_the_table_are_refused_before_anything_is_released(field, values):
    problem = Problem(Logistic(), L1(0.01), ROWS)
    plan = solvers.GreedyCoordinateDescent(steps=2).plan(problem, N, P, BUDGETS[0], Neighbours.REPLACE_ONE)
    wrong, held = Plan.from_json(replace(plan, **{field: values}).to_json()), curator(problem)
    with pytest.raises(ValueError, match={"start": "warm_start"}.get(field, field)):
        solvers.run(wrong, problem, held)
    assert not held.spent


def test_a_plan_whose_price_is_for_batches_that_its_solver_does_not_draw_is_refused():
    problem = Problem(Logistic(), L2(0.1), ROWS)
    plan = solvers.OutputPerturbation().plan(problem, N, P, BUDGETS[0], Neighbours.REPLACE_ONE)
    cheaper = replace(plan, releases=(replace(plan["minimiser"], sampling=Poisson(0.1)),)).calibrated()
    assert cheaper["minimiser"].mechanism.noise < plan["minimiser"].mechanism.noise
    with pytest.raises(PlanMismatch, match="output perturbation"):
        solvers.run(Plan.from_json(cheaper.to_json()), problem, curator(problem))


def test_a_plan_of_no_registered_solver_is_refused_by_name():
    problem = Problem(Logistic(), L2(0.1), ROWS)
    with pytest.raises(UnsupportedProblem, match="gradient-descent.*got NoneType"):
        solvers.run(None, problem, curator(problem))
