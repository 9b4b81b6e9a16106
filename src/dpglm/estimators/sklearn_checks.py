"""Warnings about tools of scikit-learn: steps that learn from records, tools that fit a model many times."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ..errors import PrivacyWarning
from ..ledger import resolved
from .mixins import Reported

_LEARN_NOTHING = {
    "BoundsScaler", "SchemaEncoder", "PolynomialFeatures", "GaussianRandomProjection",
    "SparseRandomProjection", "PolynomialCountSketch", "SkewedChi2Sampler",
}  # fmt: skip
"""Transformers that look at the shape of a table, not at its entries."""

_NESTED = ("estimator", "regressor", "classifier")
"""Parameters that hold the estimator that a tool fits."""


def learning_steps(step: Any, path: str = "", nested: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Path and class of every part of a step that learns from records when it is fitted, without paying.

    Parameters
    ----------
    step : estimator, or "passthrough" or "drop"
        Parts of pipelines, unions and column transformers are visited.
    path : str
        Where the step stands: its name with a point behind it.
    nested : sequence of str
        Parameters that hold estimators to be visited, too.
    """
    if step is None or isinstance(step, str | Reported):
        return
    parts = getattr(step, "steps", None) or getattr(step, "transformer_list", None)
    if parts is None and hasattr(step, "transformers"):
        parts = [*((part[0], part[1]) for part in step.transformers), ("remainder", step.remainder)]
    if parts is not None:
        for name, part in parts:
            yield from learning_steps(part, f"{path}{name}.", nested)
        return
    name = type(step).__name__
    if name not in _LEARN_NOTHING and not _is_declared(name, step) and _is_fitted_to_records(step):
        yield path.rstrip("."), name
    for name in nested:
        part = getattr(step, name, None)
        if hasattr(part, "fit"):
            yield from learning_steps(part, f"{path}{name}.", nested)


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
    steps = learning_steps(pipeline, nested=_NESTED)
    return [f"{path}: {name}" if path else name for path, name in steps]


def warn_of_learning_steps(model: object) -> None:
    """Warn if a model is being fitted by a scikit-learn pipeline with steps that learn from records."""
    pipelines = sys.modules.get("sklearn.pipeline")
    if pipelines is None:
        return
    steps: list[str] = []
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_globals.get("__name__") == "sklearn.pipeline" else None
        if isinstance(owner, pipelines.Pipeline):
            steps += [name for _, step in owner.steps[:-1] for _, name in learning_steps(step)]
        frame = frame.f_back  # type: ignore[assignment]
    names = list(dict.fromkeys(steps))
    if names:
        warnings.warn(
            f"{', '.join(names)} in front of {type(model).__name__} learns from the records, which nobody "
            "pays for and the promise does not cover: declare ranges and levels instead, in a dpglm.Schema",
            PrivacyWarning,
            stacklevel=3,
        )


_FitCount = Callable[[Any, FrameType], int | None]

_FITS = "__dpglm_fits__"
"""Where the frame of a call counts the fits that it makes: it is gone when the call ends."""

_WARNED = "__dpglm_warned__"
"""What marks the frames of calls about which a warning was given."""


@dataclass(frozen=True)
class _Call:
    """A call of a tool on the stack: an estimator that fits another one, or a function that does."""

    frame: FrameType
    tool: str
    wraps: bool
    """Whether it is a pipeline or the like, which fits each of its parts once."""

    count: int | None
    """How many fits it makes of what it holds, if public numbers of the call say."""

    holds: object
    """What it fits, if that can be told."""

    @property
    def notes(self) -> Any:
        """What is kept with the frame."""
        return self.frame.f_locals


