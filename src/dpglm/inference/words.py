"""Numbers of a table of coefficients as text; NaN is a dash."""

from __future__ import annotations

import math

_NONE = "-"
FOR_PREDICTION = "this solver releases no standard errors: the coefficients are for prediction"
LEAST = 0.0005  # the least p-value that is printed in digits


def figure(value: float, error: float) -> str:
    """A number with as many decimals as three digits of its error have."""
    if math.isfinite(value) and 1e-4 <= error < 1e5:
        return f"{value:.{max(0, 2 - math.floor(math.log10(error)))}f}"
    return f"{value:.4g}"


def rough(value: float) -> str:
    """A number whose error is not known: two digits."""
    return f"{float(f'{value:.2g}'):g}"


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals."""
    return _NONE if math.isnan(value) else f"{value:.{decimals}f}"


def probability(p_value: float) -> str:
    """A p-value."""
    if math.isnan(p_value):
        return _NONE
    return "<0.001" if p_value < LEAST else f"{p_value:.3f}"


def percent(share: float) -> str:
    """A share as a percentage."""
    return _NONE if math.isnan(share) else f"{100 * share:.0f} %"
