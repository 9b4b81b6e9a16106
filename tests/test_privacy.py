import copy
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from dpglm import Bounds, Budget, Guarantee, LogisticRegression, Neighbours, Ridge
from dpglm.accounting import Imprecision, compose, gaussian_delta, gaussian_mu
from dpglm.mechanisms.randomness import GAUSSIAN_DISTANCE
from dpglm.plan import Plan
from dpglm.privacy import rounded_up
from dpglm.solvers import CoordinateDescent, GradientDescent

from .pages import Page

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 4))
Y = np.sign(X[:, 0])


@pytest.fixture(scope="module")
def model():
    solver = GradientDescent(clip=0.5)
    return LogisticRegression(epsilon=0.7, delta=1e-5, classes=[-1, 1], solver=solver).fit(X, Y)


def test_the_printed_promise_names_everything_a_reader_needs(model):
    text = str(model.privacy_)
    for needed in (
        "epsilon = 0.7", "delta = 1e-05", "replace-one", "n = 300", "p = 4", "row norm <= 1",
        "clipped gradient", "Gaussian", "noise", "sensitivity", "closed form", "on a public grid",
        "keyed by the operating system", "not covered", "hyper-parameters", "any other statistic",
    ):  # fmt: skip
        assert needed in text.replace("\n             ", " "), needed


@pytest.fixture(scope="module")
def unprotected():
    return LogisticRegression(float("inf"), classes=[-1, 1]).fit(X, Y)


@pytest.mark.parametrize("which", ["model", "unprotected"])
def test_the_promise_survives_strict_json_and_reads_the_same(which, request):
    promise = request.getfixturevalue(which).privacy_
    json.loads(promise.to_json(), parse_constant=pytest.fail)
    for again in (Guarantee.from_json(promise.to_json()), Guarantee.from_dict(promise.to_dict())):
        assert again == promise and str(again) == str(promise)
    assert pickle.loads(pickle.dumps(promise)) == promise == copy.deepcopy(promise)


LIES = [
    ("epsilon", -3, "epsilon"), ("epsilon", 0, "edited"), ("epsilon", math.nan, "epsilon"),
    ("epsilon", "0.7", "epsilon"), ("epsilon", True, "epsilon"), ("epsilon", None, "epsilon"),
    ("delta", 0, "delta"), ("delta", 1, "delta"), ("delta", -1e-6, "delta"), ("delta", "1e-6", "delta"),
    ("neighbours", "other-tables", "neighbours"), ("neighbours", None, "neighbours"),
    ("public", "n = 300", "public"), ("public", {1: 2}, "public"), ("public", {"n": math.nan}, "n must"),
    ("releases", [], "epsilon"), ("releases", "none", "releases"), ("releases", [{}], "release"),
    ("composition", 1, "composition"), ("composition", "", "composition"),
    ("randomness", None, "randomness"), ("randomness", ["secret"], "randomness"),
    ("secure", "false", "secure"), ("secure", 1, "secure"), ("secure", None, "secure"),
    ("not_covered", [], "not_covered"), ("not_covered", "nothing", "not_covered"),
    ("not_covered", [None], "not_covered"), ("surely", True, "surely"),
]  # fmt: skip


def test_a_promise_for_another_relation_than_it_was_made_for_is_refused():
    private = LogisticRegression(classes=[-1, 1], neighbours="zero-out").fit(X, Y).privacy_
    with pytest.raises(ValueError, match="edited"):
        Guarantee.from_dict(private.to_dict() | {"neighbours": "replace-one"})
    with pytest.raises(ValueError, match="edited"):
        Guarantee.from_dict(private.to_dict() | {"epsilon": 1e-9})


def test_a_fit_that_spends_no_epsilon_says_so():
    solver = GradientDescent(steps=1, clip=0.5, batch_size=1)
    fitted = LogisticRegression(delta=0.01, classes=[-1, 1], solver=solver).fit(X, Y)
    assert fitted.privacy_.epsilon == 0 and Guarantee.from_json(fitted.privacy_.to_json()) == fitted.privacy_
    assert "(0, 0.01)-differential privacy" in str(fitted.privacy_)


