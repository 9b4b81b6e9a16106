"""Steps in front of a private model that learn from its records, which the promise does not cover."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import PrivacyWarning

_LEARN_NOTHING = {
    "BoundsScaler", "SchemaEncoder", "PolynomialFeatures", "GaussianRandomProjection",
    "SparseRandomProjection", "PolynomialCountSketch", "SkewedChi2Sampler",
}  # fmt: skip
"""Transformers that look at the shape of a table, not at its entries."""


def learning_steps(step: Any) -> Iterator[str]:
    """Names of the transformers of a step, or of a pipeline, that learn from records when they are fitted."""
    if step is None or isinstance(step, str):  # "passthrough" or "drop"
        return
    name = type(step).__name__
    inner = getattr(step, "steps", None) or getattr(step, "transformer_list", None)
    if inner is None and hasattr(step, "transformers"):
        inner = [(part[0], part[1]) for part in step.transformers]
    if inner is not None:
        for _, part in inner:
            yield from learning_steps(part)
    elif name not in _LEARN_NOTHING and not _is_declared(name, step) and _is_fitted_to_records(step):
        yield name


def _is_declared(name: str, step: Any) -> bool:
    """Whether all that a transformer would learn is given as a parameter."""
    if name in ("OneHotEncoder", "OrdinalEncoder"):
        rare = getattr(step, "min_frequency", None), getattr(step, "max_categories", None)
        return not isinstance(step.categories, str) and rare == (None, None)
    if name == "SimpleImputer":
        return bool(step.strategy == "constant" and not step.add_indicator)
    if name in ("CountVectorizer", "TfidfVectorizer"):
        return step.vocabulary is not None and not getattr(step, "use_idf", False)
    if name == "RBFSampler":  # gamma="scale" takes the variance of the table
        return not isinstance(step.gamma, str)
    return name == "SplineTransformer" and isinstance(step.knots, np.ndarray | list)


def _is_fitted_to_records(step: Any) -> bool:
    """Whether a transformer must be fitted, as far as it tells."""
    tags = getattr(step, "__sklearn_tags__", None)
    return tags is None or bool(tags().requires_fit)


def warn_of_learning_steps(model: object) -> None:
    """Warn if a model is being fitted by a scikit-learn pipeline with steps that learn from records."""
    pipelines = sys.modules.get("sklearn.pipeline")
    if pipelines is None:
        return
    found: list[str] = []
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_globals.get("__name__") == "sklearn.pipeline" else None
        if isinstance(owner, pipelines.Pipeline):
            found += [name for _, step in owner.steps[:-1] for name in learning_steps(step)]
        frame = frame.f_back  # type: ignore[assignment]
    names = list(dict.fromkeys(found))
    if names:
        warnings.warn(
            f"{', '.join(names)} in front of {type(model).__name__} learns from the records, which nobody "
            "pays for and the promise does not cover: declare ranges and levels instead, in a dpglm.Schema",
            PrivacyWarning,
            stacklevel=3,
        )
