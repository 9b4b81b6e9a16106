"""dpglm: differentially private generalized linear models behind the scikit-learn interface."""

from .bounds import Bounds
from .data.stream import Stream
from .estimators import (
    BoundsScaler,
    ElasticNet,
    GammaRegressor,
    GLMClassifier,
    GLMRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NegativeBinomialRegressor,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
    make_private_pipeline,
)
from .ledger import Ledger
from .privacy import Budget, Guarantee, Neighbours
from .schema import Schema

__version__ = "0.2.0"

__all__ = [
    "Bounds", "BoundsScaler", "Budget", "ElasticNet", "GLMClassifier", "GLMRegressor", "GammaRegressor",
    "Guarantee", "HuberRegressor", "Lasso", "Ledger", "LinearRegression", "LinearSVC", "LinearSVR",
    "LogisticRegression", "NegativeBinomialRegressor", "Neighbours", "PoissonRegressor", "QuantileRegressor",
    "Ridge", "Schema", "Stream", "TweedieRegressor", "make_private_pipeline",
]  # fmt: skip