def test_a_tiny_epsilon_beside_a_large_delta_has_a_price():
    plan = LogisticRegression(1e-12, delta=0.5, classes=[0, 1], solver=GradientDescent(steps=1)).plan(300, 3)
    assert 0 <= plan.epsilon <= 1e-12


@pytest.mark.parametrize(("field", "value", "word"), LIES)
def test_a_stored_promise_that_lies_is_refused_by_name(model, field, value, word):
    with pytest.raises(ValueError, match=word):
        Guarantee.from_dict(model.privacy_.to_dict() | {field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [("count", 0), ("count", -5), ("count", 2.5), ("count", True), ("noise", -1.0), ("noise", math.nan),
     ("noise", "3"), ("noise", math.inf), ("query", 3), ("mechanism", None), ("sensitivity", 2.0),
     ("sampling", {"kind": "Everyone"}), ("entries", 0), ("follows", "no"), ("parameters", []),
     ("parameters", {"neighbours": "zero-out"}), ("unknown", 1)],
)  # fmt: skip
def test_a_stored_promise_with_a_release_that_lies_is_refused_by_name(model, field, value):
    values = model.privacy_.to_dict()
    values["releases"][0][field] = value
    with pytest.raises(ValueError, match="neighbours" if field == "parameters" and value else field):
        Guarantee.from_dict(values)


def test_a_promise_about_a_release_without_noise_is_refused(model):
    values = model.privacy_.to_dict()
    values["releases"][0]["noise"] = 0.0
    with pytest.raises(ValueError, match="epsilon must be infinite"):
        Guarantee.from_dict(values)


@pytest.mark.parametrize("part", ["epsilon", "secure", "not_covered", "releases"])
def test_a_stored_promise_without_one_of_its_parts_is_refused(model, part):
    values = model.privacy_.to_dict()
    del values[part]
    with pytest.raises(ValueError, match=part):
        Guarantee.from_dict(values)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "1e999"])
def test_a_promise_with_numbers_that_json_does_not_have_is_refused(model, token):
    content = model.privacy_.to_json().replace('"delta": 1e-05', f'"delta": {token}')
    with pytest.raises(ValueError, match=token):
        Guarantee.from_json(content)


def test_public_facts_and_secrecy_may_be_numpy_scalars(model):
    promise = replace(
        model.privacy_,
        secure=np.True_,
        public={"n": np.int64(3), "limit": np.inf, "range": (0, np.float64(1))},
    )
    assert promise.secure is True
    assert Guarantee.from_json(promise.to_json()) == promise
    assert promise.public == {"n": 3, "limit": "inf", "range": [0, 1.0]}


def best_guess(epsilon, delta):
    """Share of right guesses about the worst mechanism that (epsilon, delta) allows."""
    low, high = (1 - delta) / (1 + math.exp(epsilon)), (1 - delta) / (1 + math.exp(-epsilon))
    here, there = [delta, high, low, 0.0], [0.0, low, high, delta]
    assert sum(here) == pytest.approx(1) and sum(there) == pytest.approx(1)
    return sum(max(pair) for pair in zip(here, there, strict=True)) / 2


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_the_meaning_of_a_promise_is_what_the_worst_mechanism_lets_one_guess(
    model, neighbours, epsilon, delta
):
    promise = replace(model.privacy_, epsilon=epsilon, delta=delta, neighbours=neighbours)
    share = float(promise.meaning.split("at most ")[1].split(" %")[0]) / 100
    best = best_guess(epsilon, delta)
    assert best <= share <= best + 0.01 * (1 - best)
    assert ("null record" in promise.meaning) == (neighbours == "zero-out")
    assert ("two candidates" in promise.meaning) == (neighbours == "replace-one")


