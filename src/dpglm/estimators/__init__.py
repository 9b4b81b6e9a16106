"""The scikit-learn skin."""

from .classifiers import GLMClassifier, LogisticRegression
from .regressors import ElasticNet, GLMRegressor, Lasso, LinearRegression, Ridge
from .scaler import BoundsScaler

__all__ = [
    "BoundsScaler", "ElasticNet", "GLMClassifier", "GLMRegressor", "Lasso", "LinearRegression",
    "LogisticRegression", "Ridge",
]  # fmt: skip