def warn_of_many_fits(model: Any) -> None:
    """Warn, once per call, if a model is being fitted by a tool that fits it more than once.

    A tool that is known to make several fits, or to reveal more than its fits do, is named at the first of
    them, any other at the second.
    """
    calls, in_worker = _calls(model)
    if any(_WARNED in call.notes for call in calls):
        return
    for call in calls:
        call.notes[_FITS] = call.notes.get(_FITS, 0) + 1
    leaks = _leaks(calls)
    caller = _caller(calls, in_worker, bool(leaks))
    if caller is None:
        return
    for call in calls:
        call.notes[_WARNED] = True
    times = _times(caller, model, in_worker or any(map(_is_many, calls)))
    paid = (
        "each fit is charged to the ledger"
        if resolved(getattr(model, "ledger", None), vars(model).get("_carried_ledger"))
        else "their prices add up, and nobody keeps count: name a ledger in the model"
    )
    warnings.warn(
        f"{caller.tool} fits {type(model).__name__} {times}: each fit spends its whole epsilon, and {paid}. "
        f"{''.join(leaks)}Scores on private rows are not private. PrivatePath and PrivateSearch choose "
        "within one budget",
        PrivacyWarning,
        stacklevel=4,
    )


def _leaks(calls: Sequence[_Call]) -> list[str]:
    """What the tools among calls reveal beside the fits, each said once."""
    tools = dict.fromkeys(call.tool for call in calls if not call.wraps)
    return [_LEAKS[tool] for tool in tools if tool in _LEAKS]


def _caller(calls: Sequence[_Call], in_worker: bool, leaks: bool) -> _Call | None:
    """The call to name in a warning; None if there is nothing to warn of.

    The outermost tool is what the user called; a pipeline is to blame only if no part of it is.
    """
    tools = [call for call in calls if not call.wraps]
    if leaks or any(map(_is_many, tools)) or (tools and in_worker):  # other fits are in other workers
        return tools[-1]
    return calls[-1] if any(map(_is_many, calls)) else None


def _times(caller: _Call, model: Any, is_several: bool) -> str:
    """How many times a call fits a model, in words."""
    if (caller.count or 0) > 1:
        direct = isinstance(caller.holds, type(model)) or _is_wrapper(caller.holds)
        return f"{'' if direct else 'at least '}{caller.count} times"  # a tool inside multiplies the fits
    return "more than once" if is_several else "once or more"


def _is_many(call: _Call) -> bool:
    """Whether a call is known to fit more than once."""
    return (call.count or 0) > 1 or call.notes[_FITS] > 1


def _is_wrapper(owner: object) -> bool:
    return type(owner).__module__.startswith(_WRAPPERS)


def _calls(model: Any) -> tuple[list[_Call], bool]:
    """The tools that are fitting a model, from the innermost to the outermost; and whether in a worker.

    A tool is an estimator in the manner of scikit-learn, but not of dpglm, or a function of scikit-learn:
    they are on the stack because they call ``fit``. Of the frames of one tool the outermost counts. A worker
    of a tool does not have the call itself on its stack.
    """
    from sklearn.base import BaseEstimator

    calls: dict[object, _Call] = {}
    in_worker = False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        owner = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames[:1] else None
        if isinstance(owner, BaseEstimator):
            if owner is not model and not type(owner).__module__.startswith("dpglm."):
                in_worker = False
                kinds = (kind.__name__ for kind in type(owner).__mro__ if kind.__name__ in _COUNTS)
                count = _counted(_COUNTS.get(next(kinds, "")), owner, frame)
                calls.pop(id(owner), None)
                holds = getattr(owner, "estimator", None)
                calls[id(owner)] = _Call(frame, type(owner).__name__, _is_wrapper(owner), count, holds)
        elif module.startswith("sklearn.utils.parallel"):
            in_worker = True
        elif module.startswith("sklearn.") and not module.startswith(_HELPERS) and owner is None:
            in_worker = False
            count = _counted(_FUNCTIONS.get(function), owner, frame)
            holds = frame.f_locals.get("estimator")
            calls[frame] = _Call(frame, function.lstrip("_"), False, count, holds)
        frame = frame.f_back
    return list(calls.values()), in_worker


