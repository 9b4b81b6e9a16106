"""Fits that leave an estimator as it was if they fail."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from .sklearn_checks import warn_of_learning_steps, warn_of_many_fits

_INSIDE: ContextVar[bool] = ContextVar("inside of a fit", default=False)

Model = TypeVar("Model")
Data = ParamSpec("Data")


def all_or_nothing(
    fit: Callable[Concatenate[Model, Data], Model],
) -> Callable[Concatenate[Model, Data], Model]:
    """A fit that leaves the estimator as it was if it fails or is interrupted."""

    @wraps(fit)
    def whole(self: Model, /, *data: Data.args, **names: Data.kwargs) -> Model:
        if not _INSIDE.get():  # what a fit is part of was said already
            warn_of_learning_steps(self)
            warn_of_many_fits(self)
        before, token = dict(vars(self)), _INSIDE.set(True)
        try:
            return fit(self, *data, **names)
        except BaseException:  # an interrupt, too
            vars(self).clear()
            vars(self).update(before)
            raise
        finally:
            _INSIDE.reset(token)

    return whole
