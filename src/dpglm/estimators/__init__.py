"""The scikit-learn skin."""

from .checked import check_pipeline
from .classifiers import GLMClassifier, LogisticRegression
from .linear import ElasticNet, Lasso, LinearRegression, Ridge
from .path import PrivatePath
from .pipeline import PrivatePipeline, make_private_pipeline
from .regressors import GLMRegressor
from .scaler import BoundsScaler
from .search import PrivateSearch
from .svm import LinearSVC, LinearSVR

__all__ = [
    "BoundsScaler", "ElasticNet", "GLMClassifier", "GLMRegressor", "Lasso", "LinearRegression",
    "LinearSVC", "LinearSVR", "LogisticRegression", "PrivatePath", "PrivatePipeline", "PrivateSearch",
    "Ridge", "check_pipeline", "make_private_pipeline",
]  # fmt: skip
