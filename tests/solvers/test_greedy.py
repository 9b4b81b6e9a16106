"""Greedy coordinate descent: its plan, its price, its optimum without noise."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model

from dpglm import Bounds, Budget, accounting
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Logistic, Squared
from dpglm.mechanisms import Exponential, Gaussian, Laplace, LaplaceNoisyMax, Randomness
from dpglm.penalties import L1, L2, Box, ElasticNet, L1Ball, Zero
from dpglm.problem import Problem
from dpglm.solvers import GreedyCoordinateDescent, steps_if_convex, steps_if_strongly_convex

from .runs import BUDGET, REPLACE, solved

rng = np.random.default_rng(0)
N, P = 300, 30
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.5)
X[:, 7] = 0.0
TRUE = np.zeros(P)
TRUE[:4] = 2.0, -1.0, 0.5, 1.0
TARGET = X @ TRUE + 0.5 * rng.standard_normal(N)
LABELS = np.where(X @ TRUE + 0.5 * rng.standard_normal(N) > 0, 1.0, -1.0)
UNBOUNDED = Bounds(row_norm=math.inf)
LAYOUTS = {"dense": np.array, "CSR": sp.csr_array}


def objective(loss, penalty, y, w):
    return loss.value(X @ w, y).mean() + penalty.value(w)


@pytest.mark.parametrize("rule", ["gs-s", "gs-r", "gs-q"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["lasso", "logistic"])
def test_without_noise_every_rule_reaches_the_optimum_of_scikit_learn(kind, layout, rule):
    loss, y = (Squared(), TARGET) if kind == "lasso" else (Logistic(), LABELS)
    penalty = L1(0.02)
    if kind == "lasso":
        best = linear_model.Lasso(alpha=0.02, fit_intercept=False, tol=1e-14, max_iter=10**6)
    else:
        best = linear_model.LogisticRegression(
            l1_ratio=1, C=1 / (0.02 * N), solver="saga", fit_intercept=False, tol=1e-12, max_iter=10**6
        )
    expected = objective(loss, penalty, y, best.fit(X, y).coef_.ravel())
    problem = Problem(loss, penalty, UNBOUNDED, fit_intercept=False)
    result = solved(
        GreedyCoordinateDescent(rule=rule), problem, LAYOUTS[layout](X), y, Budget(math.inf, 1e-6)
    )
    assert objective(loss, penalty, y, result.w) <= expected + 1e-9
    assert result.w[7] == 0.0


@pytest.mark.parametrize("rule", ["gs", "gs-s", "gs-r", "gs-q"])
def test_without_noise_and_kinks_every_rule_reaches_the_minimum(rule):
    problem = Problem(Squared(), L2(0.1), UNBOUNDED, fit_intercept=False)
    result = solved(GreedyCoordinateDescent(rule=rule), problem, X, TARGET, Budget(math.inf, 1e-6))
    exact = np.linalg.solve(X.T @ X / N + 0.1 * np.eye(P), X.T @ TARGET / N)
    assert np.allclose(result.w, exact, atol=1e-6)


@pytest.mark.parametrize("penalty", [Box(-0.2, 0.3), ElasticNet(0.01, 0.1), Zero()], ids=repr)
def test_without_noise_an_intercept_and_other_penalties_come_out_as_by_another_solver(penalty):
    from dpglm.solvers import CoordinateDescent

    problem = Problem(Logistic(), penalty, UNBOUNDED)
    infinite = Budget(math.inf, 1e-6)
    here, there = (
        solved(solver, problem, X[:, :5], LABELS, infinite).w
        for solver in (GreedyCoordinateDescent(), CoordinateDescent())
    )
    assert np.allclose(here, there, atol=1e-4)


SETTINGS = [
    GreedyCoordinateDescent(steps=5),
    GreedyCoordinateDescent(steps=2),
    GreedyCoordinateDescent(steps=5, selection="laplace", release="laplace"),
    GreedyCoordinateDescent(steps=5, selection="laplace"),
    GreedyCoordinateDescent(steps=5, release="laplace", selection_share=0.8),
    GreedyCoordinateDescent(steps=5, second_moments="private", moments_share=0.2),
    GreedyCoordinateDescent(steps=5, second_moments="even", rule="gs-q"),
    GreedyCoordinateDescent(steps=5, second_moments=np.full(P, 0.1), rule="gs-s"),
]


@pytest.mark.parametrize("solver", SETTINGS, ids=repr)
@pytest.mark.parametrize("fits", [1, 3])
def test_every_setting_keeps_to_its_budget_and_spends_its_plan(solver, fits):
    problem = Problem(Logistic(), L1(0.01), Bounds(row_norm=1.0))
    plan = solver.plan(problem, N, P, BUDGET, REPLACE, fits)
    assert 0.99 <= plan.epsilon <= 1.0
    assert accounting.compose(plan.event).delta(1.0) <= 1e-6
    if fits == 1:
        models = [solved(solver, problem, layout(X), LABELS).w for layout in LAYOUTS.values()]
        assert np.allclose(*models, rtol=1e-9, atol=1e-12)


def test_a_step_changes_one_coefficient_at_most():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    for steps in (1, 3, 7):
        w = solved(GreedyCoordinateDescent(steps=steps), problem, X, LABELS).w
        assert 1 <= np.count_nonzero(w) <= steps


def closed_form(steps, delta=1e-6):
    """The noise of the paper's Theorem 4.2, 8 L sqrt(T log(1/delta)) / (n epsilon), over its sensitivity."""
    return 4 * math.sqrt(steps * math.log(1 / delta))


