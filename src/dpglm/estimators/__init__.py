"""The scikit-learn skin."""

from .classifiers import GLMClassifier, LogisticRegression
from .evaluating import evaluate
from .families import (
    GammaRegressor,
    HuberRegressor,
    NegativeBinomialRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from .linear import ElasticNet, Lasso, LinearRegression, Ridge
from .pipeline import PrivatePipeline, make_private_pipeline
from .regressors import GLMRegressor
from .scaler import BoundsScaler
from .svm import LinearSVC, LinearSVR

__all__ = [
    "BoundsScaler", "ElasticNet", "GLMClassifier", "GLMRegressor", "GammaRegressor", "HuberRegressor",
    "Lasso", "LinearRegression", "LinearSVC", "LinearSVR", "LogisticRegression", "NegativeBinomialRegressor",
    "PoissonRegressor", "PrivatePipeline", "QuantileRegressor", "Ridge", "TweedieRegressor",
    "evaluate", "make_private_pipeline",
]  # fmt: skip
