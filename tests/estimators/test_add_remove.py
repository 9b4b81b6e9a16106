"""Fits whose number of records is private: everything follows from a released count."""

import json
import math
import warnings
from dataclasses import replace
from itertools import islice
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from dpglm import (
    Bounds,
    Budget,
    Ledger,
    LogisticRegression,
    Neighbours,
    PrivatePath,
    PrivateSearch,
    Ridge,
    Stream,
    evaluate,
    make_private_pipeline,
)
from dpglm.accounting import reserved
from dpglm.audit.auditor import examine
from dpglm.audit.cases import add_remove_target, add_remove_targets
from dpglm.cli import app
from dpglm.errors import PrivacyWarning, UnsupportedProblem
from dpglm.estimators.stored import model_from_json, model_to_json
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.penalties import L1, ElasticNet, L1Ball
from dpglm.plan import CountedPlan, Plan
from dpglm.plan.private_size import count_of, count_release, spare_of
from dpglm.privacy import Guarantee
from dpglm.queries.coordinate import CompiledScores
from dpglm.schema import Category, Number, Schema, Target
from dpglm.schema.source import Held
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (400, 3))
Y = np.where(X[:, 0] + 0.2 * RNG.standard_normal(400) > 0, 1, -1)
SOLVERS = {
    "gradient": (GradientDescent(steps=3), {}),
    "batches": (GradientDescent(steps=40, batch_size=200), {}),
    "coordinate": (CoordinateDescent(steps=5), {}),
    "greedy": (GreedyCoordinateDescent(steps=2, release="gaussian"), {}),
    "vertices": (FrankWolfe(steps=2), {"penalty": L1Ball(5.0)}),
    "dual": (DualCoordinateDescent(steps=2, batch_size=10**6), {"C": 0.1}),
    "objective": ("objective-perturbation", {"C": 0.1}),
    "output": ("output-perturbation", {"C": 0.01}),
    "norm": ("dual-frank-wolfe", {"penalty": ElasticNet(0.01, 0.1)}),
    "newton": (Newton(intervals=False), {}),
    "preconditioned": ("preconditioned-descent", {}),
}


def model(solver=None, epsilon=2.0, delta=1e-3, **settings):
    usual = {"classes": [-1, 1], "neighbours": "add-remove", "random_state": 1}
    solver = GradientDescent(steps=3) if solver is None else solver
    return LogisticRegression(epsilon, delta=delta, solver=solver, **{**usual, **settings})


@pytest.fixture(autouse=True)
def _seeds_are_known():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def test_the_default_delta_would_reveal_the_number_of_records():
    for action in (lambda one: one.fit(X, Y), lambda one: one.plan(400, 3)):
        with pytest.raises(ValueError, match="delta must be declared"):
            action(model(delta=None))


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_fits_and_keeps_within_what_was_reserved(name):
    solver, settings = SOLVERS[name]
    fitted = model(solver, **settings).fit(X, Y)
    plan = fitted.plan_
    assert np.isfinite(fitted.coef_).all() and plan.count is not None
    assert plan.event == reserved(2.0, 1e-3) and plan.epsilon <= 2.0
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.n_records != 400 and plan.table_size > 400
    assert Guarantee.from_json(fitted.privacy_.to_json()) == fitted.privacy_


def test_a_plan_that_costs_more_than_was_reserved_is_refused():
    plan = model().plan(400, 3)
    values = json.loads(plan.to_json())
    values["releases"][0]["noise"] *= 0.99
    with pytest.raises(ValueError, match="reserved"):
        Plan.from_dict(values)


def test_nothing_that_a_fit_releases_or_states_names_the_true_number():
    fitted = model().fit(X, Y)
    stated, counted = f"{fitted.privacy_} {fitted.plan_}", fitted.plan_.n_records
    assert counted != 400 and "400 records" not in stated and "n = 400" not in stated
    assert fitted.privacy_.public["n"].startswith(f"{counted}, a released count")
    assert "n, which is treated as public" not in stated