@pytest.mark.parametrize("steps", [1, 10, 30, 100, 300, 1000])
def test_noise_is_well_below_the_closed_form_of_the_paper(steps):
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    plan = GreedyCoordinateDescent(steps=steps, second_moments="bounds").plan(
        problem, 1000, 50, BUDGET, REPLACE
    )
    (rounds,) = plan.releases
    selection, release = rounds.mechanism.selection, rounds.mechanism.additive
    deviation = release.noise * (math.sqrt(2) if isinstance(release, Laplace) else 1.0)
    least = 4.9 if steps == 1 else 2.7
    assert closed_form(steps) / selection.noise >= least
    assert math.sqrt(2) * closed_form(steps) / deviation >= least


# Noise of the selection over its sensitivity: exponential mechanism with Laplace or Gaussian release of the
# same deviation, at (1, 1e-6); a reference computed apart, to 0.3 %.
REFERENCE = {1: 2.999, 2: 5.883, 5: 11.19, 10: 16.15, 20: 23.03, 50: 36.55, 200: 73.2, 1000: 163.8}


@pytest.mark.parametrize("steps", REFERENCE)
def test_noise_is_the_least_known_and_not_less(steps):
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    plan = GreedyCoordinateDescent(steps=steps, second_moments="bounds").plan(
        problem, 1000, 50, BUDGET, REPLACE
    )
    (rounds,) = plan.releases
    assert rounds.mechanism.selection.noise == pytest.approx(REFERENCE[steps], rel=3e-3)
    assert isinstance(rounds.mechanism.additive, Laplace if steps <= 2 else Gaussian)


def test_a_laplace_selection_costs_more():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    noises = {}
    for selection, kind in (("exponential", Exponential), ("laplace", LaplaceNoisyMax)):
        solver = GreedyCoordinateDescent(steps=20, selection=selection)
        mechanism = solver.plan(problem, 1000, 50, BUDGET, REPLACE).releases[-1].mechanism.selection
        assert isinstance(mechanism, kind)
        noises[selection] = mechanism.noise
    assert noises["laplace"] > 1.5 * noises["exponential"]


