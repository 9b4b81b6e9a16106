"""dpglm: differentially private generalized linear models behind the scikit-learn interface."""

from importlib import import_module
from typing import TYPE_CHECKING

from .bounds import Bounds
from .data.stream import Stream
from .ledger import Ledger
from .privacy import Budget, Guarantee, Neighbours
from .schema import Schema

if TYPE_CHECKING:
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
        PrivatePath,
        PrivateSearch,
        QuantileRegressor,
        Ridge,
        TweedieRegressor,
        check,
        check_pipeline,
        evaluate,
        make_private_pipeline,
    )
else:

    def __getattr__(name: str) -> object:
        """Estimators and their parts, when they are first asked for: scikit-learn is slow to import."""
        if not name.startswith("_"):
            estimators = import_module(".estimators", __name__)
            for place in (globals(), vars(estimators) if name in __all__ else {}):
                if name in place:
                    return place[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__version__ = "0.3.0"

__all__ = [
    "Bounds", "BoundsScaler", "Budget", "ElasticNet", "GLMClassifier", "GLMRegressor", "GammaRegressor",
    "Guarantee", "HuberRegressor", "Lasso", "Ledger", "LinearRegression", "LinearSVC", "LinearSVR",
    "LogisticRegression", "NegativeBinomialRegressor", "Neighbours", "PoissonRegressor", "PrivatePath",
    "PrivateSearch", "QuantileRegressor", "Ridge", "Schema", "Stream", "TweedieRegressor",
    "check", "check_pipeline", "evaluate", "make_private_pipeline",
]  # fmt: skip
