"""Output perturbation, objective perturbation and dual Frank-Wolfe: plans, optima without noise, zeros."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn import linear_model

from dpglm import Bounds, Budget, Neighbours
from dpglm.audit.transcript import Recorder, Replayer
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Hinge, Huber, Logistic, Poisson, SmoothedHinge, Squared
from dpglm.mechanisms import Exponential, Gaussian, LinearTerm, Randomness
from dpglm.penalties import L1, L2, Box, ElasticNet, L1Ball, Submodular, Zero
from dpglm.penalties.set_functions import AnyFeature, Cardinality, GroupCover
from dpglm.privacy import PUBLIC_SIZE
from dpglm.problem import Problem
from dpglm.solvers import DualFrankWolfe, ObjectivePerturbation, OutputPerturbation
from dpglm.solvers.perturbation import minimiser
from dpglm.testing import check_solver

rng = np.random.default_rng(0)
N, P = 300, 5
X = rng.standard_normal((N, P)) * np.linspace(0.2, 0.8, P)
SIGNAL = X @ np.array([2.0, -1.0, 0.0, 1.5, 0.0])
LABELS = np.where(SIGNAL + 0.5 * rng.standard_normal(N) > 0.1, 1.0, -1.0)
TARGET = np.clip(SIGNAL + 0.5 + 0.3 * rng.standard_normal(N), -3, 3)
BALL, WIDE = Bounds(row_norm=1.0), Bounds(row_norm=4.0, target=(-3, 3))
BUDGET, FREE = Budget(1.0, 1e-6), Budget(math.inf, 1e-6)
REPLACE, ZERO = Neighbours.REPLACE_ONE, Neighbours.ZERO_OUT
GROUPS = GroupCover([[0, 1], [1, 2], [3, 4]])
ANY, COVER = Submodular(0.01, AnyFeature(), l2=0.05), Submodular(0.01, GROUPS, l2=0.05)
CASES = {
    "output": (OutputPerturbation(), L2(0.01)),
    "output, clip": (OutputPerturbation(clip=0.2), ElasticNet(0.0, 0.1)),
    "output, norm": (OutputPerturbation(sparse=False), COVER),
    "objective": (ObjectivePerturbation(), L2(0.01)),
    "objective, no L2 part": (ObjectivePerturbation(clip=0.3), Zero()),
    "objective, given": (ObjectivePerturbation(quadratic=0.2), L2(0.05)),
    "dual, vertices": (DualFrankWolfe(steps=4, sparse=False), ANY),
    "dual, gradients": (DualFrankWolfe(steps=4, sparse=False), COVER),
    "dual, elastic net": (DualFrankWolfe(steps=2, sparse=False), ElasticNet(0.01, 0.05)),
}


def solved(solver, problem, table, y, budget=BUDGET, seed=0, neighbours=REPLACE, factor=1.0):
    """The result of a plan whose noise is multiplied."""
    plan = solver.plan(problem, *table.shape, budget, neighbours)
    plan = replace(plan, releases=tuple(release.scaled(factor) for release in plan.releases))
    records = as_data(table, y, problem.bounds, problem.constant(table.shape[1]))
    curator = Curator(records, neighbours, Randomness(seed))
    result = solver.run(plan, problem, curator)
    assert not budget.private or factor != 1.0 or curator.spent == plan.price
    return result


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_contract_of_solvers_holds(name, fit_intercept):
    solver, penalty = CASES[name]
    plan = check_solver(solver, Problem(Logistic(), penalty, BALL, fit_intercept), X, LABELS)
    kinds = {"output": [Gaussian], "objective": [LinearTerm], "dual": [Gaussian]}
    expected = [Exponential, Gaussian] if name == "dual, vertices" else kinds[name.split(",")[0]]
    assert [type(release.mechanism) for release in plan.releases] == expected


@pytest.mark.parametrize("name", CASES)
def test_layouts_give_the_same_model(name):
    """Up to 1e-6: sums in another order take another way to the minimiser, which ends within a tolerance."""
    solver, penalty = CASES[name]
    problem = Problem(Logistic(), penalty, BALL)
    forms = (np.array, np.asfortranarray, sp.csr_array, sp.csc_matrix)
    models = [solved(solver, problem, form(X), LABELS).w for form in forms]
    for other in models[1:]:
        assert np.allclose(models[0], other, rtol=1e-6, atol=1e-6 * np.abs(models[0]).max())
    single = solved(solver, problem, X.astype(np.float32), LABELS).w
    assert np.allclose(models[0], single, rtol=1e-4, atol=1e-4 * np.abs(models[0]).max())


@pytest.mark.filterwarnings("ignore:the quadratic term that the budget asks for")
@pytest.mark.parametrize(
    "loss", [Squared(), Huber(), SmoothedHinge(), Poisson(3.0)], ids=lambda one: one.name
)
@pytest.mark.parametrize("name", ["output", "objective", "dual, vertices", "dual, gradients"])
def test_every_smooth_loss_can_be_fitted(name, loss):
    solver, penalty = CASES[name]
    bounds = Bounds(row_norm=1.0, target=None if loss.kind == "classification" else (0, 3))
    for epsilon in (0.01, 100.0):
        result = solved(solver, Problem(loss, penalty, bounds), X, np.abs(LABELS), Budget(epsilon, 1e-6))
        assert np.isfinite(result.w).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "solver", [OutputPerturbation(clip=0.01), ObjectivePerturbation(clip=0.01)], ids=repr
)
def test_without_a_budget_they_reach_the_optimum_of_scikit_learn(solver, fit_intercept):
    for loss, y, reference in (
        (Squared(), TARGET, linear_model.Ridge(0.02 * N, solver="svd", fit_intercept=fit_intercept)),
        (Logistic(), LABELS, linear_model.LogisticRegression(
            C=50 / N, tol=1e-10, max_iter=10_000, fit_intercept=fit_intercept)),
    ):  # fmt: skip
        problem = Problem(loss, L2(0.02), Bounds(row_norm=math.inf), fit_intercept)
        w = solved(solver, problem, X, y, FREE).w
        reference.fit(X, y)
        other = np.append(reference.coef_, np.ravel(reference.intercept_)[: int(fit_intercept)])
        assert np.allclose(w, other, atol=2e-5)


@pytest.mark.parametrize("solver", [OutputPerturbation(), ObjectivePerturbation(), DualFrankWolfe(steps=1)],
                         ids=repr)  # fmt: skip
@pytest.mark.parametrize("penalty", [ANY, COVER], ids=["any", "groups"])
def test_without_a_budget_they_reach_the_optimum_of_a_structured_norm(solver, penalty):
    problem = Problem(Squared(), penalty, Bounds(row_norm=math.inf))
    w = solved(solver, problem, X, TARGET, FREE).w
    groups = [[0, 1, 2, 3, 4]] if penalty is ANY else GROUPS.groups
    # As a smooth problem: |w_j| <= a_g for every group of j, and their sum is the norm.
    size = P + 1 + len(groups)

    def value(v):
        z = X @ v[:P] + v[P]
        smooth = np.square(z - TARGET).mean() / 2 + 0.025 * v[:P] @ v[:P]
        grad = np.zeros(size)
        grad[:P], grad[P] = X.T @ (z - TARGET) / N + 0.05 * v[:P], (z - TARGET).mean()
        grad[P + 1 :] = 0.01
        return smooth + 0.01 * v[P + 1 :].sum(), grad

    rows = []
    for k, group in enumerate(groups):
        for j in group:
            for sign in (1, -1):
                row = np.zeros(size)
                row[P + 1 + k], row[j] = 1.0, sign
                rows.append(row)
    rows = np.array(rows)
    limits = {"type": "ineq", "fun": lambda v: rows @ v, "jac": lambda v: rows}
    best = minimize(value, np.zeros(size), jac=True, method="SLSQP", constraints=limits,
                    options={"ftol": 1e-14, "maxiter": 500})  # fmt: skip
    assert np.allclose(w, best.x[: P + 1], atol=1e-4)


# Dual Frank-Wolfe without noise.


@pytest.mark.parametrize(
    "penalty",
    [Submodular(0.3, AnyFeature(), l2=0.05), Submodular(0.03, GROUPS, l2=0.05), ElasticNet(0.03, 0.05)],
    ids=["any", "groups", "elastic net"],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dual_frank_wolfe_without_noise_comes_to_the_primal_optimum_as_steps_grow(penalty, fit_intercept):
    problem = Problem(Squared(), penalty, WIDE, fit_intercept)
    clip = 40.0  # nothing is clipped
    start = problem.start(P)
    query = minimiser(problem, N, P, clip)
    records = as_data(X, TARGET, WIDE, problem.constant(P))
    best = query(records, np.zeros_like(start), start)
    strength = query.strength

    def above(w):
        held = strength / 2 * (w[P] - start[P]) ** 2 if fit_intercept else 0.0
        return np.square(records.dot(w) - TARGET).mean() / 2 + penalty.value(w[:P]) + held

    gaps = {}
    for steps in (4, 16, 64):
        solver = DualFrankWolfe(steps=steps, clip=clip, sparse=False)
        w = solved(solver, problem, X, TARGET, factor=0.0).w
        gaps[steps] = above(w) - above(best)
        assert np.linalg.norm(w - best) ** 2 <= 2 * gaps[steps] / strength + 1e-9
    assert all(gap >= -1e-9 for gap in gaps.values())
    assert gaps[4] > 0
    # A rate of 1 / steps: 16 times as many steps, and a gap that is at least 10 times smaller.
    assert gaps[64] <= max(gaps[4] / 10, 1e-7)
    # What Frank-Wolfe promises: 2 * diameter² / strength over steps + 2.
    diameter = 2 * 0.03 * 2.3 if penalty.strong_convexity and not isinstance(penalty, Submodular) else 0.6
    assert all(gap <= 2 * diameter**2 / strength / (steps + 2) for steps, gap in gaps.items())


# Objective perturbation without noise.


def test_objective_perturbation_without_noise_minimises_the_clipped_loss_and_its_quadratic_term():
    problem = Problem(Squared(), ElasticNet(0.02, 0.01), WIDE)
    solver = ObjectivePerturbation(clip=0.8, quadratic=0.07)
    start, records = problem.start(P), as_data(X, TARGET, WIDE, problem.constant(P))
    limit = 0.8 / np.linalg.norm(np.column_stack([X, np.full(N, 2.0)]), axis=1)

    def value(v):
        w = np.append(v[:P] - v[P : 2 * P], v[-1])
        residual = records.dot(w) - TARGET
        cut = np.minimum(np.abs(residual), limit)
        loss = (cut * (np.abs(residual) - cut / 2)).mean()
        slopes = records.t_dot(np.clip(residual, -limit, limit)) / N
        strength = np.append(np.full(P, 0.08), 0.08)
        moved = w - np.append(np.zeros(P), start[-1])
        grad = slopes + strength * moved
        total = loss + strength @ moved**2 / 2 + 0.02 * v[: 2 * P].sum()
        return total, np.concatenate([grad[:P] + 0.02, -grad[:P] + 0.02, grad[P:]])

    best = minimize(value, np.append(np.zeros(2 * P), start[-1]), jac=True, method="L-BFGS-B",
                    bounds=[(0, None)] * (2 * P) + [(None, None)],
                    options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 5000})  # fmt: skip
    best = np.append(best.x[:P] - best.x[P : 2 * P], best.x[-1])
    distances = [
        np.linalg.norm(solved(solver, problem, X, TARGET, factor=factor).w - best)
        for factor in (1.0, 1e-2, 1e-4, 0.0)
    ]
    assert distances[0] > 1e-3 > 1e-4 > distances[2] and distances[3] < 1e-5
    assert distances[0] > 10 * distances[1] > 100 * distances[2] or distances[2] < 1e-5


@pytest.mark.parametrize("solver", [OutputPerturbation(), ObjectivePerturbation()], ids=repr)
def test_the_noise_of_the_model_is_what_the_plan_says(solver):
    """No record tells anything: the model is noise alone."""
    problem = Problem(Logistic(), L2(0.2), BALL, fit_intercept=False)
    solver = replace(solver, clip=0.3)
    ends = np.array([solved(solver, problem, np.zeros((20, 16)), np.ones(20), seed=s).w for s in range(100)])
    plan = solver.plan(problem, 20, 16, BUDGET, REPLACE)
    if isinstance(solver, OutputPerturbation):
        expected = plan.releases[0].mechanism.noise * minimiser(problem, 20, 16, 0.3).sensitivity(REPLACE)
    else:
        expected = plan.deviation / (0.2 + plan.quadratic)
    assert abs(ends.std() / expected - 1) < 6 / math.sqrt(2 * ends.size)


@pytest.mark.parametrize("name", CASES)
def test_zero_out_needs_half_the_noise_of_replace_one(name):
    solver, penalty = CASES[name]
    solver = replace(solver, clip=0.3)
    problem = Problem(Logistic(), penalty, BALL)
    plans = {relation: solver.plan(problem, N, P, BUDGET, relation) for relation in Neighbours}
    noise = {}
    for relation, plan in plans.items():
        query = minimiser(problem, N, P, 0.3, getattr(plan, "quadratic", 0.0) or float(penalty is Zero()))
        unit = relation.records_moved if name.startswith("objective") else query.sensitivity(relation)
        noise[relation] = plan.releases[-1].mechanism.noise * unit
    ratio = noise[REPLACE] / noise[ZERO]
    if name.startswith("objective"):
        assert 1.8 < ratio < 2.6  # the determinant costs, too, and the quadratic terms are not the same
    else:
        assert ratio == pytest.approx(2, rel=1e-3)


# Zeros.

PAIRS = GroupCover([[2 * k, 2 * k + 1] for k in range(10)])


@pytest.mark.parametrize(
    ("solver", "penalty", "epsilon"),
    [
        (OutputPerturbation(), ElasticNet(0.01, 0.5), 2.0),
        (OutputPerturbation(), Submodular(0.01, Cardinality(), l2=0.5), 2.0),
        (OutputPerturbation(), Submodular(0.01, PAIRS, l2=0.5), 2.0),
        # A norm too weak to make zeros itself, and more noise than a sample's own accidents.
        (DualFrankWolfe(), ElasticNet(0.0001, 0.5), 0.3),
        (DualFrankWolfe(), Submodular(0.0001, PAIRS, l2=0.5), 0.3),
        (ObjectivePerturbation(), L1(0.01), 2.0),
        (ObjectivePerturbation(), Submodular(0.01, PAIRS), 2.0),
    ],
    ids=str,
)
def test_coefficients_of_pure_noise_are_0_and_strong_ones_are_kept(solver, penalty, epsilon):
    draw = np.random.default_rng(3)
    table = draw.choice([-0.2, 0.2], (20_000, 20))
    y = np.where(10 * (table[:, 0] + table[:, 1]) + draw.logistic(size=20_000) > 0, 1.0, -1.0)
    problem = Problem(Logistic(), penalty, BALL, fit_intercept=False)
    w = solved(solver, problem, table, y, Budget(epsilon, 1e-6)).w
    assert (w[:2] > 0).all() and np.count_nonzero(w[2:]) <= 4
    if not isinstance(solver, ObjectivePerturbation):
        dense = solved(replace(solver, sparse=False), problem, table, y, Budget(epsilon, 1e-6)).w
        assert np.count_nonzero(dense) >= 16 and np.array_equal(dense[w != 0], w[w != 0])


def test_without_a_norm_no_coefficient_is_set_to_0():
    problem = Problem(Logistic(), L2(0.1), BALL)
    for solver in (OutputPerturbation(), ObjectivePerturbation()):
        assert np.count_nonzero(solved(solver, problem, np.zeros((50, P)), np.ones(50)).w) == P + 1


# What is public depends on no record.


@pytest.mark.parametrize("name", CASES)
def test_another_table_that_is_given_the_same_releases_gets_the_same_model(name):
    solver, penalty = CASES[name]
    if hasattr(solver, "sparse"):
        solver = replace(solver, sparse=True)
    problem = Problem(Logistic(), penalty, BALL)
    plan = solver.plan(problem, N, P, BUDGET, REPLACE)
    first, second = (
        as_data(rows, labels, BALL, problem.constant(P))
        for rows, labels in ((X, LABELS), (np.full_like(X, np.nan), -LABELS))
    )
    recorder = Recorder(first, REPLACE, Randomness(2))
    here = solver.run(plan, problem, recorder)
    kept = [np.array(value) for value in recorder.transcript.released]
    replayer = Replayer(second, recorder)
    there = solver.run(plan, problem, replayer)
    assert np.array_equal(here.w, there.w) and here.steps == there.steps == plan.steps
    assert here.gap is there.gap is None
    assert recorder.spent == replayer.spent == plan.price
    for before, after in zip(kept, recorder.transcript.released, strict=True):
        assert np.array_equal(before, after)


def test_what_is_set_to_0_afterwards_is_in_the_transcript_as_it_was_released():
    problem = Problem(Logistic(), Submodular(0.01, Cardinality(), l2=0.05), BALL, fit_intercept=False)
    solver = OutputPerturbation()
    plan = solver.plan(problem, N, P, BUDGET, REPLACE)
    recorder = Recorder(as_data(X, LABELS, BALL), REPLACE, Randomness(0))
    w = solver.run(plan, problem, recorder).w
    assert np.count_nonzero(w) < P == np.count_nonzero(recorder.transcript.numbers)


# What is refused.


@pytest.mark.parametrize(
    "solver", [OutputPerturbation(), ObjectivePerturbation(), DualFrankWolfe()], ids=repr
)
@pytest.mark.parametrize("budget", [BUDGET, FREE], ids=["private", "free"])
def test_a_loss_that_jumps_is_refused(solver, budget):
    with pytest.raises(UnsupportedProblem, match="hinge has none.*DualCoordinateDescent"):
        solver.plan(Problem(Hinge(), ANY, BALL), N, P, budget, REPLACE)


@pytest.mark.parametrize("penalty", [Zero(), L1(0.1), Box(-1, 1), L1Ball(1.0), Submodular(0.1, AnyFeature())])
def test_output_perturbation_without_an_l2_part_is_refused_with_the_way_out(penalty):
    with pytest.raises(UnsupportedProblem, match="L2 part.*ElasticNet"):
        OutputPerturbation().plan(Problem(Logistic(), penalty, BALL), N, P, BUDGET, REPLACE)


def test_dual_frank_wolfe_is_for_norms_with_an_l2_part():
    for penalty in (L2(0.1), L1(0.1), L1Ball(1.0), Zero()):
        with pytest.raises(UnsupportedProblem, match=f"norm with an L2 part.*{type(penalty).__name__}"):
            DualFrankWolfe().plan(Problem(Logistic(), penalty, BALL), N, P, BUDGET, REPLACE)
    for penalty in (Submodular(0.1, AnyFeature()), ElasticNet(0.1, 0.0)):
        with pytest.raises(UnsupportedProblem, match="L2 part"):
            DualFrankWolfe().plan(Problem(Logistic(), penalty, BALL), N, P, BUDGET, REPLACE)


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_a_quadratic_term_too_weak_for_the_budget_is_named(neighbours):
    problem = Problem(Logistic(), L2(1e-6), BALL)
    with pytest.raises(UnsupportedProblem, match="ObjectivePerturbation cannot.*quadratic term of 1e-05"):
        ObjectivePerturbation(quadratic=1e-5).plan(problem, N, P, Budget(0.1, 1e-6), neighbours)
    with pytest.raises(UnsupportedProblem, match="L2 part"):
        ObjectivePerturbation(quadratic=0.0).plan(
            Problem(Logistic(), L1(0.1), BALL), N, P, BUDGET, neighbours
        )


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [10, 1_000_000])
def test_the_quadratic_term_that_is_chosen_always_serves(n, epsilon):
    for loss, bounds in ((Logistic(), BALL), (Squared(), Bounds(row_norm=3.0, target=(0, 10)))):
        plan = ObjectivePerturbation().plan(
            Problem(loss, L1(0.01), bounds), n, 10, Budget(epsilon, 1e-7), REPLACE
        )
        assert plan.quadratic > 0 and plan.epsilon <= epsilon


@pytest.mark.parametrize("name", ["output", "objective", "dual, vertices", "dual, gradients"])
def test_unbounded_slopes_need_a_clip(name):
    solver, penalty = CASES[name]
    problem = Problem(Squared(), penalty, BALL)
    with pytest.raises(UnsupportedProblem, match="clip"):
        solver.plan(problem, N, P, BUDGET, REPLACE)
    assert np.isfinite(solved(replace(solver, clip=0.5), problem, X, TARGET).w).all()


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        (OutputPerturbation, {"clip": 0.0}), (OutputPerturbation, {"clip": math.inf}),
        (ObjectivePerturbation, {"clip": math.nan}), (ObjectivePerturbation, {"quadratic": -1.0}),
        (ObjectivePerturbation, {"quadratic": math.nan}), (ObjectivePerturbation, {"quadratic": math.inf}),
        (DualFrankWolfe, {"steps": 0}), (DualFrankWolfe, {"steps": 2.5}), (DualFrankWolfe, {"share": 1.0}),
        (DualFrankWolfe, {"share": 0.0}), (DualFrankWolfe, {"clip": -1.0}),
    ],
    ids=str,
)  # fmt: skip
def test_settings_without_sense_are_refused_by_name(kind, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        kind(**setting)


# Objective perturbation of the primal problem and its dual.


def dual_solution(rows, y, linear, norm, ridge):
    """The s in the dual ball that is best for squared loss + ridge with a linear term, by projected steps."""
    n = len(y)
    hessian = rows.T @ rows / n + ridge * np.eye(rows.shape[1])
    pull = rows.T @ y / n

    def theta(s):
        return np.linalg.solve(hessian, pull - s - linear)

    step = 1 / np.linalg.norm(np.linalg.inv(hessian), 2)
    s, ahead, momentum = np.zeros_like(pull), np.zeros_like(pull), 1.0
    for _ in range(20_000):
        forward = ahead + step * theta(ahead)
        # Moreau: the projection on the ball is what the proximal step takes away.
        new = forward - norm.function.prox(forward, norm.strength)
        if np.linalg.norm(new - ahead) < 1e-14:
            break
        momentum, before = (1 + math.sqrt(1 + 4 * momentum**2)) / 2, momentum
        ahead = new + (before - 1) / momentum * (new - s)
        s = new
    value = np.square(y).mean() / 2 - (pull - s - linear) @ theta(s) / 2
    return s, theta(s), value


@pytest.mark.parametrize("name", ["any", "groups", "cardinality"])
def test_a_linear_term_in_the_primal_problem_moves_the_argument_of_its_dual(name):
    """Proposition 2: min loss + norm + b · theta is max of -conjugate(-(s + b)) over the dual ball."""
    function = {"any": AnyFeature(), "groups": GROUPS, "cardinality": Cardinality()}[name]
    norm = Submodular(0.1, function, l2=0.05)
    problem = Problem(Squared(), norm, WIDE, fit_intercept=False)
    query = replace(minimiser(problem, N, P, 100.0), push=1.0)
    records = as_data(X, TARGET, WIDE)
    draw = np.random.default_rng(4)
    for _ in range(5):
        b = 0.1 * draw.standard_normal(P)
        primal = query(records, b, np.zeros(P))
        s, theta, dual = dual_solution(X, TARGET, b, norm, norm.l2)
        assert norm.dual_norm(s) <= norm.strength * (1 + 1e-9)
        assert np.allclose(theta, primal, atol=1e-5)
        assert s @ theta == pytest.approx(norm.strength * function.norm(theta), abs=1e-7)
        value = np.square(X @ primal - TARGET).mean() / 2 + norm.value(primal) + b @ primal
        assert value == pytest.approx(dual, abs=1e-8)
        # And the other way round: theta(s + b) of the loss with its L2 part alone.
        bare = replace(query, penalty=L2(norm.l2), push=10.0)
        assert np.allclose(bare(records, s + b, np.zeros(P)), primal, atol=1e-5)


def test_the_dual_optimum_with_the_linear_term_is_not_the_one_without_it_plus_noise():
    """Read as s + b = s_without + b the proposition is wrong: the ball cuts what b moves."""
    norm = Submodular(0.1, Cardinality(), l2=1.0)
    nothing = np.zeros((1, 1))
    without, *_ = dual_solution(nothing, np.zeros(1), np.zeros(1), norm, 1.0)
    for b in (0.05, 0.3):
        s, theta, _ = dual_solution(nothing, np.zeros(1), np.array([b]), norm, 1.0)
        assert without == pytest.approx(0)
        # s answers to b as far as the ball lets it: theta is soft-thresholded, not shifted by the whole b.
        assert s == pytest.approx(-min(b, 0.1))
        assert theta == pytest.approx(-max(b - 0.1, 0.0))
        assert abs((s + b) - (without + b))[0] == pytest.approx(min(b, 0.1))
        as_noise_after = -(without + b)
        assert abs(as_noise_after - theta)[0] == pytest.approx(min(b, 0.1))


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("clip", "reach"), [(0.25, 4.0), (None, None), (50.0, 1.0)])
@pytest.mark.parametrize(
    ("loss", "smoothness", "slopes"),
    [(Logistic(), 0.25, "logistic"), (SmoothedHinge(0.5), 2.0, "signed"), (Squared(), 1.0, "any")],
    ids=lambda value: str(value),
)
def test_the_linear_term_is_priced_for_the_objective(
    loss, smoothness, slopes, clip, reach, fit_intercept, neighbours
):
    bounds = Bounds(row_norm=1.0, target=(-3, 3)) if slopes == "any" else BALL
    problem = Problem(loss, L2(0.05), bounds, fit_intercept)
    plan = ObjectivePerturbation(clip=clip, quadratic=0.2).plan(problem, N, P, BUDGET, neighbours)
    mechanism, square = plan.releases[0].mechanism, 1.25 if fit_intercept else 1.0  # the constant is a half
    assert mechanism.curvature == pytest.approx(smoothness * square / (N * 0.25))
    assert (mechanism.slopes, mechanism.neighbours) == (slopes, neighbours.value)
    if slopes != "any" and clip is not None:
        assert mechanism.reach == pytest.approx(max(reach * math.sqrt(square), 1.0) if clip < 1 else 1.0)
        assert plan.clip == pytest.approx(min(clip, math.sqrt(square)))


def test_a_plan_for_another_objective_is_refused_at_the_run():
    weak, strong = (Problem(Logistic(), L2(l2), BALL, fit_intercept=False) for l2 in (0.02, 50.0))
    solver = ObjectivePerturbation(quadratic=0.0)
    plan = solver.plan(strong, N, P, BUDGET, ZERO)
    with pytest.raises(ValueError, match="another objective"):
        solver.run(plan, weak, Curator(as_data(X, LABELS, BALL), ZERO, Randomness(0)))


def test_a_plan_whose_minimiser_cannot_be_found_is_refused_before_any_record_is_read():
    far = Problem(Squared(), L2(0.1), Bounds(row_norm=1.0, target=(1e15, 1e15 + 1)))
    with pytest.raises(UnsupportedProblem, match="double precision"):
        ObjectivePerturbation().plan(far, N, P, BUDGET, REPLACE)


def test_the_share_of_selections_is_what_is_left_of_the_other():
    problem = Problem(Logistic(), ANY, BALL)
    for share in (0.2, 0.8):
        choices, theta = DualFrankWolfe(steps=9, share=share).plan(problem, N, P, BUDGET, ZERO).releases
        ratio = choices.mechanism.noise / theta.mechanism.noise
        assert ratio == pytest.approx(math.sqrt(9 * (1 - share) / share))


@pytest.mark.parametrize(("penalty", "deviations"), [(COVER, None), (ANY, 1.0)], ids=["groups", "any"])
def test_what_noise_could_have_made_is_judged_by_the_noise_that_is_there(penalty, deviations, monkeypatch):
    seen = []
    monkeypatch.setattr(
        Submodular, "support", lambda self, w, noise: seen.append(noise) or np.ones(len(w), dtype=bool)
    )
    solver, problem = DualFrankWolfe(steps=7), Problem(Logistic(), penalty, BALL)
    plan = solver.plan(problem, N, P, BUDGET, REPLACE)
    solver.run(plan, problem, Curator(as_data(X, LABELS, BALL, 0.5), REPLACE, Randomness(0)))
    one = plan.releases[-1].mechanism.noise * 2 * plan.clip / (N * 0.05)
    weights = 2 * np.arange(1, 8) / (7 * 8)
    assert seen == [pytest.approx(one * (deviations or np.linalg.norm(weights)), rel=1e-3)]


@pytest.mark.parametrize("penalty", [COVER, ANY], ids=["groups", "any"])
def test_the_steps_of_dual_frank_wolfe_are_those_of_its_proof(penalty):
    problem = Problem(Logistic(), penalty, BALL, fit_intercept=False)
    solver = DualFrankWolfe(steps=3, sparse=False)
    plan = solver.plan(problem, N, P, BUDGET, ZERO)
    plan = replace(plan, releases=tuple(release.scaled(0.0) for release in plan.releases))
    records = as_data(X, LABELS, BALL)
    found = solver.run(plan, problem, Curator(records, ZERO, Randomness(0))).w

    query = replace(minimiser(replace(problem, penalty=L2(0.05)), N, P, plan.clip), push=10.0)
    points, slopes = [np.zeros(P)], []
    for size in (1.0, 2 / 3, 1 / 2):
        slopes.append(query(records, points[-1], np.zeros(P)))
        vertex = -0.01 * penalty.linear_minimiser(slopes[-1])
        points.append((1 - size) * points[-1] + size * vertex)
    if penalty is ANY:
        theta, s = query(records, points[3], np.zeros(P)), points[3]
    else:
        theta, s = (np.average(values, axis=0, weights=[1, 2, 3]) for values in (slopes, points[:3]))
    assert np.allclose(found, penalty.function.prox(theta + s / 0.05, 0.01 / 0.05), atol=1e-7)
    assert np.count_nonzero(found) > 1
