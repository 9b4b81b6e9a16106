"""Neighbouring raw tables, through encoding and fit: the whole keeps its claim."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpglm import LogisticRegression, make_private_pipeline
from dpglm.audit import Claim, audit_function
from dpglm.mechanisms import Thresholded
from dpglm.schema import Category, Date, Number, Schema, Target
from dpglm.solvers import GradientDescent

SCHEMA = Schema(
    {
        "age": Number(0, 100, missing="indicator"),
        "job": Category(["clerk", "nurse"]),
        "day": Date("2000-01-01", "2020-01-01"),
        "y": Target(classes=["a", "b"]),
    }
)
RAW = pd.DataFrame(
    {"age": [0.0, 50, 100, 20], "job": ["clerk", "nurse"] * 2, "day": "2010-01-01", "y": ["a", "b"] * 2}
).astype(object)
EPSILON, RUNS, CONFIDENCE = 1.0, 100, 1 - 1e-7


def tables(change):
    """The table with a record that is as far out as the schema allows, and with that record changed."""
    first = RAW.copy()
    first.loc[0] = [100.0, "clerk", "2020-01-01", "a"]
    second = first.copy()
    for name, cell in change.items():
        second.at[0, name] = cell
    return first, second


def fitted(schema, raw):
    estimator = LogisticRegression(EPSILON, delta=0.01, solver=GradientDescent(steps=2))
    return make_private_pipeline(schema, estimator).fit(raw).estimator_


def report(schema_of, change):
    first, second = tables(change)

    def outputs(use_second):
        raw = second if use_second else first
        model = fitted(schema_of(raw), raw)
        return np.concatenate([model.coef_.ravel(), model.intercept_])

    return audit_function(outputs, Claim(EPSILON, 0.01), runs=RUNS, confidence=CONFIDENCE)


@pytest.mark.parametrize(
    "change",
    [
        {"age": 0.0, "job": "nurse", "day": "2000-01-01", "y": "b"},
        {"age": None, "job": "an unseen level", "y": "b"},
        {"age": "rubbish", "job": [1], "day": object(), "y": 7},
    ],
    ids=["opposite", "unseen and missing", "rubbish"],
)
def test_a_raw_record_that_changes_to_anything_stays_below_the_claim(change):
    assert not report(lambda raw: SCHEMA, change).violated


def learnt(raw):
    """A schema whose levels are those that occur: what nobody paid for."""
    levels = sorted({str(level) for level in raw["job"]})
    return replace(SCHEMA, columns={**SCHEMA.columns, "job": Category(levels)})


def test_levels_that_were_learnt_without_paying_are_caught():
    assert report(learnt, {"job": "an unseen level"}).violated


LEARNING = replace(
    SCHEMA,
    columns={
        **SCHEMA.columns,
        "age": Number(learn=True, widest=(0, 100), missing="indicator"),
        "job": Category(learn=True, most=3),
    },
)


LEVELS = replace(LEARNING, columns={**LEARNING.columns, "age": SCHEMA.columns["age"]})


def report_of_learning(schema, change, runs=60):
    """What is seen: the range, the number of levels, whether the unseen one is among them, and the model."""
    first, second = tables(change)

    def outputs(use_second):
        estimator = LogisticRegression(EPSILON, delta=0.01, solver=GradientDescent(steps=2))
        model = make_private_pipeline(schema, estimator).fit(second if use_second else first)
        age, job = (model.schema_.columns[name] for name in ("age", "job"))
        seen = [age.low, age.high, len(job.levels), "an unseen level" in job.levels]
        return np.concatenate([seen, model.estimator_.coef_.ravel(), model.estimator_.intercept_])

    return audit_function(outputs, Claim(EPSILON, 0.01), runs=runs, confidence=CONFIDENCE)


@pytest.mark.parametrize(
    ("schema", "change"),
    [
        (LEARNING, {"age": 0.0, "job": "an unseen level", "day": "2000-01-01", "y": "b"}),
        (LEVELS, {"age": None, "job": [1], "day": "no date"}),
    ],
    ids=["opposite and unseen", "missing and rubbish"],
)
def test_facts_that_are_learnt_within_the_plan_stay_below_the_claim(schema, change):
    assert not report_of_learning(schema, change).violated


def test_a_threshold_that_lets_levels_of_one_record_pass_is_caught(monkeypatch):
    """Known bad: noisy counts of the levels that occur, of which all that are positive are released."""
    law = Thresholded.law
    monkeypatch.setattr(Thresholded, "law", lambda self, size: (*law(self, size)[:2], -1e9))
    assert report_of_learning(LEVELS, {"job": "an unseen level"}).violated


def test_levels_that_are_counted_without_noise_are_caught(monkeypatch):
    """Known bad: the plan states a noise that nobody adds."""
    monkeypatch.setattr(Thresholded, "release", lambda self, answer, *_: answer)
    assert report_of_learning(LEVELS, {"job": "an unseen level"}).violated
