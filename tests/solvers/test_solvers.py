import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Budget, Neighbours, solvers
from dpglm.curator import Curator, NoisyReleases
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import LOSSES, Logistic, Squared
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.penalties import L1, L2, Box, ElasticNet, L1Ball, Zero
from dpglm.problem import Problem
from dpglm.queries import ClippedGradient, CoordinateRule, CoordinateSums
from dpglm.solvers import CoordinateDescent, GradientDescent, Task, get
from dpglm.testing import check_loss_form, check_solver

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 6)) * np.linspace(0.2, 1.0, 6)
LABELS = np.sign(X @ rng.standard_normal(6) + 0.5 * rng.standard_normal(400))
# Frank-Wolfe needs a ball, dual coordinate descent an L2 part, dual Frank-Wolfe a norm with one and Newton no
# penalty: the same tests are in their own files.
OTHERS = (solvers.FrankWolfe, solvers.DualCoordinateDescent, solvers.DualFrankWolfe, solvers.Newton)
SETTINGS = [*(cls() for cls in solvers.SOLVERS.values() if cls not in OTHERS),
            GradientDescent(batch_size=40, steps=10), GradientDescent(average=False),
            CoordinateDescent(periods=3),
            CoordinateDescent(clip_rule="uniform", second_moments=np.full(6, 0.2))]  # fmt: skip

# The others release a minimiser, which is the same for all layouts but for its tolerance: see their own file.
PERTURBATIONS = (solvers.ObjectivePerturbation, solvers.OutputPerturbation)
LOOPS = [one for one in SETTINGS if not isinstance(one, PERTURBATIONS)]

SMOOTH = [cls for cls in LOSSES if math.isfinite(cls().smoothness())]


@pytest.mark.parametrize("solver", SETTINGS, ids=repr)
def test_solver_spends_exactly_its_plan(solver):
    check_solver(solver, Problem(Logistic(), L2(0.01), Bounds(row_norm=1.0)), X, LABELS)


@pytest.mark.parametrize("solver", LOOPS, ids=repr)
def test_dense_and_sparse_tables_give_the_same_model(solver):
    penalty = L2(0.01) if isinstance(solver, solvers.PreconditionedDescent) else L1(0.01)
    problem = Problem(Logistic(), penalty, Bounds(row_norm=1.0))
    plan = solver.plan(problem, 400, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    models = [
        solver.run(
            plan,
            problem,
            Curator(as_data(table, LABELS, problem.bounds, 1.0), plan.neighbours, Randomness(1)),
        ).w
        for table in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_matrix(X))
    ]
    for other in models[1:]:
        assert np.allclose(models[0], other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [cls() for cls in LOSSES], ids=lambda loss: loss.name)
def test_the_compiled_slope_of_a_loss_is_its_derivative(loss):
    check_loss_form(loss)


