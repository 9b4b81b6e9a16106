"""The scikit-learn skin."""

from .classifiers import GLMClassifier, LogisticRegression
from .evaluating import evaluate
from .linear import ElasticNet, Lasso, LinearRegression, Ridge
from .pipeline import PrivatePipeline, make_private_pipeline
from .regressors import GLMRegressor
from .scaler import BoundsScaler
from .svm import LinearSVC, LinearSVR

__all__ = [
    "BoundsScaler", "ElasticNet", "GLMClassifier", "GLMRegressor", "Lasso", "LinearRegression",
    "LinearSVC", "LinearSVR", "LogisticRegression", "PrivatePipeline", "Ridge", "evaluate",
    "make_private_pipeline",
]  # fmt: skip
