"""The facts of a report: complete, within the promise, and for machines."""

from __future__ import annotations

import json
import math

import jsonschema
import numpy as np
import pytest
from scipy.stats import norm

from dpglm import Guarantee, LogisticRegression, accounting
from dpglm.report import SCHEMAS, json_schema, statement
from dpglm.report.statement import guesses, measures, shares
from dpglm.solvers import GradientDescent, GreedyCoordinateDescent

from . import facts

KINDS = sorted(facts.MODELS)


VALIDATORS = {name: jsonschema.Draft202012Validator(json_schema(name)) for name in SCHEMAS}


def checked(values, name):
    problems = [f"{error.json_path}: {error.message:.200}" for error in VALIDATORS[name].iter_errors(values)]
    assert problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_promises_and_statements_of_all_models_validate_against_the_published_schemas(kind):
    checked(json.loads(facts.model(kind).privacy_.to_json()), "promise")
    checked(json.loads(facts.report(kind).json()), "statement")


def test_a_statement_with_scores_and_an_audit_validates_too():
    stated = facts.model("intervals").report(evaluation=facts.scores(), audit=facts.VERDICT).facts
    checked(stated, "statement")
    assert stated["evaluation"]["scores"][0]["metric"] == "accuracy"
    assert stated["evaluation_headline"] == facts.scores().privacy.headline
    assert statement(facts.model("intervals"), evaluation=facts.scores().to_dict())["evaluation"] is not None


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_schemas_are_schemas_and_refuse_what_is_not_theirs(name):
    jsonschema.Draft202012Validator.check_schema(json_schema(name))
    values = (
        facts.model("pipeline").privacy_.to_dict() if name == "promise" else facts.report("pipeline").facts
    )
    for wrong in (
        {**values, "version": 99}, {**values, "surplus": 1}, {**values, "releases": [{}]},
        {name: value for name, value in values.items() if name != "digest"},
    ):  # fmt: skip
        assert not VALIDATORS[name].is_valid(wrong)
    with pytest.raises(ValueError, match="one of"):
        json_schema("plan")


def test_promises_are_versioned_and_those_without_a_version_are_still_read():
    from dpglm import strict

    promise = facts.model("pipeline").privacy_
    values = promise.to_dict()
    assert (values["format"], values["version"]) == ("dpglm promise", 1)
    old = {name: value for name, value in values.items() if name not in ("format", "version", "digest")}
    assert Guarantee.from_dict(strict.sealed(old)) == promise
    for wrong in ({"version": 2}, {"format": "dpglm plan"}):
        new = {name: value for name, value in values.items() if name != "digest"} | wrong
        with pytest.raises(ValueError, match="cannot read"):
            Guarantee.from_dict(strict.sealed(new))


def plan(epsilon=1.0, solver=None, n=10_000, **more):
    chosen = solver or GradientDescent(steps=10)
    return LogisticRegression(epsilon, classes=[0, 1], solver=chosen, **more).plan(n, 20)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_measures_of_gaussian_plans_are_those_of_their_mu(epsilon):
    made = plan(epsilon)
    found = measures(made, 10_000)
    mu = accounting.gaussian_mu(epsilon, 1e-8)
    assert found["exact"] and found["mu"] == pytest.approx(mu, rel=1e-6)
    assert found["rho"] == pytest.approx(mu**2 / 2, rel=1e-6)
    assert found["guess"]["right"] == pytest.approx(norm.cdf(mu / 2), rel=1e-6)
    # the power of the best test at a level of 1 %, from points of the curve: never below it
    power = norm.cdf(norm.ppf(0.01) + mu)
    assert power <= found["guess"]["caught"] <= 1.25 * power
    assert [one["name"] for one in found["epsilons"]] == ["the delta of the fit", "a usual delta", "1/n"]
    for one in found["epsilons"]:
        assert accounting.gaussian_delta(mu, one["epsilon"]) <= one["delta"] * (1 + 1e-9)
    assert all(delta >= accounting.gaussian_delta(mu, x) * (1 - 1e-6) for x, delta in found["curve"])