def _counted(count: _FitCount | None, owner: Any, frame: FrameType) -> int | None:
    """How many fits there are, by public numbers of the call; None if they do not say."""
    try:
        return None if count is None else count(owner, frame)
    except Exception:  # another version of scikit-learn may keep its numbers elsewhere
        return None


def _of_search(owner: Any, frame: FrameType) -> int | None:
    """Candidates times folds, and one more on all rows."""
    if type(owner).__name__ not in ("GridSearchCV", "RandomizedSearchCV"):
        return None  # halving searches fit as many as scores decide
    from sklearn.model_selection import ParameterGrid

    grid = getattr(owner, "param_grid", None)
    candidates = int(owner.n_iter) if grid is None else len(ParameterGrid(grid))
    if grid is None and not any(hasattr(v, "rvs") for v in owner.param_distributions.values()):
        candidates = min(candidates, len(ParameterGrid(owner.param_distributions)))
    return candidates * _folds(owner.cv, owner.estimator, frame) + bool(owner.refit)


def _of_elimination(owner: Any, frame: FrameType) -> int:
    """One fit for each number of features on the way, for each fold, and once on all rows."""
    p, crossed = int(frame.f_locals["X"].shape[1]), hasattr(owner, "min_features_to_select")
    least = owner.min_features_to_select if crossed else owner.n_features_to_select
    least = p // 2 if least is None else least
    least = int(least * p) if isinstance(least, float) else int(least)
    step = int(max(1, owner.step * p)) if 0 < owner.step < 1 else int(owner.step)
    way = math.ceil(max(p - least, 0) / step) + 1
    if not crossed:
        return way
    # the last elimination stops at the number of features that scores prefer: at most as many fits
    return way * _folds(owner.cv, owner.estimator, frame) + way


def _of_calibration(owner: Any, frame: FrameType) -> int:
    """One fit for each fold, or one more on all rows."""
    folds, ensemble = _folds(owner.cv, owner.estimator, frame), owner.ensemble
    return folds if ensemble in (True, "auto") else folds + 1


def _of_folds(owner: Any, frame: FrameType) -> int:
    """One fit for each fold of a function such as ``cross_validate``."""
    return _folds(frame.f_locals["cv"], frame.f_locals["estimator"], frame)


def _folds(cv: Any, estimator: Any, frame: FrameType) -> int:
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv

    local = frame.f_locals
    splits = check_cv(cv, local.get("y"), classifier=is_classifier(estimator))
    return int(splits.get_n_splits(local.get("X"), local.get("y"), local.get("groups")))


_COUNTS: dict[str, _FitCount] = {
    "BaseSearchCV": _of_search, "RFE": _of_elimination, "CalibratedClassifierCV": _of_calibration,
    "BaseBagging": lambda owner, frame: int(owner.n_estimators),
}  # fmt: skip
"""How many fits an estimator makes, where that can be known, by the name of one of its classes."""

_FUNCTIONS: dict[str, _FitCount] = {
    "cross_validate": _of_folds, "cross_val_score": _of_folds, "cross_val_predict": _of_folds,
}  # fmt: skip
"""How many fits a function makes, where that can be known."""

_LEAKS = {
    "TunedThresholdClassifierCV": "Its threshold is tuned on exact scores of private rows, for which nobody "
    "pays. ",
    "OneVsOneClassifier": "The plans of its parts state how many records two classes have together, which "
    "nobody hides. ",
    "RANSACRegressor": "The plan of its last fit states how many records are inliers, which nobody hides. ",
}
"""What tools reveal beside the fits, by name."""

_WRAPPERS = ("sklearn.pipeline", "sklearn.compose")
"""Modules of estimators that pass their rows on, and fit each part once."""

_HELPERS = ("sklearn.utils", "sklearn.base")
"""Modules of functions that are no tools."""


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
