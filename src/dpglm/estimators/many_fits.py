"""Tools of scikit-learn that fit a model many times: each of these fits is paid for by itself."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..errors import PrivacyWarning
from ..ledger import resolved

_SAID = "__dpglm_said__"
"""What marks a call about which a warning was given, in its frame: it is gone when the call ends."""


def warn_of_many_fits(model: Any) -> None:
    """Warn, once for each call, if a model is being fitted by a tool that fits it again and again."""
    found = _outermost_tool()
    if found is None:
        return
    frame, tool, count = found
    local: Any = frame.f_locals
    if _SAID in local:
        return
    local[_SAID] = True
    times = "again and again" if count is None else f"{count} time{'s' * (count != 1)}"
    paid = (
        "each fit is charged to the ledger"
        if resolved(getattr(model, "ledger", None), vars(model).get("_carried_ledger"))
        else "their prices add up, and nobody keeps count: name a ledger in the model"
    )
    warnings.warn(
        f"{tool} fits {type(model).__name__} {times}: each fit spends its whole epsilon, and {paid}. Scores "
        "on private rows are not private. PrivatePath and PrivateSearch choose within one budget",
        PrivacyWarning,
        stacklevel=4,
    )


def _outermost_tool() -> tuple[FrameType, str, int | None] | None:
    """The frame of the outermost call of such a tool, its name, and how many fits it makes, if known."""
    found = None
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        owner = frame.f_locals.get("self") if module.startswith("sklearn.") else None
        name = next((kind.__name__ for kind in type(owner).__mro__ if kind.__name__ in _TOOLS), None)
        if name is not None and function.endswith("fit"):
            found = frame, type(owner).__name__, _counted(_TOOLS[name], owner, frame)
        elif (module, function) in _FUNCTIONS:
            found = frame, function.lstrip("_"), _counted(_FUNCTIONS[module, function], owner, frame)
        frame = frame.f_back
    return found


def _counted(count: Callable[[Any, FrameType], int | None], owner: Any, frame: FrameType) -> int | None:
    """How many fits there are, by public numbers of the call; None if they do not say."""
    try:
        return count(owner, frame)
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


def _of_bagging(owner: Any, frame: FrameType) -> int:
    return int(owner.n_estimators)


def _of_one(owner: Any, frame: FrameType) -> int:
    return 1


def _of_folds(owner: Any, frame: FrameType) -> int:
    """One fit for each fold of a function such as ``cross_validate``."""
    return _folds(frame.f_locals["cv"], frame.f_locals["estimator"], frame)


def _unknown(owner: Any, frame: FrameType) -> None:
    return None


def _folds(cv: Any, estimator: Any, frame: FrameType) -> int:
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv

    local = frame.f_locals
    splits = check_cv(cv, local.get("y"), classifier=is_classifier(estimator))
    return int(splits.get_n_splits(local.get("X"), local.get("y"), local.get("groups")))


_TOOLS: dict[str, Callable[[Any, FrameType], int | None]] = {
    "BaseSearchCV": _of_search, "RFE": _of_elimination, "SelectFromModel": _of_one,
    "SequentialFeatureSelector": _unknown, "BaseBagging": _of_bagging,
    "CalibratedClassifierCV": _of_calibration, "OneVsRestClassifier": _unknown,
    "OneVsOneClassifier": _unknown, "StackingClassifier": _unknown, "StackingRegressor": _unknown,
    "BaseWeightBoosting": _unknown,
}  # fmt: skip
"""Tools that are estimators, by the name of one of their classes."""

_VALIDATION = "sklearn.model_selection._validation"
_FUNCTIONS: dict[tuple[str, str], Callable[[Any, FrameType], int | None]] = {
    (_VALIDATION, "cross_validate"): _of_folds,
    (_VALIDATION, "cross_val_score"): _of_folds,
    (_VALIDATION, "cross_val_predict"): _of_folds,
    (_VALIDATION, "learning_curve"): _unknown,
    (_VALIDATION, "validation_curve"): _unknown,
    (_VALIDATION, "permutation_test_score"): _unknown,
    # in another process than the tool itself
    (_VALIDATION, "_fit_and_score"): _unknown,
    ("sklearn.ensemble._bagging", "_parallel_build_estimators"): _unknown,
    ("sklearn.calibration", "_fit_classifier_calibrator_pair"): _unknown,
    ("sklearn.feature_selection._rfe", "_rfe_single_fit"): _unknown,
}
"""Tools that are functions, by module and name."""