@pytest.mark.parametrize(
    "solver", [GreedyCoordinateDescent(steps=4), GradientDescent(steps=20, batch_size=100)]
)
def test_measures_of_other_plans_have_a_covering_mu_and_no_rho(solver):
    made = plan(solver=solver)
    found = measures(made, None)
    assert not found["exact"] and found["rho"] is None and found["mu"] > 0
    for x, delta in found["curve"]:
        assert accounting.compose(made.event).delta(x) <= delta
        assert delta <= accounting.gaussian_delta(found["mu"], x) + found["slack"] + 1e-12
    assert len(found["epsilons"]) == 2  # a private number of records makes no deltas
    assert sum(shares(made)) == pytest.approx(1)


def test_guesses_by_the_curve_are_never_above_those_by_epsilon_and_delta():
    for epsilon in (0.1, 1.0, 3.0):
        mu = accounting.gaussian_mu(epsilon, 1e-6)
        points = [[x, accounting.gaussian_delta(mu, x)] for x in np.linspace(0, 3 * epsilon, 30)]
        found = guesses(points, epsilon, 1e-6)
        assert 0.5 < found["right"] <= found["right_by_epsilon"] < 1
        assert found["false_alarms"] <= found["caught"] <= 1


def test_infinite_epsilons_and_hopeless_deltas_are_stated_as_such():
    assert measures(plan(math.inf), 100) is None
    stated = facts.report("no noise").facts
    assert stated["measures"] is None and stated["privacy"]["epsilon"] == "inf" and not stated["private"]
    weak = measures(plan(200.0, n=100), 100)
    assert weak["guess"]["right"] == pytest.approx(1) and weak["guess"]["caught"] <= 1


def test_shares_add_up_and_a_round_has_one_share():
    for kind in ("pipeline", "greedy", "batches", "objective", "three classes"):
        lines = facts.report(kind).facts["releases"]
        assert sum(line["share"] or 0 for line in lines) == pytest.approx(1), kind
        assert all((line["share"] is None) == line["follows"] for line in lines), kind
    assert all(line["share"] is None for line in facts.report("search").facts["releases"])


def test_coefficients_are_those_of_the_model_in_units_of_the_columns():
    model = facts.model("pipeline")
    raw = model.raw_coefficients()
    (fit,) = model.report().facts["fits"]
    rows = {row["name"]: row for row in fit["coefficients"]}
    assert {name: row["value"] for name, row in rows.items()} == {**raw.values, "intercept": raw.intercept}
    assert rows["age"]["range"] == pytest.approx(72) and rows["intercept"]["range"] is None
    assert rows['job <script>alert("1")</script>=nurse & <b>']["range"] == pytest.approx(1)
    sure = facts.model("intervals")
    (fit,) = sure.report(level=0.9).facts["fits"]
    ends = [(row["low"], row["high"]) for row in fit["coefficients"]]
    assert np.allclose(ends, sure.summary(0.9).blocks[0].intervals(0.9)) and fit["deviance"] is not None
    assert len(facts.report("three classes").facts["fits"]) == 3


def test_a_private_number_of_records_and_persons_are_stated_as_the_promise_has_them():
    stated = facts.report("private size").facts
    assert stated["records_are"] == "released" and stated["privacy"]["neighbours"] == "add-remove"
    names = [one["name"] for one in stated["measures"]["epsilons"]]
    assert "1/n" not in names and stated["measures"]["rho"] is None
    page = facts.report("private size").html()
    assert f"about {stated['records']:,} records (a released count)" in page and "in the table or not" in page
    assert any(line["query"] == "record count" and line["share"] > 0 for line in stated["releases"])
    stated = facts.report("persons").facts
    assert (stated["unit"], stated["records"], stated["records_are"]) == ("person", 500, "public")
    page = facts.report("persons").html()
    assert "500 persons" in page and "records of every person but one" in page and "one person" in page
