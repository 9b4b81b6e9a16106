"""Parameters of estimators: penalties and constraints in users' words, and what docstrings say of them."""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeVar, dataclass_transform

import numpy as np

from .. import strict
from ..arrays import Vector
from ..errors import UnsupportedProblem
from ..penalties import Bounded, Penalty, Separable, Zero
from ..solvers import SOLVERS

_SIGNS = {"increasing": 1, "decreasing": -1, 1: 1, -1: -1}


def constrained(
    penalty: Penalty, positive: object, lower: object, upper: object, monotone: object, n_features: int,
    names: Sequence[object] | None,
) -> Penalty:  # fmt: skip
    """The penalty with coefficients kept in intervals; itself if there are no constraints.

    Parameters
    ----------
    penalty : Penalty
    positive : bool
        Whether no coefficient may be negative.
    lower, upper : float, array of shape (n_features,) or None
        The ends of intervals.
    monotone : mapping or None
        For some features, by name or index, "increasing" or "decreasing".
    n_features : int
    names : sequence or None
        The names of the features, if they have any.
    """
    directions = _directions(monotone)
    if not (strict.flag("positive", positive) or directions) and lower is None and upper is None:
        return penalty
    low, high = _ends("lower", lower, -math.inf, n_features), _ends("upper", upper, math.inf, n_features)
    if positive:
        low = np.maximum(low, 0.0)
    for feature, direction in directions.items():
        index = _place(feature, n_features, names)
        if direction > 0:
            low[index] = max(low[index], 0.0)
        else:
            high[index] = min(high[index], 0.0)
    if np.all(low == -math.inf) and np.all(high == math.inf):
        return penalty
    if not np.all(low <= high):
        raise ValueError("positive, lower, upper and monotone leave no value for some coefficient")
    if not isinstance(penalty, Separable):
        raise UnsupportedProblem(
            f"constraints on coefficients go with penalties that are sums over coordinates, not with "
            f"{type(penalty).__name__}"
        )
    l1, l2, bottom, top = penalty.coordinate_form()
    return Bounded(_one_end(np.maximum(low, bottom)), _one_end(np.minimum(high, top)), l1, l2)


def _ends(name: str, value: Any, default: float, n_features: int) -> Vector:
    ends = strict.doubles(default if value is None else value)
    if ends is None or ends.shape not in ((), (n_features,)) or np.isnan(ends).any():
        raise strict.wrong(name, value, f"a number or {n_features} numbers, one for each feature")
    return np.array(np.broadcast_to(ends, n_features))


def _directions(monotone: object) -> dict[object, int]:
    if monotone is None:
        return {}
    if not isinstance(monotone, Mapping) or any(
        not isinstance(way, str | Integral) or isinstance(way, bool) or way not in _SIGNS
        for way in monotone.values()
    ):
        raise strict.wrong("monotone", monotone, 'a mapping from features to "increasing" or "decreasing"')
    return {feature: _SIGNS[way] for feature, way in monotone.items()}


def _place(feature: object, n_features: int, names: Sequence[object] | None) -> int:
    if isinstance(feature, Integral) and not isinstance(feature, bool) and 0 <= int(feature) < n_features:
        return int(feature)
    known = [] if names is None else list(names)
    if feature in known:
        return known.index(feature)
    raise ValueError(
        f"monotone names the feature {feature!r}: give an index below {n_features}"
        + (", since names are known only from a table with names" if names is None else f" or one of {known}")
    )


def _one_end(ends: Vector) -> float | tuple[float, ...]:
    """One end for all, if it is the same."""
    return float(ends[0]) if np.all(ends == ends[0]) else tuple(ends.tolist())


def given(penalty: object) -> Penalty:
    """The penalty itself, or none."""
    if penalty is None:
        return Zero()
    if not isinstance(penalty, Penalty):
        raise ValueError(
            "penalty must be None or an object of dpglm.penalties, which says its strength, such as L1(0.01) "
            f"or L2(0.01): got {penalty!r}"
        )
    return penalty


