"""Models of raw tables in files."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from dpglm import LinearRegression, LinearSVC, LogisticRegression, Ridge, make_private_pipeline, strict
from dpglm.estimators.stored import model_from_json, model_to_json
from dpglm.penalties import L2
from dpglm.schema import Category, Number, Schema, Target

RAW = pd.DataFrame(
    {
        "age": np.linspace(0, 100, 300),
        "job": ["clerk", "nurse", "spy"] * 100,
        "y": np.linspace(0, 1, 300),
        "label": ["a", "b", "c"] * 100,
    }
)
FEATURES = {"age": Number(0, 100), "job": Category(["clerk", "nurse"])}
REGRESSION = Schema({**FEATURES, "y": Target(0, 1)})
TWO, THREE = (Schema({**FEATURES, "label": Target(classes=list(labels))}) for labels in ("ab", "abc"))


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize(
    ("schema", "estimator"),
    [
        (TWO, LogisticRegression(epsilon=1.0, C=0.5)),
        (THREE, LogisticRegression(epsilon=1.0, penalty="l1", C=10.0)),
        (THREE, LinearSVC(epsilon=2.0, neighbours="zero-out")),
        (REGRESSION, Ridge(epsilon=1.0, alpha=2.0)),
        (REGRESSION, LinearRegression(epsilon=float("inf"), fit_intercept=False)),
    ],
)
def test_a_model_predicts_the_same_after_it_was_stored(schema, estimator):
    raw = RAW.drop(columns=[name for name in ("y", "label") if name != schema.target])
    model = make_private_pipeline(schema, estimator).fit(raw)
    again = model_from_json(model_to_json(model))
    assert np.array_equal(model.predict(raw), again.predict(raw))
    assert model.score(raw) == again.score(raw)
    assert str(model.privacy_) == str(again.privacy_) and model.plan_ == again.plan_
    assert model.raw_coefficients() == again.raw_coefficients() and model_to_json(again) == model_to_json(
        model
    )


@pytest.fixture(scope="module")
def text():
    return model_to_json(make_private_pipeline(REGRESSION, Ridge(epsilon=1.0)).fit(RAW.drop(columns="label")))


def edited(text, **changes):
    return json.dumps(json.loads(text) | changes)


def sealed(text, **changes):
    values = json.loads(text) | changes
    return json.dumps(strict.sealed({key: value for key, value in values.items() if key != "digest"}))


def test_what_was_edited_or_is_no_model_is_refused(text):
    assert model_from_json(text).schema == REGRESSION
    wider = Schema({**FEATURES, "y": Target(0, 2)})
    cases = {
        "no model of dpglm": ["", "{", "[]", "{}", "[" * 100_000, edited(text, format="other")],
        "version 3": [edited(text, version=3)],
        "was edited": [edited(text, coef=[[0.0, 0.0, 0.0, 0.0]])],
        "must have the keys": [edited(text, more=1)],
        "estimator must be one of": [sealed(text, estimator="os.system")],
        "parameters must be a mapping with keys among": [
            sealed(text, parameters=json.loads(text)["parameters"] | {"solver": "auto"})
        ],
        "no finite numbers": [
            sealed(text, coef=coef)
            for coef in ({"a": 1}, [["1", "2", "3"]], [[True] * 3], [[1.0], 2.0], None)
        ],
        "contradicts itself": [sealed(text, coef=[[0.0]]), sealed(text, schema=wider.to_toml())],
    }
    for error, texts in cases.items():
        for case in texts:
            with pytest.raises(ValueError, match=error):
                model_from_json(case)


def test_settings_that_are_code_are_not_stored():
    model = make_private_pipeline(TWO, LogisticRegression(epsilon=1.0, penalty=L2(0.1)))
    model.fit(RAW.drop(columns="y"))
    with pytest.raises(ValueError, match="cannot be stored"):
        model_to_json(model)


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.5}, {"epsilon": "inf"}, {"epsilon": "x"}, {"epsilon": {}}, {"delta": 1e-3}, {"delta": 2},
     {"neighbours": "zero-out"}, {"neighbours": "add-remove"}, {"neighbours": 3}],
)  # fmt: skip
def test_a_model_whose_parameters_are_not_those_of_its_plan_is_refused(text, change):
    parameters = json.loads(text)["parameters"] | change
    with pytest.raises(ValueError):
        model_from_json(sealed(text, parameters=parameters))


@pytest.mark.parametrize("change", [{"alpha": 17.0}, {"alpha": 0}, {"positive": True}])
def test_a_model_whose_penalty_is_not_that_of_its_promise_is_refused(text, change):
    parameters = json.loads(text)["parameters"] | change
    with pytest.raises(ValueError, match="another penalty than its promise"):
        model_from_json(sealed(text, parameters=parameters))


@pytest.mark.parametrize(
    "settings",
    [{}, {"delta": 1e-4}, {"epsilon": float("inf")}, {"neighbours": "zero-out"},
     {"neighbours": "add-remove", "delta": 1e-4}],
)  # fmt: skip
def test_a_model_of_any_budget_is_restored(settings):
    fitted = make_private_pipeline(REGRESSION, Ridge(**settings)).fit(RAW.drop(columns="label"))
    assert model_to_json(model_from_json(model_to_json(fitted))) == model_to_json(fitted)


def test_a_promise_of_another_delta_or_relation_is_refused(text):
    for change in ({"delta": 1e-3}, {"neighbours": "zero-out"}):
        privacy = json.loads(text)["privacy"] | change
        with pytest.raises(ValueError):
            model_from_json(
                sealed(text, privacy=strict.sealed({k: v for k, v in privacy.items() if k != "digest"}))
            )


WRONG = [
    None,
    True,
    -1,
    0,
    1,
    2,
    0.5,
    1e308,
    -1e-320,
    10**400,
    "",
    "x",
    "inf",
    [],
    [None],
    [[1.0]],
    {},
    {"a": 1},
]
WRONG += [[[]], "replace-one", [0.1] * 3, [{}], "1e-3"]


def resealed_edits(text, count, seed=0):
    """Model files in which a few values are wrong, or gone, or twice there, with a digest that fits."""
    rng = np.random.default_rng(seed)

    def edit(values):
        keys = list(values) if isinstance(values, dict) else range(len(values))
        if not len(keys):
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(values[key], dict | list) and rng.random() < 0.75:
            edit(values[key])
        elif rng.random() < 0.15:
            del values[key]
        elif rng.random() < 0.1 and isinstance(values, dict):
            values[str(key) + "x"] = copy.deepcopy(values[key])
        else:
            values[key] = copy.deepcopy(WRONG[rng.integers(len(WRONG))])

    for _ in range(count):
        values = json.loads(text)
        for _ in range(rng.integers(1, 3)):
            edit(values)
        for part in (values.get("privacy"), values):
            if isinstance(part, dict):
                part.pop("digest", None)
                part["digest"] = strict.sealed({k: v for k, v in part.items()})["digest"]
        yield json.dumps(values)


def test_a_resealed_edit_is_a_model_or_a_value_error(text):
    refused = 0
    for content in resealed_edits(text, 300):
        try:
            model_from_json(content)
        except ValueError:
            refused += 1
    assert refused > 200
