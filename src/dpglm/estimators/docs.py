"""What the docstrings of estimators share, written once and shown in full on each of them."""

from __future__ import annotations

import re
import textwrap
from typing import TypeVar

from ..solvers import SOLVERS

Estimator = TypeVar("Estimator", bound=type)

_FIELD = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)

_SHARED = {
    "epsilon": """
        epsilon : float
            Privacy to be spent; ``float("inf")`` fits without noise.""",
    "delta": """
        delta : float, optional
            Probability of a worse loss; by default 1/n² (n is public).""",
    "penalty": """
        penalty : Penalty, optional
            An object of `dpglm.penalties`, such as ``L1(0.01)``; by default there is none.""",
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
    "bounds_of_rows": """
        bounds : Bounds, optional
            What is known of every record; by default ``Bounds(row_norm=1.0)``. Rows outside are clipped.""",
    "bounds": """
        bounds : Bounds, optional
            What is known of every record; by default ``Bounds(row_norm=1.0, target=(-1, 1))``, with targets
            from 0 to 1 for counts. Records outside are clipped.""",
    "neighbours": """
        neighbours : "replace-one" or "zero-out"
            The relation that the promise is for.""",
    "fit_intercept": """
        fit_intercept : bool
            Whether to learn an intercept, as the coefficient of a constant feature.""",
    "classes": """
        classes : array, optional
            The labels. If they are not given they are read off y, which makes the label set public.
            A record with a label that is not among them contributes nothing.""",
    "random_state": """
        random_state : int, RandomState or Generator, optional
            None draws noise from a cryptographic generator keyed by the operating system. Anything else is
            for tests and studies: the fit can be repeated, and is *not private*.""",
    "verbose": """
        verbose : int
            Print the plan before the fit if positive.""",
    "coefficients_of_classes": """
        coef_ : array of shape (1, n_features) or (n_classes, n_features)
        intercept_ : array of shape (1,) or (n_classes,)
        classes_ : array of shape (n_classes,)
        n_iter_ : array
            Steps of each fit.""",
    "coefficients": """
        coef_ : array of shape (n_features,)
        intercept_ : float
        n_iter_ : int
            Steps of the fit.""",
    "promise": """
        n_features_in_ : int
        feature_names_in_ : array of str
            Names of the columns, if the table has names.
        plan_ : Plan
            What was released and how it was priced.
        privacy_ : Guarantee
            The promise; print it.
        gap_ : float
            An upper bound on objective minus minimum, with the intercept held fixed. Only fits without noise
            by `DualCoordinateDescent`, or by `FrankWolfe` with a given number of steps, have it.""",
    "guarantee": """
        **Guarantee.** Everything that ``fit`` stores satisfies ``privacy_`` for the declared neighbours,
        unless ``random_state`` is given or epsilon is infinite.""",
}


def documented(cls: Estimator) -> Estimator:
    """Fill the lines ``{name}`` of a class's docstring with the shared text of that name."""
    if cls.__doc__ is not None:  # Python drops docstrings with -OO
        cls.__doc__ = _FIELD.sub(_text, cls.__doc__)
    return cls


def _text(field: re.Match[str]) -> str:
    indent, name = field.groups()
    return textwrap.indent(textwrap.dedent(_SHARED[name].removeprefix("\n")), indent)
