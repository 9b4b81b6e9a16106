"""Names of parameters that users bring from other libraries, and what to write here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_STEPS = "the number of steps is part of the plan: solver=GradientDescent(steps=...) sets it"
_HABITS = {
    "max_iter": _STEPS,
    "n_iter": _STEPS,
    "tol": "a fit does not stop by its records: it takes the steps of its plan",
    "eps": "it is called epsilon",
    "metrics": "it is called metric, also for a list",
    "scoring": "it is called metric, a name or a list of names",
    "n_jobs": "the environment variable NUMBA_NUM_THREADS sets the number of threads",
    "warm_start": "a fit starts at a public point",
    "data_norm": "bounds=Bounds(row_norm=...) declares the largest norm of a row",
    "accountant": "ledger= names the account that pays",
}


def explained(call: Callable[P, T], name: str | None = None) -> Callable[P, T]:
    """The call, which says of a parameter that it does not have what to write instead, if that is known."""
    known = inspect.signature(call).parameters

    @wraps(call)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        unknown = next((one for one in kwargs if one in _HABITS and one not in known), None)
        if unknown is not None:
            raise TypeError(f"{name or call.__name__} has no parameter {unknown!r}: {_HABITS[unknown]}")
        return call(*args, **kwargs)

    return called
