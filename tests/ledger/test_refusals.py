"""What public numbers show to fail is refused before an account is charged, in words that name the cause."""

import math
import warnings

import numpy as np
import pytest

from dpglm import (
    Bounds,
    Ledger,
    LinearRegression,
    LogisticRegression,
    PrivateSearch,
    Ridge,
    Stream,
    evaluate,
)
from dpglm.audit import audit
from dpglm.errors import PrivacyWarning, UnsupportedProblem
from dpglm.penalties import L1, L2, L1Ball
from dpglm.privacy import Neighbours
from dpglm.solvers import (
    CoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
    PreconditionedDescent,
)

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (3_000, 4))
Y = np.where(X[:, 0] > 0, 1, -1)
IN_RANGES = Bounds(feature=1.0)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(f"sqlite:///{tmp_path}/budget.db")


@pytest.fixture
def account(ledger):
    return ledger.create("a", epsilon=100.0, delta=1e-3)


def model(account, epsilon=1.0, **settings):
    settings = {"bounds": IN_RANGES, "classes": [-1, 1], "delta": 1e-7, **settings}
    return LogisticRegression(epsilon, ledger=account and str(account.address), **settings)


NOISE = "would be too large to sample"
TINY_SHARES = [
    (FrankWolfe(intercept_share=1e-300), L1Ball(1.0), r"FrankWolfe\(intercept_share=1e-300\)"),
    (GreedyCoordinateDescent(selection_share=1e-300), "l1", r"selection_share=1e-300"),
    (
        GreedyCoordinateDescent(moments_share=1e-300, second_moments="private"),
        "l1",
        r"moments_share=1e-300",
    ),
    (CoordinateDescent(share=1e-300, second_moments="private"), "l2", r"CoordinateDescent\(share=1e-300\)"),
    (Newton(deviance_share=1e-300), None, r"Newton\(deviance_share=1e-300\)"),
    (PreconditionedDescent(gram_share=1e-300), "l2", r"PreconditionedDescent\(gram_share=1e-300\)"),
]


@pytest.mark.parametrize(("solver", "penalty", "words"), TINY_SHARES)
def test_a_share_for_which_no_noise_can_be_drawn_is_not_charged(account, solver, penalty, words):
    with pytest.raises(UnsupportedProblem, match=f"{words}.*{NOISE}"):
        model(account, 5.0, solver=solver, penalty=penalty).fit(X, Y)
    assert len(account.history()) == 1


@pytest.mark.parametrize(
    "solver", [GradientDescent(), PreconditionedDescent(), CoordinateDescent(), OutputPerturbation()]
)
@pytest.mark.parametrize("more", [{}, {"class_weight": "balanced"}, {"neighbours": "add-remove"}])
def test_an_epsilon_for_which_no_noise_can_be_drawn_is_not_charged(ledger, solver, more):
    if more.get("class_weight") and not solver.takes_weights:
        pytest.skip("it takes no weights")
    if more.get("neighbours") and isinstance(solver, OutputPerturbation):
        pytest.skip("it is refused for another reason")
    account = ledger.create("a", epsilon=100.0, delta=1e-3, neighbours=more.get("neighbours", "replace-one"))
    with pytest.raises(UnsupportedProblem, match=f"{NOISE}: its share of epsilon = 1e-12"):
        model(account, 1e-12, delta=1e-20, solver=solver, **more).fit(X, Y)
    assert len(account.history()) == 1


def test_an_evaluation_for_which_no_noise_can_be_drawn_is_not_charged(account):
    fitted = model(None).fit(X, Y)
    with pytest.raises(UnsupportedProblem, match=NOISE):
        evaluate(fitted, X, Y, epsilon=1e-12, delta=1e-20, ledger=str(account.address))
    assert len(account.history()) == 1


@pytest.mark.parametrize("strength", [1e100, 1e147, 1e200, 1e300])
@pytest.mark.parametrize("bounds", [IN_RANGES, None, Bounds(feature=1e-6)])
def test_a_penalty_that_outweighs_everything_gives_zero_and_no_singular_matrix(strength, bounds):
    for _ in range(3):
        fitted = model(None, penalty=L2(strength), bounds=bounds, solver=PreconditionedDescent()).fit(X, Y)
        assert np.abs(fitted.coef_).max() < 1e-6


