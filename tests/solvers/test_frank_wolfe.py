"""Frank-Wolfe: its plan, its price, its minimum without noise, and the promise on one feature."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from dpglm import Bounds, Budget, GLMRegressor, LogisticRegression
from dpglm.audit import Claim, audit_function
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import LOSSES, Logistic, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L1, L1Ball
from dpglm.plan import Plan
from dpglm.problem import Problem
from dpglm.queries import VertexScores
from dpglm.solvers import FrankWolfe, GradientDescent
from dpglm.testing import check_solver

from .runs import BUDGET, REPLACE, solved

rng = np.random.default_rng(0)
N, P = 500, 40
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.3)
TRUE = np.zeros(P)
TRUE[:3] = 2.0, -1.5, 1.0
LABELS = np.where(X @ TRUE + 0.3 * rng.standard_normal(N) > 0.4, 1.0, -1.0)
TARGET = X @ TRUE + 0.7 + 0.3 * rng.standard_normal(N)
PROBLEM = Problem(Logistic(), L1Ball(3.0), Bounds(row_norm=1.0))
SEVERAL = [
    FrankWolfe(),
    FrankWolfe(steps=30, step_size=0.2, average=True),
    FrankWolfe(steps=10, selection="binned"),
    FrankWolfe(steps=10, selection="grouped", refresh=0.5),
    FrankWolfe(steps=10, selection="gumbel", refresh=0.0),
]


@pytest.mark.parametrize("solver", SEVERAL, ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_spends_exactly_its_plan_and_stays_in_the_ball(solver, fit_intercept):
    problem = Problem(Logistic(), L1Ball(3.0), Bounds(row_norm=1.0), fit_intercept)
    result = solved(solver, problem, X, LABELS)
    assert np.abs(result.w[:P]).sum() <= 3.0 * (1 + 1e-12)
    assert 0 < np.count_nonzero(result.w[:P]) <= result.steps
    assert result.gap is None


def test_the_contract_of_solvers_holds():
    check_solver(FrankWolfe(steps=7), PROBLEM, X, LABELS)


@pytest.mark.parametrize("solver", SEVERAL, ids=repr)
def test_layouts_give_the_same_model(solver):
    models = [solved(solver, PROBLEM, form(X), LABELS).w for form in (np.array, sp.csr_array, sp.csc_matrix)]
    assert np.array_equal(models[0], models[1]) and np.array_equal(models[1], models[2])


SMOOTH = [cls for cls in LOSSES if math.isfinite(cls().smoothness())]


@pytest.mark.parametrize("kind", SMOOTH, ids=lambda kind: kind.name)
def test_every_smooth_loss_can_be_fitted(kind):
    loss = kind()
    y = LABELS if loss.kind == "classification" else np.clip(np.abs(TARGET), 0, 4)
    problem = Problem(loss, L1Ball(3.0), Bounds(row_norm=1.0, target=None if y is LABELS else (0, 4)))
    assert np.isfinite(solved(FrankWolfe(), problem, X, y).w).all()


@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_without_a_budget_it_returns_the_minimiser_over_the_ball(loss, fit_intercept, form):
    problem = Problem(loss, L1Ball(1.5), Bounds(row_norm=math.inf), fit_intercept)
    y = LABELS if loss.kind == "classification" else TARGET
    free = Budget(math.inf, 1e-6)
    best = solved(FrankWolfe(), problem, form(X), y, free).w
    other = solved(GradientDescent(), problem, X, y, free).w
    assert np.allclose(best, other, atol=1e-6)
    # Plain steps come near it, and their gap says how near at least.
    near = solved(FrankWolfe(steps=3000), problem, form(X), y, free)
    whole = X if not fit_intercept else np.column_stack([X, np.ones(N)])
    above = [loss.value(whole @ w, y).mean() for w in (near.w, best)]
    assert 0 <= above[0] - above[1] + 1e-9 <= 2e-3
    if not fit_intercept:
        assert above[0] - above[1] <= near.gap <= 5e-3


def test_the_gap_of_an_estimator_is_there_without_noise_only():
    settings = {"penalty": L1Ball(1.5), "solver": FrankWolfe(steps=200), "classes": [-1, 1]}
    with pytest.warns(ConvergenceWarning):
        free = LogisticRegression(math.inf, **settings).fit(X, LABELS)
    assert 0 < free.gap_ < 0.1
    assert not hasattr(LogisticRegression(1.0, **settings).fit(X, LABELS), "gap_")


def test_a_mean_of_iterates_is_what_it_says():
    sizes = np.full(8, 0.3)
    problem = Problem(Logistic(), L1Ball(3.0), Bounds(row_norm=1.0), fit_intercept=False)
    records = as_data(X, LABELS, problem.bounds)
    points = []
    for steps in (7, 8):
        # The same seed and the same noise: the first choices are the same.
        solver = FrankWolfe(steps=8, step_size=0.3)
        plan = solver.plan(problem, N, P, BUDGET, REPLACE)
        curator = Curator(records, REPLACE, Randomness(3))
        query = VertexScores(problem.loss, plan.clip, P, 1.0)
        choices = curator.open(query, np.zeros(P), plan.releases[0].mechanism).run(sizes[:8], 3.0)
        w = np.zeros(P)
        for size, choice in zip(sizes[:steps], choices, strict=False):
            w *= 1 - size
            w[choice // 2] += size * 3.0 * (1 if choice % 2 else -1)
        points.append(w)
    last = solved(FrankWolfe(steps=8, step_size=0.3), problem, X, LABELS, seed=3).w
    mean = solved(FrankWolfe(steps=8, step_size=0.3, average=True), problem, X, LABELS, seed=3).w
    assert np.allclose(last, points[1])
    assert np.allclose(mean, np.mean(points, axis=0))


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps", "expected"),
    [
        (0.1, 1e-6, 100, 365.1), (0.1, 1e-6, 1000, 1158), (0.1, 1e-6, 4000, 2314),
        (0.1, 1e-6, 400_000, 2.304e4), (1, 1e-6, 100, 42.43), (1, 1e-6, 1000, 134.6), (1, 1e-6, 4000, 269.2),
        (1, 1e-6, 400_000, 2681), (1, 2.5e-9, 100, 53.49), (1, 2.5e-9, 1000, 170.1), (1, 2.5e-9, 4000, 340.4),
        (1, 2.5e-9, 400_000, 3389), (4, 1e-6, 100, 11.97), (4, 1e-6, 1000, 38.05), (4, 1e-6, 4000, 76.06),
        (4, 1e-6, 400_000, 757.4), (0.1, 2.5e-9, 100, 486.8), (0.1, 2.5e-9, 1000, 1546),
        (0.1, 2.5e-9, 4000, 3094), (0.1, 2.5e-9, 400_000, 3.081e4),
    ],
)  # fmt: skip
def test_its_noise_is_that_of_the_exact_price(epsilon, delta, steps, expected):
    """The exact adaptive price of bounded range; the published scales are larger by the factors below."""
    problem = Problem(Logistic(), L1Ball(50.0), Bounds(row_norm=1.0), fit_intercept=False)
    plan = FrankWolfe(steps=steps, clip=1.0).plan(problem, 10_000, 1000, Budget(epsilon, delta), REPLACE)
    (release,) = plan.releases
    assert release.mechanism.noise == pytest.approx(expected, rel=0.01)
    published = math.sqrt(8 * steps * math.log(1 / delta)) / epsilon  # Laplace; twice that as exponential
    assert 2 * published / release.mechanism.noise > 4.3
    if (epsilon, delta) == (1, 1e-6):
        assert published / release.mechanism.noise > 2.4


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_intercept_has_its_share_of_the_budget(share):
    plan = FrankWolfe(steps=50, intercept_share=share).plan(PROBLEM, 10_000, 20, BUDGET, REPLACE)
    selection, intercept = plan.releases
    assert (selection.count, intercept.count) == (50, 8)
    spent = [release.count / release.mechanism.noise**2 for release in plan.releases]
    assert spent[1] / sum(spent) == pytest.approx(share)
    assert Plan.from_dict(plan.to_dict()) == plan


def test_an_intercept_is_found_that_no_feature_shows():
    """Labels that do not depend on the features, three quarters of them positive."""
    wide = np.random.default_rng(1).standard_normal((20_000, 5))
    y = np.where(np.arange(20_000) % 4, 1.0, -1.0)
    model = LogisticRegression(
        1.0, penalty=L1Ball(1.0), solver=FrankWolfe(steps=20), random_state=0, classes=[-1, 1]
    )
    assert model.fit(wide, y).intercept_[0] == pytest.approx(math.log(3), abs=0.25)
    target = 2.0 + 0.1 * wide[:, 0]
    line = GLMRegressor(
        1.0,
        penalty=L1Ball(1.0),
        solver=FrankWolfe(steps=20),
        bounds=Bounds(row_norm=2.0, target=(0, 5)),
        random_state=0,
    )
    assert line.fit(wide, target).intercept_ == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize(
    ("setting", "problem", "budget", "match"),
    [
        ({}, Problem(Logistic(), L1(0.1), Bounds(row_norm=1.0)), BUDGET, "L1Ball"),
        ({"selection": "heap"}, PROBLEM, BUDGET, "infinite epsilon"),
        ({"selection": "lazy"}, PROBLEM, Budget(math.inf, 1e-6), "heap"),
        ({}, Problem(Squared(), L1Ball(1.0), Bounds(row_norm=1.0)), BUDGET, "clip"),
    ],
)
def test_what_it_cannot_do_is_refused(setting, problem, budget, match):
    with pytest.raises(UnsupportedProblem, match=match):
        FrankWolfe(**setting).plan(problem, N, P, budget, REPLACE)


@pytest.mark.parametrize("target", [None, (1.7e18, 1.7e18 + 4096)], ids=["radius", "intercept"])
def test_margins_whose_rounding_shows_do_not_keep_it_from_ending(target):
    bounds = Bounds(row_norm=1.0, target=target)
    loss, radius = (Logistic(), 1e15) if target is None else (Squared(), 1.0)
    problem = Problem(loss, L1Ball(radius), bounds, fit_intercept=target is not None)
    assert np.isfinite(solved(FrankWolfe(steps=12), problem, X, LABELS).w).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_slopes_without_a_bound_need_a_clip_and_nothing_else(fit_intercept):
    problem = Problem(Squared(), L1Ball(1.0), Bounds(row_norm=2.0), fit_intercept)
    solver = FrankWolfe(clip=0.5)
    plan = solver.plan(problem, N, P, BUDGET, REPLACE)
    assert plan.clip == 0.5 and plan.intercept_clip == 0.25 * problem.constant(P)
    assert np.isfinite(solved(solver, problem, X, TARGET).w).all()


@pytest.mark.parametrize(
    "setting",
    [
        {"steps": 0}, {"steps": 2.5}, {"clip": math.inf}, {"clip": 0.0}, {"clip": 1e-101},
        {"clip": 1e200}, {"step_size": 1.0},
        {"step_size": 0.0},
        {"selection": "best"}, {"refresh": -1.0}, {"refresh": math.nan}, {"intercept_share": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_settings_without_sense_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        FrankWolfe(**setting)


RECORDS = [np.array([[1.0]]), np.array([[-1.0]])]
ONE_FEATURE = Problem(Logistic(), L1Ball(1.0), Bounds(row_norm=1.0), fit_intercept=False)
ONE_STEP = Budget(1.0, 1e-6)


def free_sign(curator, plan):
    """As printed: the index is chosen with noise, the sign is that of the exact gradient."""
    gradient = curator._records.t_dot(Logistic().derivative(np.zeros(1), curator._records.y))
    return -np.sign(gradient) * (2 / 3)


def paid_sign(curator, plan):
    return FrankWolfe(steps=1).run(plan, ONE_FEATURE, curator).w


@pytest.mark.parametrize(("fit", "violated"), [(paid_sign, False), (free_sign, True)])
def test_the_sign_of_a_single_feature_is_private_and_as_printed_it_is_not(fit, violated):
    """Two tables of one record whose gradients have opposite signs, 4,000 fits."""
    plan = FrankWolfe(steps=1, clip=0.5).plan(ONE_FEATURE, 1, 1, ONE_STEP, REPLACE)
    claim = Claim(1.0, 1e-6, plan.event)
    tables = [as_data(record, np.ones(1), ONE_FEATURE.bounds) for record in RECORDS]
    randomness = Randomness(0)

    def run(second):
        return fit(Curator(tables[second], REPLACE, randomness), plan)

    report = audit_function(run, claim, runs=2_000)
    assert report.violated == violated
    if not violated:
        assert report.findings[0].fitted > 0.6  # most of what the promise allows shows: nothing is wasted


@pytest.mark.parametrize("radius", [5.0, 50.0])
def test_dense_tables_take_no_more_steps_than_selections_find_features(radius):
    def steps(n, p, bounds, epsilon=1.0):
        problem = Problem(Logistic(), L1Ball(radius), bounds)
        budget = Budget.for_records(epsilon, 1e-6, n)
        return FrankWolfe().plan(problem, n, p, budget, REPLACE).steps

    dense = Bounds(feature=4.0)
    assert steps(5_000, 20_000, dense) == 3
    assert steps(5_000, 20_000, dense, 0.1) == 1
    assert all(steps(n, 20_000, dense) % 2 for n in (7_000, 10_000, 15_000))
    assert steps(10**7, 20_000, dense) > 100
    text = steps(5_000, 20_000, Bounds(row_norm=1.0))
    assert text == (2 if radius == 5 else 9)
