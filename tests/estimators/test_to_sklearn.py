"""Models for those who have scikit-learn: they predict the same wherever the rows lie."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dpglm
from dpglm import Bounds, GLMClassifier, GLMRegressor, LogisticRegression, Ridge
from dpglm.solvers import CoordinateDescent

from .small_table import BOUNDS, DECLARED, LABELS, REGRESSION, TARGET, P, X

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

rng = np.random.default_rng(1)
FAR = 40.0 * rng.standard_normal((500, P))
PLAIN = [
    LogisticRegression(**DECLARED),
    LogisticRegression(bounds=Bounds(row_norm=0.7, feature=[0.1, 0.5, 2.0]), **DECLARED),
    GLMClassifier(loss="smoothed_hinge", **DECLARED),
    LogisticRegression(**{**DECLARED, "classes": [0, 1, 2]}),
    Ridge(**REGRESSION),
    dpglm.LinearSVR(bounds=BOUNDS, random_state=0),
    Ridge(**{**REGRESSION, "bounds": Bounds(feature=0.3, target=(-1, 1))}),
    GLMRegressor(40.0, loss="poisson", **{**REGRESSION, "bounds": Bounds(row_norm=3.0, target=(0, 2)),
                                          "solver": CoordinateDescent(steps=30)}),
]  # fmt: skip


@pytest.mark.parametrize("layout", [np.array, sp.csr_matrix, sp.csc_array, pd.DataFrame,
                                    lambda table: table.astype(np.float32)],
                         ids=["array", "csr", "csc", "frame", "float32"])  # fmt: skip
@pytest.mark.parametrize("model", PLAIN, ids=range(len(PLAIN)))
def test_the_scikit_learn_model_predicts_the_same_wherever_the_rows_lie(model, layout):
    y = np.abs(TARGET) * 20 if "poisson" in str(model) else LABELS if hasattr(model, "classes") else TARGET
    model = clone(model).fit(layout(X), y)
    plain = pickle.loads(pickle.dumps(model.to_sklearn()))
    for table in (X, FAR):
        here, there = model.predict(layout(table)), plain.predict(layout(table))
        assert (
            np.array_equal(here, there) if hasattr(model, "classes") else np.allclose(here, there, rtol=1e-9)
        )
        if hasattr(model, "predict_proba"):
            assert np.allclose(
                model.predict_proba(layout(table)), plain.predict_proba(layout(table)), atol=1e-9
            )
    bare = model.to_sklearn(clip=False)
    assert type(bare).__module__.startswith("sklearn.") and not hasattr(bare, "steps")
    if "poisson" in str(model):
        assert (model.predict(FAR) == 2).any(), "the largest rate must be reached for the test to tell"


def test_without_bounds_the_scikit_learn_model_has_no_step_before_it():
    model = Ridge(math.inf).fit(X, TARGET)
    assert type(model.to_sklearn()).__name__ == "Ridge"


@pytest.mark.parametrize("layout", [sp.csr_matrix, sp.csc_array, sp.coo_array], ids=str)
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(row_norm=0.5),
        Bounds(feature=[0.1, 0.2, 3.0]),
        Bounds(row_norm=0.3, feature=0.25),
        Bounds(row_norm=math.inf),
    ],
    ids=str,
)
def test_sparse_rows_are_clipped_as_dense_ones(layout, bounds):
    table = np.where(rng.random(FAR.shape) < 0.5, FAR, 0.0)
    clipped = bounds.clip(layout(table))
    assert sp.issparse(clipped) and np.allclose(clipped.toarray(), bounds.clip(table))