def test_a_ridge_of_any_strength_is_no_error(account):
    bounds = Bounds(feature=1.0, target=(-1, 1))
    for alpha in (1e100, 1e200, 1e300):
        ridge = Ridge(1.0, delta=1e-7, alpha=alpha, bounds=bounds, ledger=str(account.address)).fit(
            X, X[:, 0]
        )
        assert np.abs(ridge.coef_).max() < 1e-6
    for inverse in (1e-150, 1e-200, 1e-300):
        assert np.abs(model(account, C=inverse).fit(X, Y).coef_).max() < 1e-6


def test_a_strong_l2_penalty_beside_greedy_steps_is_no_error(account):
    for inverse in (1e-150, 1e-300):
        fitted = model(account, C=inverse, solver=GreedyCoordinateDescent()).fit(X, Y)
        assert np.abs(fitted.coef_).max() < 1e-6


TOO_FAR = [
    ({"lower": 1e300}, "lower"),
    ({"upper": -1e300, "solver": GradientDescent()}, "upper"),
    ({"lower": 1e100, "solver": CoordinateDescent()}, "lower"),
    ({"lower": 1e20, "solver": GreedyCoordinateDescent()}, "start nearer to zero"),
    ({"solver": GreedyCoordinateDescent(warm_start=[1e120] * 4)}, "start nearer to zero"),
    ({"solver": GradientDescent(step_size=1e300)}, "smaller step_size"),
    ({"solver": CoordinateDescent(step_size=1e200), "penalty": None}, "smaller step_size"),
    ({"solver": GreedyCoordinateDescent(step_size=1e300), "penalty": None}, "smaller step_size"),
    ({"solver": GreedyCoordinateDescent(), "penalty": L1(1e300)}, "weaker penalty"),
    ({"solver": CoordinateDescent(second_moments=[1e-300] * 4)}, "larger units"),
    ({"solver": FrankWolfe(), "penalty": L1Ball(1e300)}, "radius of the L1Ball"),
]


@pytest.mark.parametrize(("settings", "words"), TOO_FAR)
def test_coefficients_that_must_overflow_are_not_charged(account, settings, words):
    with pytest.raises(UnsupportedProblem, match=words):
        model(account, **settings).fit(X, Y)
    assert len(account.history()) == 1


def newton(account=None, epsilon=0.7, **settings):
    return model(account, epsilon, penalty=None, solver=Newton(), **{"delta": None, **settings})


def test_a_newton_fit_that_must_be_undetermined_is_not_charged_and_the_words_say_what_would_do(account):
    wide = np.tile(X[:, :1], (3, 14))
    with pytest.raises(UnsupportedProblem) as refusal:
        newton(account).fit(wide, np.tile(Y, 3))
    words = str(refusal.value)
    assert "9,000 records are too few for 14 features at epsilon 0.7" in words
    assert (
        "12 features, epsilon 0.81 or 11,000 records would do" in words and "Newton(intervals=False)" in words
    )
    assert len(account.history()) == 1
    for better in (newton().plan(9_000, 12), newton(epsilon=0.81).plan(9_000, 14), newton().plan(11_000, 14)):
        assert better.hopeless is None and better.forecast.startswith("determined")
    for worse in (newton().plan(9_000, 13), newton(epsilon=0.8).plan(9_000, 14)):
        assert worse.hopeless is not None


def test_without_a_ledger_the_same_fit_is_refused():
    with pytest.raises(UnsupportedProblem, match="would hide every coefficient"):
        newton(None, 0.1).fit(X, Y)


def test_what_spends_nothing_runs_and_warns():
    with pytest.warns(PrivacyWarning, match="too few"):
        assert not newton(None, 0.1, random_state=0).fit(X, Y).determined_
    with pytest.warns(PrivacyWarning, match="too few"):
        model(None, 0.1, penalty=None, solver=Newton(intervals=False)).fit(X, Y)
    assert audit(newton(None, 0.1, delta=1e-6), runs=4).findings
    assert "undetermined" in str(newton(None, 0.1).plan(3_000, 4))