def test_no_count_is_farther_from_the_truth_than_the_table_may_be_large():
    """The sampler draws the integer part of a normal number from 0 to 37: the worst noise is simulated."""
    release = count_release(Budget(1.0, 1e-6))
    noise = release.mechanism.noise
    for n in (0, 1, 1000):
        counted = count_of(n - 38 * noise * (1 + 2.0**-18), release)
        assert counted >= max(1, noise)
        assert counted + spare_of(release) >= n
    grid, steps = (Gaussian(noise).grid(1.0, 1), noise * (1 + 2.0**-18))
    drawn = Gaussian(noise).release(np.zeros(1000), 1.0, Randomness(0))
    assert np.abs(drawn).max() < 38 * steps and grid < 1e-6


@pytest.mark.parametrize("layout", [np.array, sp.csr_array])
@pytest.mark.parametrize("name", SOLVERS)
def test_tables_of_no_and_of_one_record_are_fitted_like_any_other(name, layout):
    solver, settings = SOLVERS[name]
    for n in (0, 1):
        fitted = model(solver, **settings).fit(layout(np.full((n, 3), 0.5)), np.ones(n))
        assert np.isfinite(fitted.coef_).all() and fitted.predict(X[:2]).shape == (2,)


def test_without_noise_the_fit_is_the_minimum_and_the_number_is_exact():
    exact, other = (
        model("auto", epsilon=math.inf, delta=None, neighbours=relation).fit(X, Y)
        for relation in ("add-remove", "zero-out")
    )
    assert np.array_equal(exact.coef_, other.coef_) and exact.plan_.n_records == 400
    with pytest.raises(ValueError, match="minimum of 1"):
        model(epsilon=math.inf).fit(X[:0], Y[:0])


def test_arrays_sparse_tables_and_streams_give_the_same_bits():
    def read():
        yield from ((X[k : k + 150], Y[k : k + 150]) for k in range(0, 400, 150))

    for solver in (GradientDescent(steps=3), GradientDescent(steps=40, batch_size=200)):
        dense, sparse, stream = (
            model(solver).fit(*table) for table in ((X, Y), (sp.csr_array(X), Y), (Stream(read, 400, 3),))
        )
        assert np.array_equal(dense.coef_, stream.coef_)
        assert np.allclose(dense.coef_, sparse.coef_, rtol=1e-9)
        assert dense.plan_ == sparse.plan_


def test_a_guess_of_the_size_changes_the_plan_and_not_the_price():
    small, large = (model(GradientDescent(batch_size=100, steps=40)).plan(n, 3) for n in (1_000, 2_000))
    assert small.releases != large.releases and small.event == large.event


def test_the_penalty_follows_from_the_released_count():
    fitted = model(C=0.5).fit(X, Y)
    assert fitted._fitted_problem.penalty.strength == pytest.approx(1 / (0.5 * fitted.plan_.n_records))


def test_an_account_pays_a_price_that_is_known_before_the_count(tmp_path):
    address = f"sqlite:///{tmp_path}/budget.db"
    account = Ledger(address).create("table", epsilon=4, delta=1e-3, neighbours="add-remove")
    fits = [
        model(random_state=None, ledger=f"{address}#table").fit(X[:n], Y[:n]).privacy_.public["ledger"]
        for n in (400, 30)
    ]
    assert all("account table" in words for words in fits)
    plans = [entry.content["plan"] for entry in account.history() if entry.kind == "reservation"]
    assert plans[0] == plans[1] and "400" not in json.dumps(plans)
    spent = [entry.charge for entry in account.history() if entry.kind == "reservation"]
    assert spent[0] == spent[1]
    assert math.isclose(spent[0].mu, reserved(2.0, 1e-3).mu, rel_tol=1e-9)
    before = len(account.history())
    with pytest.raises(UnsupportedProblem):  # before anything is charged
        model(random_state=None, solver="dual-frank-wolfe", ledger=f"{address}#table").fit(X, Y)
    assert len(account.history()) == before
    assert isinstance(Plan.from_dict(plans[0]), CountedPlan)


