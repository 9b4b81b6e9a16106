"""Small fitted models of every kind that can report, and what may stand beside them."""

from __future__ import annotations

import math
import warnings
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from dpglm import (
    Bounds,
    LinearRegression,
    LogisticRegression,
    PrivatePath,
    PrivateSearch,
    Ridge,
    evaluate,
    make_private_pipeline,
)
from dpglm.audit import Finding
from dpglm.audit import Report as Findings
from dpglm.penalties import L1
from dpglm.schema import Category, Number, Schema, Target
from dpglm.solvers import GradientDescent, GreedyCoordinateDescent, Newton, ObjectivePerturbation

MARKUP = '<script>alert("1")</script>'
SCHEMA = Schema(
    {
        "age": Number(18, 90),
        f"job {MARKUP}": Category(["clerk", "nurse & <b>"], baseline="clerk", other=False),
        "home": Target(classes=["owned", "rented"]),
    }
)
VERDICT = Findings(
    (Finding("a <solver>", "model", "replace-one", 1.0, 1e-6, 0.4, 0.9, 100, False, "a test"),), 0.99
)


def table(seed: int = 0, n: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 90, n)
    raw = pd.DataFrame({"age": age, f"job {MARKUP}": rng.choice(["clerk", "nurse & <b>"], n)})
    raw["home"] = np.where(age + rng.normal(0, 15, n) > 50, "owned", "rented")
    return raw


def learnt(most: int, epsilon: float = 1.0) -> Any:
    """A model whose schema learns a range, the levels of a category of two, and the norm of rows."""
    schema = Schema(
        {
            "age": Number(learn=True, widest=(0, 200)),
            f"job {MARKUP}": Category(learn=True, most=most),
            "home": Target(classes=["owned", "rented"]),
        },
        interactions=[("age", f"job {MARKUP}")],
        row_norm="learn",
    )
    return make_private_pipeline(schema, LogisticRegression(epsilon)).fit(table())


def learnt_target(**settings: Any) -> Any:
    """A regression that learns the range of its target and fewer levels than there is room for."""
    schema = Schema(
        {
            f"job {MARKUP}": Category(learn=True, most=5, other=False),
            "age": Target(learn=True, widest=(-1000, 1000)),
            "home": Category(["owned", "rented"], baseline="owned", other=False),
        }
    )
    return make_private_pipeline(schema, LinearRegression(4.0, **settings)).fit(table())


def arrays(classes: int, p: int = 4, n: int = 1_500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p)) / p**0.5
    return X, np.clip(((X[:, 0] + 0.6) * classes).astype(int), 0, classes - 1)


def _newton(epsilon: float, **more: Any) -> LogisticRegression:
    return LogisticRegression(epsilon=epsilon, penalty=None, solver=Newton(deviance_share=0.05), **more)


def _two(epsilon: float = 1.0, **more: Any) -> LogisticRegression:
    return LogisticRegression(epsilon, classes=[0, 1], **more)


BOUNDS = Bounds(row_norm=1.0, target=(0, 1))
MODELS = {
    "intervals": lambda: make_private_pipeline(SCHEMA, _newton(4.0)).fit(table()),
    "pipeline": lambda: make_private_pipeline(SCHEMA, LogisticRegression(epsilon=1.0)).fit(table()),
    "learnt": lambda: learnt(most=20),
    "learnt, all levels": lambda: learnt(most=2),
    "learnt target": learnt_target,
    "learnt, with errors": lambda: learnt_target(solver=Newton()),
    "not determined": lambda: _newton(4.0, classes=[0, 1]).fit(np.full((1_500, 4), np.nan), arrays(2)[1]),
    "regression": lambda: LinearRegression(1.0, bounds=BOUNDS, solver=GradientDescent(steps=5)).fit(
        *arrays(2)
    ),
    "zero-out": lambda: Ridge(1.0, bounds=BOUNDS, neighbours="zero-out").fit(*arrays(2)),
    "batches": lambda: _two(solver=GradientDescent(steps=20, batch_size=50)).fit(*arrays(2)),
    "greedy": lambda: _two(penalty=L1(0.01), solver=GreedyCoordinateDescent(steps=3)).fit(*arrays(2)),
    "objective": lambda: _two(solver=ObjectivePerturbation()).fit(*arrays(2)),
    "three classes": lambda: LogisticRegression(1.0, classes=[0, 1, 2]).fit(*arrays(3)),
    "wide": lambda: _two(solver=GradientDescent(steps=3)).fit(*arrays(2, 500, 300)),
    "path": lambda: PrivatePath(_two()).fit(*arrays(2)),
    "search": lambda: PrivateSearch(_two(), {"C": [0.1, 1.0]}, runs=2).fit(*arrays(2)),
    "private size": lambda: _two(delta=1e-6, neighbours="add-remove").fit(*arrays(2)),
    "persons": lambda: _two().fit(*arrays(2), units=np.arange(1_500) % 500),
    "seeded": lambda: _two(random_state=0).fit(*arrays(2)),
    "no noise": lambda: _two(math.inf).fit(*arrays(2)),
}
"""How a model of every kind is made, by name."""


@cache
def model(kind: str) -> Any:
    """The fitted model of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[kind]()


@cache
def report(kind: str) -> Any:
    """The report of the model of that name."""
    return model(kind).report()


@lru_cache(maxsize=1)
def scores() -> Any:
    return evaluate(model("intervals"), table(1), metric=["accuracy", "auc", "calibration"], epsilon=2.0)