def test_the_share_of_the_selection_is_a_parameter():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    for share in (0.2, 0.5, 0.8):
        solver = GreedyCoordinateDescent(steps=50, selection_share=share, second_moments="bounds")
        (rounds,) = solver.plan(problem, 1000, 50, BUDGET, REPLACE).releases
        squares = rounds.mechanism.selection.noise**-2, rounds.mechanism.additive.noise**-2
        assert squares[0] / sum(squares) == pytest.approx(share)


def test_a_warm_start_is_where_the_steps_begin():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    start = np.append(np.linspace(-1, 1, P), 0.25)
    solver = GreedyCoordinateDescent(steps=1, warm_start=start)
    w = solved(solver, problem, X, LABELS).w
    expected = np.append(start[:P], 0.25 / problem.constant(P))
    assert np.count_nonzero(w != expected) == 1
    assert solver.plan(problem, N, P, BUDGET, REPLACE).start == tuple(start)
    short = solved(GreedyCoordinateDescent(steps=1, warm_start=start[:P]), problem, X, LABELS).w
    assert np.count_nonzero(short[:P] != start[:P]) + (short[P] != 0) == 1


@pytest.mark.parametrize(
    "start", [np.zeros(P - 1), np.zeros((P, 1)), np.full(P, np.nan)], ids=["short", "2d", "nan"]
)
def test_a_warm_start_that_does_not_fit_is_refused(start):
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    with pytest.raises(ValueError, match="warm_start"):
        GreedyCoordinateDescent(warm_start=start).plan(problem, N, P, BUDGET, REPLACE)


@pytest.mark.parametrize("penalty", [L1(0.1), Box(-1.0, 1.0)], ids=repr)
def test_the_smooth_rule_refuses_kinks(penalty):
    problem = Problem(Logistic(), penalty, Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match="gs-s"):
        GreedyCoordinateDescent(rule="gs").plan(problem, N, P, BUDGET, REPLACE)


def test_a_penalty_that_coordinates_share_is_refused():
    with pytest.raises(UnsupportedProblem, match="sum over coordinates"):
        GreedyCoordinateDescent().plan(
            Problem(Logistic(), L1Ball(1.0), Bounds(row_norm=1.0)), N, P, BUDGET, REPLACE
        )


def test_slopes_without_a_bound_need_a_clip():
    problem = Problem(Squared(), Zero(), Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match="clip"):
        GreedyCoordinateDescent().plan(problem, N, P, BUDGET, REPLACE)
    assert GreedyCoordinateDescent(clip=0.5).plan(problem, N, P, BUDGET, REPLACE).clip == 0.5


@pytest.mark.parametrize("setting", [
    {"rule": "gs-x"}, {"selection": "gumbel"}, {"release": "none"}, {"selection_share": 0.0},
    {"selection_share": 1.0}, {"moments_share": 0.0}, {"steps": 0}, {"clip": -1.0}, {"step_size": 0.0},
    {"second_moments": "measured"},
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        GreedyCoordinateDescent(**setting)


def test_even_moments_are_the_default_where_a_release_says_nothing():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    for p, source in ((5, "private"), (100_000, "even")):
        assert GreedyCoordinateDescent().plan(problem, 2000, p, BUDGET, REPLACE).second_moments == source


def test_a_long_step_is_shortened_where_it_passes_by_the_minimum():
    """One feature, second moments a hundred times too small: a fixed step wanders, the default settles."""
    x = rng.choice([-1.0, 1.0], 100_000)[:, None]
    y = 0.3 * x[:, 0]
    problem = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-1, 1)), fit_intercept=False)
    settings = {"steps": 30, "second_moments": [0.01], "clip": 1.0}
    adapted = solved(GreedyCoordinateDescent(**settings), problem, x, y, Budget(5.0, 1e-6)).w
    fixed = solved(GreedyCoordinateDescent(**settings, step_size=1.0), problem, x, y, Budget(5.0, 1e-6)).w
    assert abs(adapted[0] - 0.3) < 0.05
    assert abs(fixed[0] - 0.3) > 1.0


