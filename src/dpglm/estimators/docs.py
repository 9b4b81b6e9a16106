"""Constructors and docstrings of estimators: what they share is written once and shown in full on each."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar, dataclass_transform

from ..solvers import SOLVERS

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
