"""scikit-learn's own checks, on estimators that choose."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpglm import LogisticRegression, PrivatePath, PrivateSearch, Ridge
from dpglm.solvers import GradientDescent

from .known_failures import passes_or_fails_as_known

NO_RECORD_DEPENDENT_ERROR = "an error about a value depends on a record and would leak"
PUBLIC_NUMBER = "the number of records is public, so noise of a record twice is not that of one of weight 2"
BY_CHANCE = {"check_sample_weight_equivalence_on_": PUBLIC_NUMBER}
TOO_FEW_RECORDS = "asks for a good fit of 200 records whose target range is not declared"


def expected_failures(estimator):
    """Those of the estimators inside."""
    known = {
        "check_estimators_nan_inf": NO_RECORD_DEPENDENT_ERROR,
        "check_dtype_object": NO_RECORD_DEPENDENT_ERROR,
        "check_all_zero_sample_weights_error": NO_RECORD_DEPENDENT_ERROR,
    }
    if isinstance(estimator.estimator, Ridge):
        known |= {
            "check_supervised_y_no_nan": NO_RECORD_DEPENDENT_ERROR,
            "check_regressors_train": TOO_FEW_RECORDS,
        }
    return known


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        PrivatePath(LogisticRegression(epsilon=1.0, random_state=0)),
        PrivateSearch(
            Ridge(solver=GradientDescent(steps=3), random_state=0), {"alpha": [0.1, 1.0]}, runs=2, epsilon=0.1
        ),
    ],
)
def test_scikit_learn_check(estimator, check):
    passes_or_fails_as_known(estimator, check, expected_failures(estimator), BY_CHANCE)