@pytest.mark.parametrize("table", [X, sp.csr_array(X * (X > 0))], ids=["dense", "sparse"])
@pytest.mark.parametrize("penalty", [Zero(), L1(0.02), ElasticNet(0.01, 0.1), Box(-0.1, 0.1)], ids=repr)
@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.name)
def test_a_compiled_block_and_a_loop_of_single_steps_agree_draw_for_draw(table, penalty, kind):
    uncompiled = type("Uncompiled", (kind,), {"form": None})
    problem = Problem(kind(), penalty, Bounds(row_norm=1.0))
    coordinates = rng.integers(7, size=60)
    step = np.full(7, 0.5)
    rule = CoordinateRule(step / 400, step, *problem.coordinate_form(6))
    ends = []
    for loss in (kind(), uncompiled()):
        curator = Curator(as_data(table, LABELS, problem.bounds, 1.0), Neighbours.REPLACE_ONE, Randomness(7))
        opened = curator.open(CoordinateSums(loss, np.full(7, 0.3)), np.zeros(7), Gaussian(3.0))
        moves, w = opened.descend(coordinates, rule)
        assert set(curator.spent.values()) == {60} and len(curator.spent) == 2
        assert np.allclose(np.bincount(coordinates, moves, minlength=7), w)
        ends.append(w)
    assert np.allclose(*ends, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("solver", [GradientDescent, CoordinateDescent])
@pytest.mark.parametrize(
    "setting", [{"clip": math.inf}, {"step_size": math.inf}, {"clip": math.nan}, {"steps": 2.5}]
)
def test_settings_that_would_void_the_promise_are_refused(solver, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        solver(**setting)


@pytest.mark.parametrize(
    "solver", [GradientDescent(step_size=1.0), CoordinateDescent(step_size=1.0)], ids=repr
)
def test_coefficients_that_could_overflow_stop_the_run_for_every_table(solver):
    problem = Problem(Squared(), Zero(), Bounds(row_norm=1.0, target=(-1, 1)))
    plan = solver.plan(problem, 400, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    plan = replace(plan, step_size=1e200)  # as from a file: such a step is refused when a plan is made
    for table in (X, np.zeros_like(X)):
        curator = Curator(as_data(table, LABELS, problem.bounds, 0.5), plan.neighbours, Randomness(0))
        with pytest.raises(FloatingPointError, match="step_size"):
            solver.run(plan, problem, curator)


@pytest.mark.parametrize("picked, refused", [([], False), ([0, 1, 0], False), ([0, 5, 0], True)])
def test_a_block_of_coordinate_steps_is_refused_by_the_rates_of_its_own_coordinates(picked, refused):
    problem = Problem(Squared(), Zero(), Bounds(row_norm=1.0, target=(-1, 1)), fit_intercept=False)
    curator = Curator(as_data(X, LABELS, problem.bounds), Neighbours.REPLACE_ONE, Randomness(0))
    opened = curator.open(CoordinateSums(problem.loss, np.ones(6)), np.zeros(6), Gaussian(1.0))
    step = np.array([1, 1, 1, 1, 1, 1e200])
    rule = CoordinateRule(step / 400, step, *problem.coordinate_form(6))
    if refused:
        with pytest.raises(FloatingPointError, match="diverged"):
            opened.descend(np.array(picked, dtype=np.int64), rule)
    else:
        assert np.isfinite(opened.descend(np.array(picked, dtype=np.int64), rule)[1]).all()


def test_periodic_averaging_is_the_mean_of_the_iterates():
    problem = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-1, 1)), fit_intercept=False)
    solver = CoordinateDescent(steps=50, periods=1)
    plan = solver.plan(problem, 400, 6, Budget(5.0, 1e-6), Neighbours.ZERO_OUT)
    averaged = solver.run(
        plan, problem, Curator(as_data(X, LABELS, problem.bounds), plan.neighbours, Randomness(3))
    ).w
    curator = Curator(as_data(X, LABELS, problem.bounds), plan.neighbours, Randomness(3))
    clip = plan.clip * np.sqrt(np.full(6, 1 / 6))
    opened = curator.open(CoordinateSums(problem.loss, clip), np.zeros(6), plan.releases[-1].mechanism)
    w, total = np.zeros(6), np.zeros(6)
    for j in curator.pick(6, 50):
        w[j] -= opened.release(j) / 400
        opened.move(j, w[j])
        total += w
    assert np.allclose(averaged, total / 50)


def objective(problem, table, y, w):
    rows = as_data(table, y, problem.bounds, problem.constant(6))
    coefficients = w[:6]
    return problem.loss.value(rows.dot(w), rows.y).mean() + problem.penalty.value(coefficients)


