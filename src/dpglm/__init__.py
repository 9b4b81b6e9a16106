"""dpglm: differentially private generalized linear models behind the scikit-learn interface."""

from .bounds import Bounds
from .data.stream import Stream
from .estimators import (
    BoundsScaler,
    ElasticNet,
    GLMClassifier,
    GLMRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    PrivatePath,
    PrivateSearch,
    Ridge,
    check_pipeline,
    make_private_pipeline,
)
from .ledger import Ledger
from .privacy import Budget, Guarantee, Neighbours
from .schema import Schema

__version__ = "0.2.0"

__all__ = [
    "Bounds", "BoundsScaler", "Budget", "ElasticNet", "GLMClassifier", "GLMRegressor", "Guarantee",
    "Lasso", "Ledger", "LinearRegression", "LinearSVC", "LinearSVR", "LogisticRegression", "Neighbours",
    "PrivatePath", "PrivateSearch", "Ridge", "Schema", "Stream", "check_pipeline", "make_private_pipeline",
]  # fmt: skip
