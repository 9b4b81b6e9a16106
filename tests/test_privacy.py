import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dpglm import Bounds, Budget, Guarantee, LogisticRegression, Ridge
from dpglm.accounting import Imprecision, compose, gaussian_delta, gaussian_mu
from dpglm.mechanisms.randomness import GAUSSIAN_DISTANCE
from dpglm.plan import Plan
from dpglm.privacy import rounded_up
from dpglm.solvers import CoordinateDescent, GradientDescent

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 4))
Y = np.sign(X[:, 0])


@pytest.fixture(scope="module")
def model():
    return LogisticRegression(epsilon=0.7, delta=1e-5, classes=[-1, 1]).fit(X, Y)


def test_the_printed_promise_names_everything_a_reader_needs(model):
    text = str(model.privacy_)
    for needed in (
        "epsilon = 0.7", "delta = 1e-05", "replace-one", "n = 300", "p = 4", "row norm <= 1",
        "clipped gradient", "Gaussian", "noise", "sensitivity", "closed form", "on a public grid",
        "keyed by the operating system", "not covered", "hyper-parameters", "any other statistic",
    ):  # fmt: skip
        assert needed in text.replace("\n             ", " "), needed


def test_the_promise_survives_json(model):
    assert Guarantee.from_dict(json.loads(model.privacy_.to_json())) == model.privacy_


@pytest.mark.parametrize(
    "solver", [GradientDescent(), GradientDescent(batch_size=50, steps=20), CoordinateDescent()]
)
def test_a_plan_without_data_is_the_plan_of_the_fit_and_survives_json(solver):
    estimator = Ridge(epsilon=0.5, solver=solver, bounds=Bounds(row_norm=1.0, target=(-1, 1)))
    plan = estimator.plan(300, 4)
    assert estimator.fit(X, Y).plan_ == plan
    assert Plan.from_dict(json.loads(plan.to_json())) == plan
    assert str(plan).startswith(plan.solver)


def test_a_gaussian_plan_reports_the_closed_form(model):
    (release,) = model.plan_.releases
    mu = math.sqrt(release.count) / release.mechanism.noise
    assert gaussian_delta(mu, model.privacy_.epsilon) == pytest.approx(1e-5, rel=1e-9)
    assert model.privacy_.epsilon == pytest.approx(0.7, abs=1e-9)
    assert model.privacy_.epsilon <= 0.7 + 1e-12


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("batch_size", [None, 30])
def test_no_plan_overspends(neighbours, epsilon, batch_size):
    solver = GradientDescent(batch_size=batch_size, steps=15)
    plan = LogisticRegression(epsilon, neighbours=neighbours, solver=solver).plan(300, 4)
    assert compose(plan.event).delta(epsilon) <= plan.budget.delta
    assert 0.99 * epsilon <= plan.epsilon <= epsilon


def test_one_vs_rest_pays_for_every_class():
    one = LogisticRegression(1.0).plan(1000, 5, n_classes=2)
    four = LogisticRegression(1.0, solver=GradientDescent(steps=one.steps)).plan(1000, 5, n_classes=4)
    assert four.releases[0].mechanism.noise == pytest.approx(2 * one.releases[0].mechanism.noise)
    assert four.price[four.releases[0].event(four.neighbours)] == 4 * one.steps
    assert four.price[Imprecision(GAUSSIAN_DISTANCE)] == 4 * one.steps * 6
    assert four.epsilon == pytest.approx(1.0)


def test_second_moments_take_their_share_of_the_budget():
    plan = LogisticRegression(1.0, solver=CoordinateDescent(share=0.2, steps=40)).plan(1000, 5)
    moments, steps = plan.releases
    spent = [release.count / release.mechanism.noise**2 for release in (moments, steps)]
    assert spent[0] / sum(spent) == pytest.approx(0.2)


def test_a_seeded_fit_says_that_it_is_not_private():
    with pytest.warns(UserWarning, match="not private"):
        model = LogisticRegression(random_state=0, classes=[-1, 1]).fit(X, Y)
    assert not model.privacy_.secure
    assert "NOT PRIVATE" in str(model.privacy_)


def test_a_fit_without_noise_says_that_it_is_not_private():
    model = LogisticRegression(float("inf"), classes=[-1, 1]).fit(X, Y)
    assert model.privacy_.epsilon == math.inf and model.privacy_.releases == ()
    assert "NOT PRIVATE" in str(model.privacy_)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((0.0, 1e-6), "epsilon"), ((-1.0, 1e-6), "epsilon"), ((float("nan"), 1e-6), "epsilon"),
     (("1", 1e-6), "epsilon"), ((1.0, 0.0), "delta"), ((1.0, 1.0), "delta")],
)  # fmt: skip
def test_an_impossible_budget_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        Budget(*arguments)


def test_delta_defaults_to_one_over_n_squared():
    assert LogisticRegression().plan(1000, 3).budget.delta == 1e-6


def test_a_delta_above_one_over_n_warns():
    with pytest.warns(UserWarning, match="exceeds 1/n"):
        LogisticRegression(delta=0.1, classes=[-1, 1]).fit(X, Y)


def test_a_printed_promise_is_never_shorter_than_the_true_one(model):
    shown = replace(model.privacy_, epsilon=1.00000049, delta=1.0049e-6)
    assert "epsilon = 1.00001, delta = 1.01e-06" in str(shown)
    assert rounded_up(0.7, 6) == "0.7" and rounded_up(9.4321e-10, 3) == "9.44e-10"


def test_numbers_of_any_type_are_taken_in_double_precision():
    plan = LogisticRegression(
        np.float32(0.1), solver=GradientDescent(steps=np.int64(3), clip=np.float32(0.3))
    )
    plan = plan.plan(300, 4)
    assert Plan.from_dict(json.loads(plan.to_json())) == plan
    assert plan.epsilon <= plan.budget.epsilon == float(np.float32(0.1))


def test_the_sampler_takes_next_to_nothing_of_delta_and_a_delta_below_that_is_refused(model):
    (release,) = model.plan_.releases
    without = math.sqrt(release.count) / gaussian_mu(0.7, 1e-5)
    assert release.mechanism.noise == pytest.approx(without, rel=1e-9)
    with pytest.raises(ValueError, match="delta"):
        LogisticRegression(0.7, delta=1e-300).plan(300, 4)


@pytest.mark.parametrize("epsilon", [100.0, 1e4])
def test_a_budget_that_promises_nearly_nothing_can_still_be_planned(epsilon):
    plan = LogisticRegression(epsilon).plan(300, 4)
    assert compose(plan.event).delta(epsilon) <= plan.budget.delta
    assert plan.epsilon <= epsilon