@pytest.mark.parametrize("solver", [GradientDescent(), CoordinateDescent()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("loss", [cls() for cls in SMOOTH], ids=lambda loss: loss.name)
@pytest.mark.parametrize("penalty", [L2(0.01), L1(0.02), Box(-0.3, 0.2)], ids=repr)
def test_no_noise_no_clipping_recovers_the_minimiser(solver, loss, penalty):
    y = {"classification": LABELS, "regression": X @ np.arange(6.0), "count": np.abs(np.round(X[:, 0] * 3))}[
        loss.kind
    ]
    problem = Problem(loss, penalty, Bounds(row_norm=math.inf))
    plan = solver.plan(problem, 400, 6, Budget(math.inf, 0.5), Neighbours.REPLACE_ONE)
    w = solver.run(
        plan, problem, Curator(as_data(X, y, problem.bounds, 1.0), plan.neighbours, Randomness(0))
    ).w
    best = objective(problem, X, y, w)
    for scale in (1e-1, 1e-2, 1e-3, 1e-4):
        for _ in range(50):
            rival = w + scale * rng.standard_normal(7)
            rival[:6] = np.clip(rival[:6], *problem.penalty.coordinate_form()[2:])
            assert objective(problem, X, y, rival) >= best - 1e-9 * abs(best)


def test_projected_gradient_descent_stays_in_its_ball():
    problem = Problem(Logistic(), L1Ball(0.5), Bounds(row_norm=1.0))
    plan = GradientDescent(average=False).plan(problem, 400, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    curator = Curator(as_data(X, LABELS, problem.bounds, 1.0), plan.neighbours, Randomness(0))
    assert np.abs(GradientDescent(average=False).run(plan, problem, curator).w[:6]).sum() <= 0.5 + 1e-9


def test_a_penalty_that_is_no_sum_is_refused_by_coordinate_descent_with_the_way_out():
    problem = Problem(Logistic(), L1Ball(1.0), Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match="L1Ball.*GradientDescent"):
        CoordinateDescent().plan(problem, 100, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)


@pytest.mark.parametrize("name", ["steps", "clip", "step_size", "batch_size"])
def test_impossible_settings_are_refused_by_name(name):
    with pytest.raises(ValueError, match=name):
        GradientDescent(**{name: 0})


@pytest.mark.parametrize(
    ("name", "value"),
    [("clip_rule", "other"), ("second_moments", "guessed"), ("share", 1.0), ("periods", 0), ("steps", -3)],
)
def test_impossible_settings_of_coordinate_descent_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        CoordinateDescent(**{name: value})


def test_declared_second_moments_must_fit_the_table():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    solver = CoordinateDescent(second_moments=[1.0, 2.0])
    with pytest.raises(ValueError, match="second_moments"):
        solver.plan(problem, 400, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)


def task(problem, p=6):
    return Task(problem, 400, p, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE, 1)


def test_solvers_are_found_by_name():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    assert isinstance(get("gradient-descent", task(problem)), GradientDescent)
    assert isinstance(get("coordinate-descent", task(problem)), CoordinateDescent)
    with pytest.raises(ValueError, match="solver"):
        get("simplex", task(problem))


@pytest.mark.parametrize(
    ("bounds", "penalty", "chosen"),
    [
        (Bounds(row_norm=1.0), Zero(), solvers.PreconditionedDescent),
        (Bounds(feature=2.0), L2(0.1), solvers.PreconditionedDescent),
        (Bounds(row_norm=1.0), L1(0.1), GradientDescent),
        (Bounds(feature=[1.0, 3.0]), L1(0.1), GradientDescent),
        (Bounds(feature=[1.0, 50.0]), L1(0.1), CoordinateDescent),
        (Bounds(feature=[1.0, 50.0], row_norm=1.5), L1(0.1), GradientDescent),
        (Bounds(feature=[1.0, 50.0]), L1Ball(1.0), GradientDescent),
    ],
    ids=str,
)
def test_auto_without_noise_is_coordinate_descent_where_declared_columns_are_unequal(bounds, penalty, chosen):
    problem = Problem(Logistic(), penalty, bounds)
    exact = Budget(math.inf, 1e-6)
    without_noise = replace(task(problem, 2), budget=exact)
    if chosen is CoordinateDescent:
        assert isinstance(get("auto", without_noise), CoordinateDescent)
        chosen = GradientDescent
    assert isinstance(get("auto", task(problem, 2)), chosen)


def test_the_noise_of_a_release_reaches_every_coefficient_of_the_first_step():
    problem = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-1, 1)))
    solver = GradientDescent(steps=1, clip=0.7, step_size=1.0, average=False)
    plan = solver.plan(problem, 400, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    records = as_data(X, LABELS, problem.bounds, problem.constant(6))
    ends = [
        solver.run(plan, problem, Curator(records, plan.neighbours, Randomness(s))).w for s in range(4000)
    ]
    expected = plan.releases[0].mechanism.noise * 2 * 0.7 / 400
    assert np.abs(np.std(ends, axis=0) / expected - 1).max() < 6 / math.sqrt(2 * 4000)


def test_the_noise_of_a_pass_reaches_every_coordinate():
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0))
    clip, step = np.linspace(0.1, 0.7, 7), np.linspace(1.0, 2.0, 7)
    rule = CoordinateRule(step / 400, step, *problem.coordinate_form(6))
    records = as_data(np.zeros((400, 6)), LABELS, problem.bounds, 0.5)

    def one_pass(seed):
        curator = Curator(records, Neighbours.ZERO_OUT, Randomness(seed))
        opened = curator.open(CoordinateSums(problem.loss, clip), np.zeros(7), Gaussian(3.0))
        return opened.descend(np.arange(7), rule)[1]

    deviation = np.std([one_pass(seed) for seed in range(4000)], axis=0)
    assert np.abs(deviation / (step / 400 * 3.0 * clip) - 1).max() < 6 / math.sqrt(2 * 4000)