def require_strength(name: str, value: object) -> None:
    """Refuse a strength that is no finite number of at least 0."""
    strict.number(name, value, "a finite number of at least 0", lambda found: 0 <= found < math.inf)


def require_share(name: str, value: object) -> None:
    """Refuse a share that is no number from 0 to 1."""
    strict.number(name, value, "a number from 0 to 1", lambda found: 0 <= found <= 1)


def inverse_strength(C: object, n_samples: int) -> float:
    """Strength of a penalty relative to the mean loss, for C the weight of the sum of losses."""
    return 1.0 / (strict.number("C", C, "a positive number", lambda found: found > 0) * n_samples)


P = ParamSpec("P")
T = TypeVar("T")

_SHARED_PART = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
_PARAMETER = re.compile(r"^ *(\w+) : ", re.MULTILINE)

_SHARED = {
    "budget": """
        epsilon : float
            Privacy to be spent; ``float("inf")`` fits without noise.
        delta : float, optional
            Probability of a worse loss; by default 1/n² (n is public). Must be declared with
            ``neighbours="add-remove"``.""",
    "classification": """
        {solver}
        bounds : Bounds, optional
            What is known of every record; by default ``Bounds(row_norm=1.0)``. Rows outside are clipped.
        {model}
        classes : array, optional
            The labels. If they are not given they are read off y, which makes the label set public.
            A record with a label that is not among them contributes nothing.
        {run}

        Attributes
        ----------
        coef_ : array of shape (1, n_features) or (n_classes, n_features)
        intercept_ : array of shape (1,) or (n_classes,)
        classes_ : array of shape (n_classes,)
        n_iter_ : array
            Steps of each fit.
        {fitted}
        >>> from dpglm import {cls}
        >>> from dpglm.datasets import load_adult
        >>> adult = load_adult()""",
    "regression": """
        {solver}
        bounds : Bounds, optional
            What is known of every record; by default ``Bounds(row_norm=1.0, target=(-1, 1))``, with targets
            from 0 to 1 for counts. Records outside are clipped.
        {model}
        {run}

        Attributes
        ----------
        coef_ : array of shape (n_features,)
        intercept_ : float
        n_iter_ : int
            Steps of the fit.
        {fitted}
        >>> import numpy as np
        >>> from dpglm import Bounds, {cls}
        >>> x = np.linspace(-1, 1, 5000)[:, None]
        >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))""",
    "fitted": """
        n_features_in_ : int
        feature_names_in_ : array of str
            Names of the columns, if the table has names.
        plan_ : Plan
            What was released and how it was priced.
        privacy_ : Guarantee
            The promise; print it.
        gap_ : float
            An upper bound on objective minus minimum, with the intercept held fixed. Only fits without noise
            by `DualCoordinateDescent`, or by `FrankWolfe` with a given number of steps, have it.
        covariance_ : array of shape (d, d) or (n_classes, d, d)
            Covariance of the coefficients from sampling and noise: features first, then the intercept. Only
            fits by `Newton` without a penalty have this and the following.
        privacy_covariance_ : array
            The part of ``covariance_`` that noise causes.
        standard_errors_ : array of shape (d,) or (n_classes, d)
            Infinite if the fit is not determined.
        determined_ : bool or array of shape (n_classes,)
            Whether noise left enough of the records to state intervals.

        Notes
        -----
        **Guarantee.** Everything that ``fit`` stores satisfies ``privacy_`` for the declared neighbours,
        unless ``random_state`` is given or epsilon is infinite.

        Examples
        --------""",
    "promised": """
        plan_ : Plan
            What was released and how it was priced.
        privacy_ : Guarantee
            The promise; print it.
        classes_ : array
            The classes of a classifier.""",
    "chosen": """
        {promised}
        n_features_in_ : int
        feature_names_in_ : array of str
            Names of the columns, if the table has names.

        Notes
        -----
        **Guarantee.** Everything that ``fit`` stores satisfies ``privacy_`` (docs/proofs/search.md).""",
    "penalty": """
        penalty : Penalty, optional
            An object of `dpglm.penalties`, such as ``L1(0.01)``; by default there is none.""",
    "class_weight": """
        class_weight : mapping of labels to floats, "balanced" or None
            What the weights of the records of each class are multiplied by; 1 for a label that is not there.
            The mapping is public. "balanced" is n_samples / (n_classes * count): a private fit releases the
            counts first, with 2 % of the budget, and divides the weights by the largest, from 0.1 to 1.""",
    "means": """
        means : (float, float), optional
            The range of means that the model may predict, with exposure. Slopes and curvatures are bounded by
            it and by the range of targets: a narrow one means less noise. By default up to the largest
            declared target, and from a hundredth of it where slopes have no bound for small means.""",
    "inverse_strength": """
        C : float
            Inverse strength of the penalty, as in scikit-learn: an L2 penalty is norm(w)² / (2 C n).
            ``float("inf")`` means no penalty.""",
    "solver": "solver : str or Solver\n"
    + textwrap.fill(
        f'"auto"; the name of an algorithm: {", ".join(map(repr, SOLVERS))}; or an object of `dpglm.solvers` '
        "with its settings.",
        width=100,
        initial_indent="    ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    ),
    "model": """
        neighbours : "replace-one", "zero-out" or "add-remove"
            The relation that the promise is for: one record is replaced by any other, or by a null record
            that adds nothing, and the number of records n is public; or one record is added or removed, and n
            is private. Then a count with 1 % of the budget comes first, and C, steps, clips and sizes follow
            from it: n in these pages is the released count.
        fit_intercept : bool
            Whether to learn an intercept, as the coefficient of a constant feature.
        positive : bool
            Whether coefficients, without the intercept, must not be negative.
        lower : float or array of shape (n_features,), optional
            The least value of each coefficient.
        upper : float or array of shape (n_features,), optional
            The largest value of each coefficient.
        monotone : mapping, optional
            For some features, by name or index, "increasing" or "decreasing": the sign of their
            coefficients.""",
    "run": """
        random_state : int, RandomState or Generator, optional
            None draws noise from a cryptographic generator keyed by the operating system. Anything else is
            for tests and studies: the fit can be repeated, and is *not private*.
        verbose : int
            If positive, print the plan before the fit and, if the fit takes more than two seconds, show how
            much of the plan is done.
        ledger : str, optional
            The account that pays for the fit: ``"sqlite:///budget.db#account"``, or a PostgreSQL address
            without a password. By default that of the block ``with account:``, or of the environment variable
            ``DPGLM_LEDGER``, or none.""",
}


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Make a class an estimator whose parameters are its fields, those of its bases included.

    Its constructor only stores them, and its signature shows them in the order of the docstring. Lines
    ``{name}`` of the docstring are filled with the shared text of that name: ``{regression}`` and
    ``{classification}`` stand for all that comes between parameters of its own and the fit of the example.
    """
    made = dataclass(eq=False, repr=False, match_args=False, kw_only=True)(documented(cls))
    places = {name: k for k, name in enumerate(_PARAMETER.findall(made.__doc__ or ""))}
    constructor: Any = explained(vars(made)["__init__"], cls.__name__)
    signature = inspect.signature(constructor)
    ordered = sorted(signature.parameters.values(), key=lambda parameter: places.get(parameter.name, -1))
    constructor.__signature__ = signature.replace(parameters=ordered)
    made.__init__ = constructor  # type: ignore[method-assign]
    return made


def documented(cls: type[T]) -> type[T]:
    """Fill the lines ``{name}`` of the docstring of a class with the shared text of that name."""
    text = "" if cls.__doc__ is None else cls.__doc__  # Python drops docstrings with -OO
    cls.__doc__ = _filled(text).replace("{cls}", cls.__name__)
    return cls


def _filled(text: str) -> str:
    return _SHARED_PART.sub(_shared, text)


def _shared(part: re.Match[str]) -> str:
    indent, name = part.groups()
    return textwrap.indent(_text(name), indent)


@cache
def _text(name: str) -> str:
    return _filled(textwrap.dedent(_SHARED[name].removeprefix("\n")))


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
