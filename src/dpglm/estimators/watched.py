"""Fits as users see them: with progress, and all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from .. import progress, strict
from ..plan import Plan
from .sklearn_checks import warn_of_learning_steps, warn_of_many_fits

_INSIDE: ContextVar[bool] = ContextVar("inside of a fit", default=False)

Model = TypeVar("Model")
Data = ParamSpec("Data")


def watched(plan: Plan, verbose: int) -> AbstractContextManager[None]:
    """Show how much of a plan is done, if that is wanted.

    Releases are counted, or passes where a release takes a number of them that is not known beforehand.
    """
    if not strict.verbosity("verbose", verbose) and not progress.is_wanted():
        return nullcontext()
    if plan.passes is not None and not plan.passes.is_exact:
        return progress.shown(plan.solver, "passes", plan.passes.usual, exact=False)
    releases = sum(release.count for release in plan.releases) or plan.steps
    before = sum(release.count for release in plan.learning)
    return progress.shown(plan.solver, "releases", before + releases * plan.fits, exact=plan.budget.private)


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