def test_classes_are_balanced_and_facts_of_a_schema_learnt_after_the_count():
    balanced = model(class_weight="balanced").fit(X, Y)
    assert [release.query for release in balanced.plan_.learning] == ["record count", "class counts"]
    balanced.plan_.require_reserved()
    schema = Schema(
        {
            "a": Number(learn=True, widest=(-8, 8)),
            "b": Category(learn=True),
            "y": Target(classes=["n", "p"]),
        },
        row_norm="learn",
    )
    table = {"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v"), "y": np.where(Y > 0, "p", "n")}
    estimator = LogisticRegression(
        8.0, delta=1e-3, neighbours="add-remove", solver=GradientDescent(steps=3), random_state=1
    )
    fitted = make_private_pipeline(schema, estimator, learn_share=0.5).fit(table)
    assert len(fitted.plan_.learning) == 4
    fitted.plan_.require_reserved()
    assert {type(part).__name__ for part in fitted.schema_.columns.values()} >= {"Number", "Category"}
    for count in (0, 1):  # neighbours: an error of one of them would tell which it is
        few = pd.DataFrame({name: column[:count] for name, column in table.items()})
        stream = Stream(lambda few=few: iter([few]), count, 3)
        for raw in (few, stream, Held(stream)):
            make_private_pipeline(schema, estimator, learn_share=0.5).fit(raw)


def test_more_classes_regressions_and_weights_are_served():
    labels = np.digitize(X[:, 1], [-0.2, 0.2])
    many = model(classes=[0, 1, 2]).fit(X, labels)
    assert many.coef_.shape == (3, 3)
    bounds = Bounds(row_norm=1.0, target=(-1, 1))
    Ridge(2.0, delta=1e-3, neighbours="add-remove", bounds=bounds, random_state=1).fit(X, X[:, 0])
    weighed = model(bounds=Bounds(row_norm=1.0, weight=2.0))
    assert weighed.fit(X, Y, sample_weight=np.ones(400)).plan_.count is not None


def test_a_stored_model_and_the_command_line_keep_the_relation(tmp_path):
    schema = Schema({"a": Number(-1, 1), "y": Target(classes=["n", "p"])})
    estimator = LogisticRegression(1.0, delta=1e-5, neighbours="add-remove")
    fitted = make_private_pipeline(schema, estimator).fit({"a": X[:, 0], "y": np.where(Y > 0, "p", "n")})
    again = model_from_json(model_to_json(fitted))
    assert (again.plan_, again.privacy_) == (fitted.plan_, fitted.privacy_)
    place = tmp_path / "schema.toml"
    place.write_text(schema.to_toml())
    command = ["plan", str(place), "--rows", "400", "--neighbours", "add-remove"]
    shown = CliRunner().invoke(app, [*command, "--delta", "1e-5"])
    assert shown.exit_code == 0 and "record count" in shown.output
    assert CliRunner().invoke(app, command).exit_code == 2


def test_what_cuts_tables_by_position_or_divides_by_their_size_refuses_and_says_what_serves():
    search = PrivateSearch(model(random_state=None), {"C": [1.0, 2.0]}, delta=1e-3)
    for choice in (PrivatePath(model(random_state=None)), search):
        with pytest.raises(UnsupportedProblem, match="use neighbours"):
            choice.fit(X, Y)
    with pytest.raises(UnsupportedProblem, match="use neighbours"):
        evaluate(model().fit(X, Y), X, Y, epsilon=1.0, delta=1e-3, neighbours="add-remove")


