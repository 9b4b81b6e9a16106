"""A choice along a fit, and a search: each within one budget, in all the places where models are used."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpglm
from dpglm import (
    Bounds,
    Ledger,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    PrivatePath,
    PrivateSearch,
    Ridge,
    Stream,
    make_private_pipeline,
)
from dpglm.accounting import Parallel, Search, cover_pure
from dpglm.errors import BudgetExceeded, PrivacyWarning, UnsupportedProblem
from dpglm.penalties import L1Ball
from dpglm.plan import Plan
from dpglm.schema import Number, Schema, Target
from dpglm.solvers import (
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    IterateChoice,
    Newton,
    OutputPerturbation,
    PreconditionedDescent,
)
from dpglm.tables import Split

N, P = 4_000, 4
QUICK = GradientDescent(steps=5)
BOUNDS = Bounds(feature=1.0)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, P))
    return X, np.where(X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.standard_normal(N) > 0, 1, -1)


def logistic(**settings):
    return LogisticRegression(**{"epsilon": 1.0, "classes": [-1, 1], "bounds": BOUNDS, **settings})


def searched(**settings):
    return PrivateSearch(logistic(solver=QUICK), {"C": [1e-4, 1.0]}, **{"runs": 3, **settings})


SOLVERS = {
    "gradient descent": (GradientDescent(steps=16), None),
    "preconditioned descent": (PreconditionedDescent(), None),
    "greedy coordinate descent": (GreedyCoordinateDescent(steps=16), None),
    "Frank-Wolfe": (FrankWolfe(steps=16, selection="gumbel"), L1Ball(5.0)),
    "Newton": (Newton(intervals=False), None),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_with_a_path_offers_its_models_and_one_is_taken(name, table):
    solver, penalty = SOLVERS[name]
    model = PrivatePath(logistic(solver=solver, penalty=penalty), share=0.1).fit(*table)
    plan = model.plan_
    assert plan.parts[0].solver == name
    assert plan.parts[0].n_records < N and plan.n_records == N
    assert plan.candidates >= 3 and plan.epsilon <= 1.0
    (event,) = plan.price
    assert isinstance(event, Parallel)
    assert model.best_params_["model"]
    assert model.best_estimator_.solver is solver
    assert model.score(*table) > 0.7
    assert Plan.from_json(plan.to_json()) == plan


def test_fit_and_choice_each_have_the_whole_budget(table):
    plan = PrivatePath(logistic(solver=GradientDescent(steps=10)), share=0.1).plan(N, P)
    fit = logistic(solver=GradientDescent(steps=10)).plan(plan.parts[0].n_records, P)
    assert plan.parts[0].epsilon == pytest.approx(fit.epsilon, rel=1e-6)
    assert plan["gain"].mechanism.noise <= 2.0 * (1 + 1e-9)  # that of a pure epsilon of 1
    assert plan.epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("fits", [1, 3])
def test_beside_a_gram_matrix_no_row_is_held_out_and_the_choice_has_a_share_of_the_budget(fits):
    more = {} if fits == 1 else {"classes": [0, 1, 2], "multi_class": "ovr"}
    path = PrivatePath(logistic(solver=PreconditionedDescent(), **more))
    plan = path.plan(20_000, P)
    (fit,) = plan.parts
    assert plan.held_out == 0 and fit.n_records == plan.judges == 20_000
    assert 0.01 <= plan.budget_share <= 0.05 and "on the same records" in plan.forecast
    assert plan.fits == fits and fit.epsilon < plan.epsilon <= 1.0
    assert plan.epsilon == pytest.approx(1.0, rel=1e-3)
    (choice,) = (event for event in plan.price_of_a_fit - fit.price_of_a_fit if event.kind == "exponential")
    assert choice.noise == plan["gain"].mechanism.noise
    assert Plan.from_json(plan.to_json()) == plan
    assert path.plan(500, P).releases == ()  # it would take more than 5 %


def test_a_fit_of_one_step_has_no_iterates_to_choose_but_sparse_models(table):
    X, y = table
    model = logistic(solver=IterateChoice(GradientDescent(steps=1), share=0.1), random_state=3)
    with pytest.warns(PrivacyWarning):
        model.fit(X, y)
    assert model.plan_.stops == () and model.plan_.candidates > 1


def test_a_stored_path_runs_to_the_same_model(table):
    from dpglm.curator import Curator
    from dpglm.data import as_data
    from dpglm.mechanisms import Randomness
    from dpglm.solvers import run

    X, y = table
    model = logistic(solver=IterateChoice(GradientDescent(steps=8), share=0.1), random_state=3)
    with pytest.warns(PrivacyWarning):
        model.fit(X, y)
    problem = model._fitted_problem
    curator = Curator(
        as_data(X, y.astype(float), problem.bounds, problem.constant(P)),
        model.plan_.neighbours,
        Randomness(3),
    )
    result = run(Plan.from_json(model.plan_.to_json()), problem, curator)
    assert np.array_equal(result.w[:P], model.coef_[0])


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivatePath(logistic(random_state=1, solver=GradientDescent(steps=8)), share=0.1),
        lambda: PrivatePath(
            logistic(random_state=1, solver=GradientDescent(steps=8, batch_size=500)), share=0.1
        ),
        lambda: PrivatePath(logistic(random_state=1, solver=PreconditionedDescent(steps=8)), share=0.1),
        lambda: PrivatePath(
            logistic(random_state=1, solver=PreconditionedDescent(steps=8)), budget_share=0.1
        ),
        lambda: PrivateSearch(logistic(random_state=1, solver=QUICK), {"C": [1e-4, 1.0]}, runs=3),
    ],
    ids=["path of gradients", "path of batches", "ridge path", "judged by all rows", "search"],
)
def test_the_same_seed_gives_the_same_model_on_arrays_sparse_tables_streams_and_dask(make, table):
    arrays = pytest.importorskip("dask.array")
    X, y = table

    def blocks():
        for start in range(0, N, 1_111):
            yield X[start : start + 1_111], y[start : start + 1_111]

    models = [make().fit(form, y) for form in (X, sp.csr_array(X), sp.csc_array(X))]
    models.append(make().fit(Stream(blocks, N, P)))
    models.append(make().fit(arrays.from_array(X, (1_111, P)), arrays.from_array(y, 1_111)))
    for model in models[1:]:
        assert np.array_equal(model.best_estimator_.coef_, models[0].best_estimator_.coef_)
        assert model.best_params_ == models[0].best_params_


def test_without_noise_the_path_ends_at_the_optimum_of_all_rows(table):
    plain = logistic(epsilon=float("inf"), C=0.1).fit(*table)
    path = PrivatePath(logistic(epsilon=float("inf"), C=0.1)).fit(*table)
    assert np.array_equal(path.best_estimator_.coef_, plain.coef_)
    search = PrivateSearch(logistic(), {"C": [1e-4, 1.0]}, epsilon=float("inf")).fit(*table)
    best = logistic(epsilon=float("inf"), **search.best_params_).fit(*table)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_estimator_.coef_ == pytest.approx(best.coef_, abs=1e-6)


def test_too_few_records_or_a_solver_without_a_path_leave_nothing_to_choose():
    few = PrivatePath(logistic()).plan(200, P)
    assert few.releases == () and few.parts[0].n_records == 200 and "nothing to choose" in str(few)
    one = PrivatePath(Ridge(alpha=100.0, solver=OutputPerturbation(), bounds=Bounds(1.0, target=(-1, 1))))
    assert one.plan(N, P).releases == ()


def test_a_search_says_what_is_left_for_each_try_and_that_an_even_split_leaves_less():
    search = searched(runs=10)
    plan = search.plan(N, P)
    assert "an even split over 10 tries would leave each epsilon" in str(plan)
    each = plan.parts[0].epsilon
    words = plan.forecast
    even = float(words.rsplit("epsilon ", 1)[1])
    assert 0.6 < each < 0.8 and each > 2 * even
    (event,) = [event for event in plan.price if isinstance(event, Search)]
    assert len(event.events) == 2
    assert plan.epsilon <= 1.0
    assert Plan.from_json(plan.to_json()) == plan
    assert {searched(runs=runs).plan(N, P).law for runs in (2, 30)} == {"logarithmic", "geometric"}


def test_a_search_finds_the_better_candidate_and_takes_its_loss_and_parameters(table):
    X, y = table
    found = [searched(runs=8, epsilon=4.0).fit(X, y) for _ in range(4)]
    assert sum(model.best_params_ == {"C": 1.0} for model in found) >= 1
    model = found[0]
    assert model.best_params_["C"] == model.best_estimator_.C
    assert model.predict_proba(X[:3]).shape == (3, 2)
    assert repr(model.best_estimator_._fitted_problem.penalty) == model.privacy_.public["penalty"]


def test_candidates_of_different_losses_are_scored_by_errors(table):
    svm = LinearSVC(classes=[-1, 1], bounds=BOUNDS)
    model = PrivateSearch(logistic(), [logistic(solver=QUICK), svm], runs=2, law="geometric").fit(*table)
    assert -0.6 < model.best_score_ < 0.05
    assert type(model.best_estimator_) in (LogisticRegression, LinearSVC)
    assert model.plan_.most == 1.0


def test_a_regression_is_searched_by_squared_error(table):
    X, _ = table
    y = X[:, 0] / 2
    ridge = Ridge(bounds=Bounds(feature=1.0, target=(-1, 1)))
    model = PrivateSearch(ridge, {"alpha": [1.0, 1e6]}, runs=6, epsilon=4.0, law="poisson").fit(X, y)
    assert model.plan_.most == 0.25
    assert model.predict(X).shape == (N,)


@pytest.mark.parametrize("first", [0, 1])
def test_candidates_with_different_links_are_scored_by_their_own_predictions(first):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    y = rng.poisson(np.exp(1.0 + 1.5 * X[:, 0])).astype(float)
    bounds = Bounds(feature=1.0, target=(0, 30))
    models = [LinearRegression(bounds=bounds), PoissonRegressor(alpha=0, bounds=bounds)]
    order = [models[first], models[1 - first]]
    search = PrivateSearch(order[0], order, epsilon=np.inf).fit(X, y)
    assert isinstance(search.best_estimator_, PoissonRegressor)


def test_more_than_two_classes_are_chosen_for_one_by_one(table):
    X, _ = table
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    base = logistic(classes=[0, 1, 2], epsilon=4.0, solver=QUICK, multi_class="ovr")
    path = PrivatePath(base, share=0.1).fit(X, y)
    search = PrivateSearch(base, {"C": [0.1, 1.0]}, runs=2, epsilon=4.0).fit(X, y)
    for model in (path, search):
        assert len(model.best_params_) == 3 and model.plan_.fits == 3 and model.plan_.epsilon <= 4.0
        assert model.predict_proba(X[:2]).shape == (2, 3)


def test_choices_work_behind_a_schema_and_inside_of_pipelines(table):
    X, y = table
    schema = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Target(classes=[-1, 1])})
    raw = {"a": X[:, 0], "b": X[:, 1], "y": y}
    for make in (
        lambda model: PrivatePath(model, share=0.1),
        lambda model: PrivateSearch(model, {"C": [0.1, 1.0]}, runs=2),
    ):
        model = make(make_private_pipeline(schema, LogisticRegression(epsilon=1.0))).fit(raw)
        assert model.score(raw) > 0.6
        assert "declared columns" in model.privacy_.public["schema"]
        assert model.plan(N).n_records == N
    scaled = make_pipeline(dpglm.BoundsScaler(-1, 1), PrivatePath(logistic())).fit(X, y)
    assert scaled.predict(X).shape == (N,)


@pytest.mark.parametrize(
    ("make", "epsilon", "most"),
    [
        (lambda model: PrivatePath(model, share=0.1), 4.0, cover_pure(1.0)),
        (lambda model: PrivateSearch(model, {"C": [0.1, 1.0]}, runs=3), 1.5, 0.31),
    ],
    ids=["path", "search"],
)
def test_an_account_is_charged_once_for_the_whole_choice(make, epsilon, most, table, tmp_path):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    account = Ledger(url).create("table", epsilon=epsilon, delta=1e-6)
    model = make(logistic(ledger=f"{url}#table")).fit(*table)
    assert [entry.kind for entry in account.history()] == ["opening", "reservation", "commitment"]
    assert account.history()[1].charge.mu < most
    if epsilon == 1.5:
        return  # to look for an epsilon that fits takes seconds
    with pytest.raises(BudgetExceeded):
        model.fit(*table)


def test_the_progress_and_the_log_of_a_search_do_not_say_how_many_tries_there_were(table, capsys):
    plans = set()
    for _ in range(3):
        model = PrivateSearch(logistic(verbose=1, solver=QUICK), {"C": [0.1, 1.0]}, runs=3).fit(*table)
        plans.add(json.dumps(model.plan_.to_dict()))
    assert len(plans) == 1
    assert len(set(capsys.readouterr().out.split("search: ")[1:])) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PrivatePath(3), "estimator must be one of dpglm"),
        (lambda: PrivateSearch(logistic(), {"epsilon": [1.0, 2.0]}), "candidates share"),
        (lambda: PrivateSearch(logistic(), {"fit_intercept": [True, False]}), "same fit_intercept"),
        (lambda: PrivateSearch(logistic(), {"bounds": [BOUNDS, Bounds(1.0)]}), "same bounds"),
        (lambda: PrivateSearch(logistic(), []), "at least one candidate"),
        (lambda: PrivateSearch(logistic(), [LinearRegression()]), "all be classifiers"),
        (lambda: PrivateSearch(logistic(), [logistic(neighbours="zero-out")]), "neighbours"),
        (lambda: PrivateSearch(logistic(), {"C": [1.0]}, runs=1), "runs must be"),
        (lambda: PrivateSearch(logistic(), {"C": [1.0]}, law="binomial"), "law must be one of"),
        (lambda: PrivatePath(logistic(), share=1.5), "share must be"),
        (lambda: PrivatePath(logistic(), budget_share=0.0), "budget_share must be"),
        (lambda: PrivatePath(logistic(), share=0.1, budget_share=0.1), "give one of them"),
    ],
)
def test_what_cannot_be_chosen_is_refused_before_a_record_is_read(make, words, table):
    with pytest.raises(ValueError, match=words):
        make().fit(*table)


CHOICES = {
    "path": lambda model: PrivatePath(model),
    "search": lambda model: PrivateSearch(model, {"C": [0.1, 1.0]}, runs=2, epsilon=model.epsilon),
}


@pytest.mark.parametrize("name", CHOICES)
def test_weights_and_offsets_count_in_fits_and_scores(name, table):
    X, y = table
    rng = np.random.default_rng(1)
    beside = {"sample_weight": rng.uniform(0, 2, N), "offset": rng.uniform(-1, 1, N)}
    bounds = Bounds(feature=1.0, weight=2.0, offset=(-1, 1))
    exact = CHOICES[name](logistic(bounds=bounds, epsilon=np.inf)).fit(X, y, **beside)
    plain = logistic(bounds=bounds, epsilon=np.inf, C=getattr(exact.best_estimator_, "C", 1.0))
    assert exact.best_estimator_.coef_ == pytest.approx(plain.fit(X, y, **beside).coef_, abs=1e-6)
    model = CHOICES[name](logistic(bounds=bounds, epsilon=4.0, solver=QUICK)).fit(X, y, **beside)
    assert model.plan_.releases and model.plan_.epsilon <= 4.0
    margins = model.decision_function(X, offset=beside["offset"])
    assert margins == pytest.approx(model.decision_function(X) + beside["offset"], abs=1e-12)
    with pytest.raises(UnsupportedProblem, match="GreedyCoordinateDescent takes no weights"):
        CHOICES[name](logistic(bounds=bounds, solver=GreedyCoordinateDescent())).fit(X, y, **beside)


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_records_of_weight_zero_do_not_choose(table):
    X, y = table
    held_out = Split(0.1).held_out.taken(0, N)
    bounds = Bounds(feature=1.0, weight=1.0)
    weights = np.ones(N)
    weights[held_out[1:]] = 0.0
    found = []
    for label in (1, -1):
        other = y.copy()
        other[held_out[1:]] = label
        model = PrivatePath(logistic(bounds=bounds, random_state=5, solver=QUICK), share=0.1)
        found.append(model.fit(X, other, sample_weight=weights).best_estimator_.coef_)
    assert np.array_equal(*found)


@pytest.mark.parametrize("solver", [PreconditionedDescent(), GradientDescent()], ids=["Gram", "no Gram"])
def test_a_sparse_model_is_taken_for_a_sparse_truth_and_none_for_a_dense_one(solver):
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(0, 0.4, (6_000, 100)), -1, 1)
    dense = X @ rng.normal(0, 0.4, 100)
    for z, is_sparse in ((4 * X[:, 0] - 4 * X[:, 1], True), (dense, False)):
        y = np.where(z + rng.logistic(size=len(z)) > 0, 1, -1)
        model = PrivatePath(logistic(solver=solver, random_state=0), share=0.2)
        with pytest.warns(PrivacyWarning):
            chosen = model.fit(X, y).best_params_["model"]
        assert ("feature" in chosen) == is_sparse
        used = np.count_nonzero(model.best_estimator_.coef_)
        assert used < 50 if is_sparse else used == 100


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_all_rows_choose_few_features_among_columns_of_noise_where_no_row_can_be_spared():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3_000, 150))
    y = np.clip(X[:, 0] / 2 - X[:, 1] / 2 + 0.2 * rng.standard_normal(3_000), -1, 1)
    base = LinearRegression(epsilon=2.0, bounds=Bounds(feature=1.0, target=(-1, 1)), random_state=0)
    path = PrivatePath(base).fit(X[:2_500], y[:2_500])
    assert path.plan_.held_out == 0 and "feature" in path.best_params_["model"]
    alone = clone(base).fit(X[:2_500], y[:2_500])
    assert path.score(X[2_500:], y[2_500:]) > alone.score(X[2_500:], y[2_500:]) + 0.02


def test_a_handicap_makes_the_whole_fit_as_likely_as_its_odds_say():
    plan = PrivatePath(logistic(solver=GradientDescent(steps=16))).plan(40_000, P)
    release, others = plan.releases[0], plan.candidates - 1
    scores = np.append(0.0, np.full(others, -plan.handicap))
    scores[1:] += 0.2 * plan.most * np.sqrt(plan.held_out)  # what rows show by chance comes on top
    found = release.mechanism.probabilities(scores, 2 * plan.most)
    assert found[0] == pytest.approx(0.8, abs=1e-3)
    assert 0.02 <= plan.share <= 0.05


def test_choices_are_estimators_of_scikit_learn(table):
    for model in (PrivatePath(logistic(), share=0.1), searched(law="geometric")):
        assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
        assert not hasattr(clone(model), "best_estimator_")
        assert hasattr(model, "predict_proba")
    assert not hasattr(PrivatePath(LinearSVC()), "predict_proba")
    model = PrivatePath(logistic())
    with pytest.raises(AttributeError, match="best_estimator_"), warnings.catch_warnings():
        model.best_estimator_  # noqa: B018


def test_a_search_fits_three_declared_classes_one_against_the_rest(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_500, 3))
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    ledger = Ledger(f"sqlite:///{tmp_path / 'b.db'}")
    account = ledger.create("a", epsilon=9.0, delta=1e-4, neighbours="replace-one")
    estimator = LogisticRegression(classes=[0, 1, 2], ledger=str(account.address))
    search = PrivateSearch(estimator, {"C": [0.1, 1.0]}, epsilon=4.0, runs=2).fit(X, y)
    assert search.best_estimator_._fitted_problem.outputs == 1 and len(search.best_index_) == 3
    margins = search.decision_function(X[:5])
    positive = 1 / (1 + np.exp(-margins))
    assert np.allclose(search.predict_proba(X[:5]), positive / positive.sum(axis=1, keepdims=True))