def test_epsilon_one_lets_one_be_right_in_at_most_73_of_100_guesses(model):
    assert "at most 73.2 % of the time" in str(replace(model.privacy_, epsilon=1.0)).replace(
        "\n" + 13 * " ", " "
    )
    assert "hides little" in replace(model.privacy_, epsilon=50.0).meaning
    assert "hides little" in replace(model.privacy_, epsilon=1e6).meaning


def test_a_promise_of_nothing_has_no_meaning(model, unprotected):
    for promise in (unprotected.privacy_, replace(model.privacy_, secure=False)):
        assert promise.meaning == "" and "in words" not in str(promise)
        assert "In words" not in promise._repr_html_() and "not private" in promise._repr_html_()


def test_promise_and_plan_show_themselves_at_a_prompt(model):
    assert repr(model.privacy_) == str(model.privacy_) and "epsilon = 0.7" in repr(model.privacy_)
    assert repr(model.plan_) == str(model.plan_) and repr(model.plan_).startswith("gradient descent: 300")
    assert repr(model.plan_.budget) == "Budget(epsilon=0.7, delta=1e-05)"


TAGS = {
    "b", "dd", "details", "div", "dl", "dt", "li", "p", "span", "summary", "table", "tbody", "td", "th",
    "thead", "tr", "ul",
}  # fmt: skip


def read(shown):
    """The words of what a notebook shows, which must need nothing from elsewhere."""
    page = Page(shown._repr_html_())
    assert page.tags <= TAGS
    for _, attributes in page.seen:
        assert set(attributes) <= {"style", "scope"}
        assert not any("url" in value or "http" in value for value in attributes.values())
    return page.words


def test_a_notebook_shows_the_whole_promise_and_needs_nothing_else(model, unprotected):
    promise = model.privacy_
    words = read(promise)
    for needed in ("private", promise.headline, f"In words: {promise.meaning}.", promise.composition,
                   promise.randomness, *promise.not_covered, "Gaussian", "clipped gradient",
                   *(str(value) for value in promise.public.values())):  # fmt: skip
        assert needed in words, needed
    assert "not private" in read(unprotected.privacy_)


@pytest.mark.parametrize("epsilon", [0.7, math.inf])
def test_a_notebook_shows_the_plan(epsilon):
    plan = LogisticRegression(epsilon, solver=GradientDescent(clip=0.5), multi_class="ovr").plan(
        300, 4, n_classes=3
    )
    words = read(plan)
    assert plan.settings_in_words in words and "300 records x 4 features" in words
    assert ("not private" in words) == math.isinf(epsilon)
    assert f"{plan.releases[0].mechanism.noise:.4g}" in words and "clipped gradient" in words


def test_what_a_stored_promise_says_is_text_and_never_part_of_the_page(model):
    attack = "<script>alert('x')</script><img src=x onerror=1>\"&amp;"
    promise = replace(model.privacy_, public={attack: attack}, composition=attack, not_covered=(attack,))
    assert "<script" not in promise._repr_html_() and "<img" not in promise._repr_html_()
    words = read(promise)
    assert words.count(attack) == 3 and f"public: {attack}" in words


def test_every_relation_has_a_meaning(model):
    meanings = {replace(model.privacy_, neighbours=relation.value).meaning for relation in Neighbours}
    assert len(meanings) == len(Neighbours)


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
    one, four = (
        LogisticRegression(1.0, solver=GradientDescent(steps=20, clip=0.5), multi_class="ovr").plan(
            1000, 5, n_classes=classes
        )
        for classes in (2, 4)
    )
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
     (("1", 1e-6), "epsilon"), ((True, 1e-6), "epsilon"), ((1.0, 0.0), "delta"), ((1.0, 1.0), "delta"),
     ((1.0, "1e-6"), "delta"), ((1.0, None), "delta"), ((1.0, math.nan), "delta")],
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