def test_with_many_records_the_fit_is_as_good_as_that_of_zero_out():
    """The whole noise is larger by a half percent, and the count is off by a part in a thousand."""
    plans = {
        relation: model(neighbours=relation, delta=1e-6, epsilon=1.0).plan(100_000, 3)
        for relation in ("zero-out", "add-remove")
    }
    noises = {relation: plan.releases[-1].mechanism.noise for relation, plan in plans.items()}
    assert 1.0 < noises["add-remove"] / noises["zero-out"] < 1.006
    count = plans["add-remove"].count
    assert count.mechanism.noise < 50


def named(target):
    return type(target.estimator.solver).__name__


@pytest.mark.parametrize("target", list(islice(add_remove_targets(Budget(1.0, 0.01)), 5)), ids=named)
def test_every_replay_over_the_table_of_another_size_returns_the_same(target):
    report = examine(target, 4, random_state=3)
    assert not report.violated and len(report.findings) == 2


def test_transcripts_of_fits_show_seven_tenths_of_the_claim_and_no_more_than_it():
    """By the likelihood ratios of count and gradients, whose law is normal: mean and deviation are known."""
    target = replace(next(iter(add_remove_targets(Budget(1.0, 0.01)))), seeded=True)
    ratios = np.array([target.run(False, Randomness(seed))[0] for seed in range(80)])
    mu, most = ratios.std(), target.claim.event.mu
    assert 0.7 * most < mu < 1.4 * most
    assert abs(ratios.mean() - most**2 / 2) < 5 * most / math.sqrt(80)


class TrueSize(LogisticRegression):
    """Divides sums by the number of records, and not by the released count."""

    def _fit_table(self, table, *others):
        with mock.patch("dpglm.fit.session.count_of", lambda *_: table.shape[0] + 100):
            return super()._fit_table(table, *others)


class CheapCount(LogisticRegression):
    """Counts with a twentieth of the noise that is paid for."""

    def _curator(self, records, neighbours, randomness):
        curator = super()._curator(records, neighbours, randomness)
        give = curator.release

        def release(query, mechanism, *public, **more):
            return give(
                query, mechanism.scaled(0.05 if query.name == "record count" else 1.0), *public, **more
            )

        curator.release = release
        return curator


def known_bad(kind):
    return add_remove_target(
        kind(
            1.0,
            delta=0.01,
            neighbours="add-remove",
            solver=GradientDescent(steps=1, clip=0.1, step_size=0.1),
            bounds=Bounds(row_norm=1.0),
            classes=[-1, 1],
            fit_intercept=False,
            penalty=None,
        )
    )


def test_a_fit_that_divides_by_the_true_number_is_caught_by_replay():
    assert examine(known_bad(TrueSize), 4, random_state=0).violated
    assert not examine(known_bad(LogisticRegression), 4, random_state=0).violated


def test_a_count_with_less_noise_than_is_paid_for_is_refused():
    with pytest.raises(Exception, match="other than its plan"):
        CheapCount(1.0, delta=0.01, neighbours="add-remove", classes=[-1, 1]).fit(X, Y)


def test_the_words_of_the_relation_say_that_the_number_is_private():
    assert "private" in Neighbours.ADD_REMOVE.words
    meanings = {
        relation: model(neighbours=relation.value).fit(X, Y).privacy_.relation for relation in Neighbours
    }
    assert len(set(meanings.values())) == 3


def test_compiled_draws_of_greedy_descent_know_the_released_count_only(monkeypatch):
    found, of = [], CompiledScores.of
    monkeypatch.setattr(CompiledScores, "of", lambda *given: found.append(of(*given)) or found[-1])
    wide = sp.random_array((400, 40_000), density=0.002, format="csc", rng=np.random.default_rng(1))
    greedy = model(
        GreedyCoordinateDescent(steps=2), penalty=L1(1e-6), bounds=Bounds(feature=1.0, row_norm=3.0)
    )
    greedy.fit(wide, Y)
    (compiled,) = found
    assert compiled.n == greedy.plan_.n_records != 400
