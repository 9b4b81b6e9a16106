"""Which steps of a pipeline learn from records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import PrivateGLM
from .leaks import learning_steps
from .meta import PrivateChoice
from .pipeline import PrivatePipeline


def check_pipeline(pipeline: Any) -> list[str]:
    """Every step of a pipeline that learns from records without paying for it.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        A pipeline of scikit-learn, with pipelines, unions and searches inside of it, or a single estimator.

    Returns
    -------
    list of str
        The path and the class of each such step, empty if there is none. Private models are no such steps:
        they pay. A tool that fits them many times, as `GridSearchCV`, is: its scores are not private.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dpglm import LogisticRegression, check_pipeline
    >>> check_pipeline(make_pipeline(StandardScaler(), LogisticRegression()))
    ['standardscaler: StandardScaler']
    """
    return list(_found(pipeline, ""))


def _found(step: Any, path: str) -> Iterator[str]:
    if step is None or isinstance(step, str | PrivateGLM | PrivatePipeline | PrivateChoice):
        return
    inner = getattr(step, "steps", None) or getattr(step, "transformer_list", None)
    if inner is None and hasattr(step, "transformers"):
        inner = [(part[0], part[1]) for part in step.transformers]
    if inner is not None:
        for name, part in inner:
            yield from _found(part, f"{path}{name}.")
        return
    for name in learning_steps(step):
        yield f"{path.rstrip('.')}: {name}".removeprefix(": ")
    for nested in ("estimator", "regressor", "classifier"):
        part = getattr(step, nested, None)
        if hasattr(part, "fit"):
            yield from _found(part, f"{path}{nested}.")
