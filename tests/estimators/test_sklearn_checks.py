"""scikit-learn's own checks, on private estimators and on estimators without noise."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpglm

ESTIMATORS = [
    dpglm.LogisticRegression,
    dpglm.GLMClassifier,
    dpglm.LinearRegression,
    dpglm.Ridge,
    dpglm.Lasso,
    dpglm.ElasticNet,
    dpglm.GLMRegressor,
]

@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        *(cls(epsilon=epsilon) for cls in ESTIMATORS for epsilon in (1.0, float("inf"))),
        dpglm.BoundsScaler(),
    ],
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