@pytest.mark.parametrize("n", [10, 300, 3_000, 30_000, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_auto_takes_no_newton_that_must_be_undetermined(kind, epsilon, n):
    more = {"C": math.inf} if kind is LogisticRegression else {}
    for p in (1, 4, 14):
        bounds = Bounds(feature=1.0, target=(-1, 1) if kind is LinearRegression else None)
        assert kind(epsilon, delta=1e-7, bounds=bounds, **more).plan(n, p).hopeless is None


def test_a_search_among_newtons_that_must_be_undetermined_is_not_charged(account):
    candidates = {"solver": [Newton(), Newton(leverage=4.0)]}
    with pytest.raises(UnsupportedProblem, match="noise would hide every coefficient of Newton"):
        PrivateSearch(newton(account), candidates, epsilon=0.3).fit(np.tile(X[:, :1], 14), Y)
    assert len(account.history()) == 1


def blocks():
    yield X, Y


def test_a_private_size_is_refused_before_the_charge_for_each_size_that_it_may_have(ledger, tmp_path):
    account = ledger.create("a", epsilon=100.0, delta=1e-3, neighbours="add-remove")
    # enough is left for gradients if there are many records, and not if there are few
    greedy = PreconditionedDescent(gram_share=0.95)
    estimator = model(account, solver=greedy, neighbours="add-remove")
    assert estimator.plan(1 << 20, 4).n_records == 1 << 20
    with pytest.raises(ValueError, match="gram_share must leave"):
        estimator.plan(100, 4)
    for table in ((X, Y), (np.tile(X, (40, 1)), np.tile(Y, 40)), (Stream(blocks, 3_000, 4),)):
        with pytest.raises(UnsupportedProblem, match="number of records is private.*gram_share"):
            estimator.fit(*table)
    assert len(account.history()) == 1


SOLVERS = {
    "auto": {"solver": "auto"},
    "auto, no penalty": {"solver": "auto", "penalty": None},
    "auto, l1, wide": {"solver": "auto", "penalty": "l1"},
    "gradient": {"solver": GradientDescent()},
    "batches": {"solver": GradientDescent(batch_size=100)},
    "preconditioned": {"solver": PreconditionedDescent()},
    "coordinate": {"solver": CoordinateDescent()},
    "greedy": {"solver": GreedyCoordinateDescent()},
    "newton": {"solver": Newton(intervals=False)},
    "newton with intervals": {"solver": Newton(), "penalty": None},
    "output": {"solver": OutputPerturbation()},
    "objective": {"solver": ObjectivePerturbation()},
    "frank-wolfe": {"solver": FrankWolfe(), "penalty": L1Ball(1.0)},
}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", SOLVERS)
def test_what_can_be_planned_for_the_sizes_that_are_tried_can_be_planned_for_all(name, epsilon):
    from dpglm.fit.recipe import budget_of
    from dpglm.fit.session import possible_counts
    from dpglm.plan.private_size import count_release

    estimator = model(None, epsilon, neighbours="add-remove", **SOLVERS[name])
    count = count_release(budget_of(epsilon, 1e-7, 1, Neighbours.ADD_REMOVE))
    tried = possible_counts(count.mechanism.noise)
    slow = name in ("objective", "batches")
    between = {round(n * factor) for n in tried for factor in ((2,) if slow else (1, 1.3, 2, 3))}
    for resident in (True, False):
        for p in (4,) if slow else (1, 20):
            for n in sorted(n for n in between if min(tried) <= n <= 1 << 20):
                assert estimator.plan(n, p, resident=resident).n_records == n


@pytest.mark.parametrize("n", [0, 1, 40, 700, 3_000])
@pytest.mark.parametrize(
    "name", ["auto", "auto, no penalty", "preconditioned", "newton", "gradient", "output"]
)
def test_a_private_size_that_is_paid_for_is_fitted(ledger, name, n):
    account = ledger.create("a", epsilon=100.0, delta=1e-3, neighbours="add-remove")
    estimator = model(account, neighbours="add-remove", **SOLVERS[name])

    def some():
        for start in range(0, n, 500):
            yield X[start : min(n, start + 500)], Y[start : min(n, start + 500)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(estimator.fit(X[:n], Y[:n]).coef_).all()
        if n:
            assert np.isfinite(estimator.fit(Stream(some, n, 4)).coef_).all()
    kinds = [entry.kind for entry in account.history()]
    assert kinds.count("reservation") == kinds.count("commitment") == 1 + bool(n)


def test_a_search_for_which_no_noise_can_be_drawn_is_not_charged(account):
    candidates = {"solver": [PreconditionedDescent(gram_share=1e-300)]}
    with pytest.raises(UnsupportedProblem, match=NOISE):
        PrivateSearch(model(account), candidates, runs=2).fit(X, Y)
    assert len(account.history()) == 1