class Unbounded(Logistic):
    """A loss that claims no Lipschitz constant."""

    form = None

    def lipschitz(self, target=None):
        return math.inf


@pytest.mark.parametrize("solver", [GradientDescent, CoordinateDescent])
def test_a_loss_without_a_slope_bound_needs_a_clip(solver):
    problem = Problem(Unbounded(), Zero(), Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match="clip"):
        solver().plan(problem, 400, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    check_solver(solver(clip=0.5), problem, X, LABELS)


def test_the_curator_refuses_noise_for_an_infinite_sensitivity():
    curator = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), Neighbours.REPLACE_ONE, Randomness(0))
    with pytest.raises(UnsupportedProblem, match="finite"):
        curator.release(ClippedGradient(Logistic(), math.inf), Gaussian(1.0), np.zeros(6))


class Overflowing(Logistic):
    """A loss whose derivative overflows."""

    def derivative(self, z, y):
        return np.full_like(z, math.inf)

    def lipschitz(self, target=None):
        return math.inf

    def smoothness(self):
        return 1.0


def test_a_slope_that_overflows_is_clipped_like_any_other():
    data = as_data(np.array([[0.0, 1.0]]), [1.0], Bounds(row_norm=1.0))
    assert np.array_equal(ClippedGradient(Overflowing(), 0.5)(data, np.zeros(2)), [0.0, 0.5])
    assert np.array_equal(CoordinateSums(Overflowing(), np.full(2, 0.5))(data, np.zeros(2)), [0.0, 0.5])


class Skewed(Logistic):
    """Errors on the one class count four times as much."""

    def value(self, z, y):
        return np.where(y > 0, 4.0, 1.0) * super().value(z, y)

    def derivative(self, z, y):
        return np.where(y > 0, 4.0, 1.0) * super().derivative(z, y)

    def curvature(self, z, y):
        return np.where(y > 0, 4.0, 1.0) * super().curvature(z, y)

    def lipschitz(self, target=None):
        return 4.0

    def smoothness(self):
        return 1.0


def test_a_loss_that_changes_another_is_the_one_that_is_fitted():
    problem = Problem(Skewed(), L2(0.01), Bounds(row_norm=1.0))
    ends = []
    for solver in (GradientDescent(), CoordinateDescent()):
        plan = solver.plan(problem, 400, 6, Budget(math.inf, 0.5), Neighbours.REPLACE_ONE)
        curator = Curator(as_data(X, LABELS, problem.bounds, 0.5), plan.neighbours, Randomness(0))
        ends.append(solver.run(plan, problem, curator).w)
    assert np.allclose(*ends, atol=1e-4)


class OneByOne(NoisyReleases):
    """Releases that let no block pass."""

    in_blocks, seen = False, 0

    def give(self, answer, sensitivity, mechanism):
        self.seen += 1
        return super().give(answer, sensitivity, mechanism)


def test_releases_that_hand_out_no_stream_see_every_number_and_give_the_same_model():
    solver = CoordinateDescent(steps=50)
    problem = Problem(Logistic(), L1(0.01), Bounds(row_norm=1.0))
    plan = solver.plan(problem, 400, 6, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    records = as_data(X, LABELS, problem.bounds, 1.0)
    ways = [kind(records, plan.neighbours, Randomness(4)) for kind in (NoisyReleases, OneByOne)]
    holders = [Curator(records, plan.neighbours, Randomness(4), way) for way in ways]
    ends = [solver.run(plan, problem, holder).w for holder in holders]
    assert ways[1].seen == 51 and holders[0].spent == holders[1].spent == plan.price
    assert np.allclose(*ends, rtol=1e-10, atol=1e-12)


def test_former_names_warn_and_forward():
    from dpglm import solvers

    for former, name in (("Along", "IterateChoice"), ("Searched", "RandomSearch")):
        with pytest.warns(FutureWarning, match=name):
            assert getattr(solvers, former) is getattr(solvers, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(solvers, "Nothing")  # noqa: B009