@pytest.mark.parametrize(
    ("budget", "start"),
    [(BUDGET, None), (BUDGET, np.full(P, 3.0)), (Budget(math.inf, 1e-6), None)],
    ids=["private", "private, warm start", "exact"],
)
def test_coefficients_stay_in_their_box_wherever_the_steps_begin(budget, start):
    problem = Problem(Logistic(), Box(0.5, 1.0), Bounds(row_norm=1.0), fit_intercept=False)
    for rule in ("gs-s", "gs-r", "gs-q"):
        solver = GreedyCoordinateDescent(rule=rule, steps=3 if budget.private else None, warm_start=start)
        assert math.isfinite(problem.penalty.value(solved(solver, problem, X, LABELS, budget).w))


def test_default_clipping_does_not_bias_a_fit_that_has_hardly_any_noise():
    x = (rng.random((50_000, 3)) < 0.5) * 1.0
    y = np.where(rng.random(50_000) < 0.5 + 0.3 * x[:, 0] - 0.1 * x[:, 1], 1.0, -1.0)
    problem = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-1, 1)))
    w = solved(GreedyCoordinateDescent(), problem, x, y, Budget(100.0, 1e-9)).w
    error = np.mean((x @ w[:3] + w[3] * problem.constant(3) - y) ** 2)
    table = np.column_stack([x, np.ones(50_000)])
    assert error < np.mean((table @ np.linalg.lstsq(table, y)[0] - y) ** 2) + 0.01


def test_without_noise_a_large_mean_does_not_end_the_steps_early():
    w = rng.uniform(-0.3, 0.3, P)
    w[7] = 0.0
    problem = Problem(Squared(), Zero(), UNBOUNDED)
    found = solved(GreedyCoordinateDescent(), problem, X, X @ w + 1e7, Budget(math.inf, 1e-6)).w
    assert np.abs(found[:P] - w).max() < 1e-3


def test_without_noise_a_table_of_zeros_moves_nothing():
    problem = Problem(Logistic(), Zero(), UNBOUNDED, fit_intercept=False)
    zeros = np.zeros((20, 3))
    assert not solved(GreedyCoordinateDescent(), problem, zeros, np.ones(20), Budget(math.inf, 1e-6)).w.any()


class Watching(Curator):
    """Keeps what is opened, and the moves that are made."""

    def open(self, query, w, mechanism):
        self.query = query
        self.opened = super().open(query, w, mechanism)
        return self.opened


def watched(solver, problem, table, y):
    plan = solver.plan(problem, *table.shape, BUDGET, REPLACE)
    records = as_data(table, y, problem.bounds, problem.constant(table.shape[1]))
    curator = Watching(records, REPLACE, Randomness(0))
    return curator, solver.run(plan, problem, curator).w, plan


def test_clips_give_all_scores_one_sensitivity():
    solver = GreedyCoordinateDescent(steps=2, second_moments=np.geomspace(0.01, 1, P))
    curator, _, plan = watched(solver, Problem(Logistic(), Zero(), Bounds(row_norm=1.0)), X, LABELS)
    sensitivity = curator.query.sensitivity(REPLACE)
    assert np.allclose(sensitivity, sensitivity[0], rtol=1e-12)
    assert np.linalg.norm(curator.query.clip) == pytest.approx(plan.clip)


def test_a_step_along_the_constant_feature_is_never_longer_than_its_curvature_allows():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    settings = {"steps": 1, "clip": 10.0, "second_moments": np.full(2, 1e-9)}
    zeros, ones = np.zeros((5_000, 2)), np.ones(5_000)
    moved = [
        watched(GreedyCoordinateDescent(**settings, step_size=size), problem, zeros, ones)[1]
        for size in (0.5, 1.0, 8.0)
    ]
    assert moved[0][2] == pytest.approx(moved[1][2] / 2)
    assert moved[2][2] == moved[1][2] != 0


