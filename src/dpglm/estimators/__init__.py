"""The scikit-learn skin."""

from .checking import check
from .classifiers import GLMClassifier, LogisticRegression
from .evaluating import evaluate
from .families import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    NegativeBinomialRegressor,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)
from .model_selection import PrivatePath, PrivateSearch
from .pipeline import PrivatePipeline, make_private_pipeline
from .regressors import GLMRegressor
from .scaler import BoundsScaler
from .sklearn_checks import check_pipeline

__all__ = [
    "BoundsScaler", "ElasticNet", "GLMClassifier", "GLMRegressor", "GammaRegressor", "HuberRegressor",
    "Lasso", "LinearRegression", "LinearSVC", "LinearSVR", "LogisticRegression", "NegativeBinomialRegressor",
    "PoissonRegressor", "PrivatePath", "PrivatePipeline", "PrivateSearch", "QuantileRegressor", "Ridge",
    "TweedieRegressor", "check", "check_pipeline", "evaluate",
    "make_private_pipeline",
]  # fmt: skip
