"""Numbers of steps of greedy coordinate descent that its theorems state, from declared constants.

Mangold, Bellet, Salmon and Tommasi, "High-dimensional private empirical risk minimization by greedy
coordinate descent" (AISTATS 2023, arXiv:2207.01560), Theorems 4.4 and 4.7 with the proofs of appendix B. Both
hold for ``step_size=1`` and clips that cut nothing.
"""

from __future__ import annotations

import math

from .. import strict


def steps_if_convex(n_samples: int, epsilon: float, delta: float, *, slope: float, distance: float) -> int:
    r"""Number of steps of Theorem 4.4, 1, for `GreedyCoordinateDescent` and a convex objective.

    .. math:: T = \frac{(R\, n\, \varepsilon / S)^{2/3}}{4 \log(1/\delta)^{1/3}}

    Parameters
    ----------
    n_samples : int
        Public number of records.
    epsilon, delta : float
        Budget of the fit.
    slope : float
        S: the largest L_j / sqrt(M_j), with L_j a bound of a record's slope along coordinate j and M_j the
        curvature there. With the clip rule of the solver it is clip / sqrt(tr M).
    distance : float
        R: the sum of sqrt(M_j) abs(w_j) from the start to a minimiser, or more.

    Returns
    -------
    int

    Examples
    --------
    >>> from dpglm.solvers import GreedyCoordinateDescent, steps_if_convex
    >>> steps = steps_if_convex(20_000, 1.0, 1e-9, slope=1.0, distance=2.0)
    >>> steps
    106
    >>> solver = GreedyCoordinateDescent(steps=steps, step_size=1.0)
    """
    n, epsilon, log = _budget(n_samples, epsilon, delta)
    ratio = _positive("distance", distance) * n * epsilon / _positive("slope", slope)
    return _steps(ratio ** (2 / 3) / (4 * log ** (1 / 3)))


def steps_if_strongly_convex(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    slope: float,
    gap: float,
    strong_convexity: float,
    sparsity: float = 1.0,
    failure: float = 0.05,
) -> int:
    r"""Number of steps of Theorem 4.4, 2, and of Theorem 4.7, for a strongly convex objective.

    .. math:: T = \frac{4}{\mu} \log \frac{\mu\, \Delta\, n^2 \varepsilon^2}
       {512\, S^2 \log(1/\delta) \log(8 p / \zeta)^2}, \qquad \mu = \frac{m}{k}

    and one step where the argument of the logarithm is so small that the theorem promises nothing.

    Parameters
    ----------
    n_samples, n_features : int
        Public size of the table.
    epsilon, delta : float
        Budget of the fit.
    slope : float
        S: the largest L_j / sqrt(M_j), as for `steps_if_convex`.
    gap : float
        The objective at the start less its minimum, or more.
    strong_convexity : float
        m, with respect to the norm sum of sqrt(M_j) abs(w_j) (Theorem 4.4), or, with ``sparsity``, to the
        root of the sum of M_j w_j² (Theorem 4.7).
    sparsity : float
        k = s + tau of Theorem 4.7: the largest number of non-zeros of an iterate plus the number of large
        coefficients of the minimiser.
    failure : float
        zeta: the bounds of the theorems fail at most so often.

    Returns
    -------
    int

    Notes
    -----
    The formula follows the proofs where statements differ from them. Each step shrinks the gap by the factor
    1 - mu / 4 (inequality 53; the statement of Theorem 4.4 in the appendix has 1 - mu / 2). So T needs the
    factor 4, which Theorem 4.7 leaves out: with its T the first term of its bound shrinks to the fourth root
    only. With the noise of Theorem 4.2 a step loses at most
    beta = 128 T S² log(1/delta) log(8 T p / zeta)² / (n epsilon)², of which inequality 55 has a quarter. T is
    where the first term equals 4 beta / mu, with beta taken at T = 1.

    Examples
    --------
    >>> from dpglm.solvers import steps_if_strongly_convex
    >>> steps_if_strongly_convex(
    ...     10**6, 100, 1.0, 1e-12, slope=1.0, gap=0.5, strong_convexity=0.4, sparsity=10
    ... )
    962
    """
    n, epsilon, log = _budget(n_samples, epsilon, delta)
    p = strict.whole("n_features", n_features)
    share = "above 0 and below 1"
    failure = strict.number("failure", failure, share, lambda value: 0 < value < 1)
    mu = _positive("strong_convexity", strong_convexity) / _positive("sparsity", sparsity)
    scale = (n * epsilon / _positive("slope", slope)) ** 2
    balance = mu * _positive("gap", gap) * scale / (512 * log * math.log(8 * p / failure) ** 2)
    return _steps(4 / mu * math.log(balance)) if balance > 1 else 1


def _budget(n_samples: int, epsilon: float, delta: float) -> tuple[int, float, float]:
    delta = strict.number("delta", delta, "above 0 and below 1", lambda value: 0 < value < 1)
    return strict.whole("n_samples", n_samples), _positive("epsilon", epsilon), math.log(1 / delta)


def _positive(name: str, value: float) -> float:
    return strict.number(name, value, "above 0 and finite", lambda found: 0 < found < math.inf)


def _steps(count: float) -> int:
    return max(1, round(min(count, float(strict.MOST // 2))))