def test_second_moments_get_their_share_of_the_budget():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    solver = GreedyCoordinateDescent(
        steps=40, second_moments="private", moments_share=0.2, selection_share=0.5
    )
    plan = solver.plan(problem, N, P, BUDGET, REPLACE)
    squares = [r.count / line.mechanism.noise**2 for r in plan.releases for line in r.lines]
    assert np.allclose(squares / np.sum(squares), [0.2, 0.4, 0.4])


def test_steps_without_noise_go_on_while_a_short_one_may_hide_a_long_one():
    from dpglm.solvers.greedy_coordinate_descent import _settle

    w = np.array([1e-12, 1e-12, 1.0])
    script = iter([(2, 1.0), (0, 1e-12), (1, 1e-12), (2, 0.5), *[(2, 0.0)] * 9])

    def advance():
        j, length = next(script)
        w[j] = 0.0 if length == 1e-12 else 1.0
        return j, length

    # Two short steps after the last long one, which left one coefficient.
    assert _settle(advance, w, 3, 100) == 4 + 2


def test_steps_of_theorems_are_those_computed_by_hand():
    # (1 * 1000 / 1)^(2/3) = 100, log(1/delta) = 8.
    assert steps_if_convex(1_000, 1.0, math.exp(-8), slope=1.0, distance=1.0) == round(100 / (4 * 2))
    # Distance, epsilon and 1/slope count alike, as the power 2/3.
    assert steps_if_convex(1_000, 8.0, math.exp(-8), slope=1.0, distance=1.0) == 50
    assert steps_if_convex(1_000, 1.0, math.exp(-8), slope=0.125, distance=1.0) == 50
    assert steps_if_convex(1, 0.01, 0.5, slope=1.0, distance=1.0) == 1
    # 8 p / failure = e^2, log(1/delta) = 2: the denominator is 512 * 2 * 4 = 2^12.
    known = {"slope": 1.0, "failure": 8 * math.exp(-2) * (1 - 1e-15)}
    n, delta = 2**10, math.exp(-2)
    with pytest.raises(ValueError, match="failure"):
        steps_if_strongly_convex(n, 1, 1.0, delta, gap=1.0, strong_convexity=1.0, **known)
    known["failure"] /= 10
    count = steps_if_strongly_convex(n, 1, 1.0, delta, gap=1.0, strong_convexity=0.25, **known)
    log = 2 + math.log(10)
    assert count == round(16 * math.log(0.25 * 2**20 / (2**10 * log**2)))


def test_the_steps_of_theorem_4_7_are_those_of_4_4_for_the_strong_convexity_of_sparse_vectors():
    both = {"slope": 0.5, "gap": 0.7}
    sparse = steps_if_strongly_convex(10**6, 50, 1.0, 1e-9, strong_convexity=0.4, sparsity=8, **both)
    assert sparse == steps_if_strongly_convex(10**6, 50, 1.0, 1e-9, strong_convexity=0.05, **both) > 1
    assert steps_if_strongly_convex(100, 50, 1.0, 1e-9, strong_convexity=0.4, **both) == 1


@pytest.mark.parametrize(
    "wrong", [{"distance": 0.0}, {"distance": math.inf}, {"slope": -1.0}, {"delta": 1.0}, {"n_samples": 0}]
)
def test_steps_of_theorems_refuse_constants_that_are_none(wrong):
    known = {"n_samples": 100, "epsilon": 1.0, "delta": 1e-6, "slope": 1.0, "distance": 1.0} | wrong
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}"):
        steps_if_convex(**known)


def test_a_fit_takes_the_steps_that_a_theorem_states():
    steps = steps_if_convex(N, BUDGET.epsilon, BUDGET.delta, slope=1.0, distance=3.0)
    problem = Problem(Squared(), L2(0.1), Bounds(row_norm=10.0, target=(-10.0, 10.0)), fit_intercept=False)
    solver = GreedyCoordinateDescent(steps=steps, clip=1.0, step_size=1.0, second_moments="even")
    assert steps > 1
    assert solver.plan(problem, N, P, BUDGET, REPLACE).steps == steps
    assert solved(solver, problem, X, TARGET, BUDGET).steps == steps
