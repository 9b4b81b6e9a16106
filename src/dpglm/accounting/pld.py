"""Privacy-loss distributions on a grid, and their composition by an exponentially tilted FFT.

Three facts make the result an upper bound (docs/proofs/composition.md, section 5):

* *connect the dots*: the discrete law whose curve interpolates a convex curve linearly in e^x between grid
  points dominates that curve;
* *wrap-around* only adds mass inside the window, and what lies above the window is added by Chernoff's bound;
* *tilting* by e^{theta x} before the transform makes floating-point error relative to delta rather than to
  1, so there is no floor; a bound on that error is added as well.

*Exact price of adaptive rounds [bounded-range selection; release], Lemma 4 of docs/proofs/composition.md.*

With eta the range of the selection and W the loss of the release,

    H_0(x) = (1 - e^x)_+,    G(x) = E_W[H_{k-1}(x - W)],
    H_k(x) = max over t in [0, eta] of  p_t G(x - t) + (1 - p_t) G(x - t + eta),

p_t = (1 - e^{t-eta}) / (1 - e^{-eta}). On a grid of step eta/m the curve is taken linear in e^x between
points, which is an upper bound because the true one is convex in e^x. Where x - t runs through one cell
the objective is A z + B + C/z in z = e^{-t}, so its maximum has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ..arrays import Vector
from .curves import LARGEST_LOSS, Profile, symmetric

# Curves are cut where they fall below this; what is cut is charged as certain failure.
TAIL = 1e-30
# Exponent of what the window may leave out of the tilted law.
_LEFT_OUT = 40.0
_WIDE_WINDOW = 1 << 20
_TILTS = (1.0, 0.85, 0.7, 0.5, 0.3, 0.1, 0.0)
_SMALLEST_EXPONENT = -650.0
_UNIT = float(np.finfo(float).eps)
# Relative error of a transform in the L2 norm, over _UNIT log2(size): about 3.5 is proven for radix 2.
_FFT_ERROR = 16
# Where a curve is looked at, as exponents of the farthest grid point.
_SHARES = np.linspace(0.0, 1.0, 700)


@dataclass(frozen=True)
class GridLaw:
    """Law of a privacy loss under P: ``mass[k]`` at ``(low + k) * step``, ``infinite`` at infinity."""

    step: float
    low: int
    mass: Vector
    infinite: float

    @property
    def high(self) -> int:
        return self.low + len(self.mass) - 1


def discretise(profile: Profile, step: float, tail: float = TAIL) -> GridLaw:
    """Return the connect-the-dots law of a curve on the multiples of ``step``."""
    ratio = math.exp(step)
    gap = math.expm1(step)
    up = profile.forward(step * np.arange(_reach(profile.forward, step, tail) + 1.0))
    down = up
    if not profile.is_symmetric:
        down = profile.backward(step * np.arange(_reach(profile.backward, step, tail) + 1.0))
    centre = 1 + (up[1] + down[1] - (1 + ratio) * up[0]) / gap
    below = _second_differences(down, ratio) / gap * np.exp(-step * np.arange(1.0, len(down)))
    above = _second_differences(up, ratio) / gap
    mass = np.maximum(np.concatenate([below[::-1], [centre], above]), 0.0)
    return GridLaw(step, -len(below), mass, float(up[-1]))


def composed_delta(laws: Sequence[tuple[GridLaw, int]], epsilon: float) -> float:
    """Return an upper bound on delta(epsilon) of independent losses, ``count`` of each law."""
    parts = [_Part(law, count) for law, count in laws]
    step = laws[0][0].step
    failure = sum(count * law.infinite for law, count in laws)
    largest = step * sum(count * law.high for law, count in laws)
    if largest <= epsilon:
        return min(1.0, failure)
    saddle, mean, deviation = _saddle(parts, epsilon)
    if mean - epsilon > 6 * deviation:
        return 1.0
    theta, (low, high, beyond) = _tilt(parts, saddle)
    chernoff = _cumulant(parts, theta) - theta * epsilon
    start = math.floor(low / step)
    size = fft.next_fast_len(max(math.ceil(high / step) - start + 2, 16), real=True)

    masses, shift, error = _convolved(parts, theta, size)
    first = max(math.floor(epsilon / step) + 1, start)
    index = np.arange(first, start + size)
    beyond_epsilon = step * index - epsilon
    weight = -np.expm1(-beyond_epsilon) * np.exp(-theta * beyond_epsilon)
    inside = max(0.0, float(np.sum(weight * masses[(index - shift) % size])))
    error *= _length(weight)
    return min(1.0, failure + math.exp(min(beyond, 0.0)) + math.exp(min(chernoff, 700.0)) * (inside + error))


def composed_curve(laws: Sequence[tuple[GridLaw, int]], last: int) -> Vector:
    """Return upper bounds on delta at the grid points 0, step, ..., last * step, all from a few transforms.

    At grid points delta_k = e^-h delta_{k+1} + (1 - e^-h) P(X > x_k): a sum of positive terms, from the top.
    Each of a few tilts is exact near its own saddle point, and the least of their bounds is taken.
    """
    parts = [_Part(law, count) for law, count in laws]
    step = laws[0][0].step
    failure = sum(count * law.infinite for law, count in laws)
    best = np.ones(last + 1)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        saddle = _saddle(parts, share * step * last)[0]
        theta, (low, high, beyond) = _tilt(parts, saddle)
        start = math.floor(low / step)
        size = fft.next_fast_len(max(math.ceil(high / step) - start + 2, last - start + 2, 16), real=True)
        masses, shift, error = _convolved(parts, theta, size)
        first = max(start, 0)
        index = np.arange(first + 1, start + size)
        tilted = np.maximum(masses[(index - shift) % size], 0.0)
        # relative to e^{K - theta x} at each point, so that nothing overflows
        ratio = max(math.exp(-theta * step), 1e-300)
        above = _from_the_top(tilted * ratio, ratio)
        delta = _from_the_top(-math.expm1(-step) * above, max(math.exp(-(1 + theta) * step), 1e-300))
        gap = step * np.arange(1.0, len(index) + 1)
        error *= _length(-np.expm1(-gap) * np.exp(-theta * gap))
        scale = _cumulant(parts, theta) - theta * step * np.arange(first, first + len(delta))
        bound = failure + math.exp(min(beyond, 0.0)) + np.exp(np.minimum(scale, 700.0)) * (delta + error)
        size = min(last + 1 - first, len(bound))
        best[first : first + size] = np.minimum(best[first : first + size], bound[:size])
    bounds: Vector = np.minimum.accumulate(best)
    return bounds


def _from_the_top(terms: Vector, ratio: float) -> Vector:
    """Return s with s_k = terms_k + ratio * s_{k+1}, for terms that are not negative and ratio <= 1."""
    # in blocks within which powers of the ratio do not underflow
    size = len(terms) if ratio == 1 else max(1, min(len(terms), math.floor(400 / -math.log(ratio))))
    powers = ratio ** np.arange(size, dtype=np.float64)
    sums = np.empty_like(terms)
    rest = 0.0
    for stop in range(len(terms), 0, -size):
        part = slice(max(0, stop - size), stop)
        falling = powers[: part.stop - part.start]
        whole = np.cumsum((terms[part] * falling)[::-1])[::-1] + ratio * falling[-1] * rest
        sums[part] = whole / falling
        rest = float(sums[part.start])
    return sums


def _convolved(parts: Sequence[_Part], theta: float, size: int) -> tuple[Vector, int, float]:
    """Return the tilted law of the sum modulo ``size``, the index of its first entry, and its L2 error."""
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    lengths = 0.0
    shift = 0
    for part in parts:
        tilted, centre = part.tilted(theta)
        folded = _wrap(tilted, part.law.low - centre, size)
        spectrum *= _power(fft.rfft(folded), part.count)
        lengths += part.count * _length(folded)
        shift += part.count * centre
    masses = fft.irfft(spectrum, size)
    return masses, shift, _FFT_ERROR * _UNIT * math.log2(size) * (lengths + _length(masses))


def _length(values: Vector) -> float:
    """Return the Euclidean norm; a sum, because BLAS would start threads."""
    return math.sqrt(float(np.sum(np.square(values))))


class _Part:
    """A law repeated ``count`` times, prepared for tilting."""

    def __init__(self, law: GridLaw, count: int) -> None:
        self.law = law
        self.count = count
        self.x = law.step * np.arange(law.low, law.high + 1.0)
        with np.errstate(divide="ignore"):
            self.log_mass = np.log(law.mass)

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Return log E e^{theta X} and the mean and variance of the tilted law, for one draw."""
        # sums, not dot products: BLAS would start threads for these, at a hundred times the cost
        log_terms = self.log_mass + theta * self.x
        top = float(log_terms.max())
        # the floor keeps subnormal numbers out, which are slow; it only adds mass
        terms = np.exp(np.maximum(log_terms - top, _SMALLEST_EXPONENT))
        total = float(terms.sum())
        mean = float(np.sum(terms * self.x)) / total
        variance = float(np.sum(terms * (self.x - mean) ** 2)) / total
        return top + math.log(total), mean, variance

    def cumulants(self, thetas: Vector) -> Vector:
        """Return log E e^{theta X} of one draw for each theta."""
        log_terms = self.log_mass + thetas[:, None] * self.x
        top = log_terms.max(axis=1)
        terms = np.exp(np.maximum(log_terms - top[:, None], _SMALLEST_EXPONENT))
        cumulants: Vector = top + np.log(terms.sum(axis=1))
        return cumulants

    def tilted(self, theta: float) -> tuple[Vector, int]:
        """Return the tilted masses and the grid index nearest to their mean."""
        cumulant, mean, _ = self.moments(theta)
        exponent = np.maximum(self.log_mass + theta * self.x - cumulant, _SMALLEST_EXPONENT)
        return np.exp(exponent), round(mean / self.law.step)


def _cumulant(parts: Sequence[_Part], theta: float) -> float:
    return float(_cumulants(parts, np.array([theta]))[0])


def _cumulants(parts: Sequence[_Part], thetas: Vector) -> Vector:
    total: Vector = sum((part.count * part.cumulants(thetas) for part in parts), np.zeros(len(thetas)))
    return total


def _saddle(parts: Sequence[_Part], epsilon: float) -> tuple[float, float, float]:
    """Return theta >= 0 that nearly minimises K(theta) - theta epsilon, and K' and sqrt(K'') there."""
    theta, floor, ceiling = 0.0, 0.0, math.inf
    for _ in range(60):
        moments = [part.moments(theta) for part in parts]
        mean = sum(part.count * m[1] for part, m in zip(parts, moments, strict=True))
        bend = sum(part.count * m[2] for part, m in zip(parts, moments, strict=True))
        miss = epsilon - mean
        # a quarter of a standard deviation is near enough: theta is a tool, not a result
        if abs(miss) <= 0.25 * math.sqrt(bend) or (theta == 0 and miss <= 0):
            break
        if miss > 0:
            floor = theta
        else:
            ceiling = theta
        guess = theta + miss / max(bend, 1e-300)
        highest = 4 * theta + 4 / parts[0].law.step
        theta = min(guess, highest) if floor < guess < ceiling else (floor + min(ceiling, highest)) / 2
    return theta, mean, math.sqrt(bend) + parts[0].law.step


def _tilt(parts: Sequence[_Part], saddle: float) -> tuple[float, tuple[float, float, float]]:
    """Return the tilt and its window: the saddle point, or the largest share of it whose window is small.

    A heavy tail that is tilted to the full is all far outliers, and no window of reasonable size holds them.
    """
    window = (-math.inf, math.inf, 0.0)
    for share in _TILTS:
        window = _window(parts, share * saddle)
        if window[1] - window[0] <= parts[0].law.step * _WIDE_WINDOW:
            break
    return share * saddle, window


def _window(parts: Sequence[_Part], theta: float) -> tuple[float, float, float]:
    """Return a window outside which the tilted law has negligible mass, and log P(X > its upper end)."""
    step = parts[0].law.step
    low = step * sum(part.count * part.law.low for part in parts)
    high = largest = step * sum(part.count * part.law.high for part in parts)
    here = [part.moments(theta) for part in parts]
    peak, bend = (sum(p.count * m[k] for p, m in zip(parts, here, strict=True)) for k in (0, 2))
    moves = np.array([0.5, 1.0, 2.0, 4.0, 9.0]) / (math.sqrt(bend) + step)
    moves = np.append(moves, [share for share in (1.0, 3.0, 10.0, 30.0) if share < moves[0]])
    above, below = _cumulants(parts, theta + moves), _cumulants(parts, theta - moves)
    high = min(high, float(np.min((above - peak + _LEFT_OUT) / moves)))
    low = max(low, float(np.max((peak - below - _LEFT_OUT) / moves)))
    beyond = -math.inf if high == largest else float(np.min(above - (theta + moves) * high))
    return min(low, high - step), high, beyond


def _reach(curve: Callable[[Vector], Vector], step: float, tail: float) -> int:
    """Return a grid index, at least 1, from which on the curve is below ``tail`` or the loss absurd."""
    limit = max(2.0, LARGEST_LOSS / step)
    points = np.ceil(limit**_SHARES)
    small = curve(step * points) <= tail
    return int(points[int(np.argmax(small)) if small.any() else -1])


def _second_differences(curve: Vector, ratio: float) -> Vector:
    """(H[i+1] - (1 + r) H[i] + r H[i-1]) for i = 1..n, the curve being constant after its end."""
    fall = -np.diff(curve)
    after: Vector = np.append(fall[1:], 0.0)
    return ratio * fall - after


def _wrap(mass: Vector, low: int, size: int) -> Vector:
    """Return the masses at indices low, low + 1, ... folded modulo ``size``."""
    if len(mass) > size:
        padded = np.zeros(-(-len(mass) // size) * size)
        padded[: len(mass)] = mass
        mass = padded.reshape(-1, size).sum(axis=0)
    folded = np.zeros(size)
    folded[: len(mass)] = mass
    return np.roll(folded, low)


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    result = None
    while exponent:
        if exponent & 1:
            result = values if result is None else result * values
        exponent >>= 1
        if exponent:
            values = values * values
    assert result is not None
    return result


_CUT = TAIL / 100
_NO_LOSS = GridLaw(1.0, 0, np.ones(1), 0.0)
# Share of the mass whose losses, the least, are raised: expected values of H rise by no larger a share.
_RAISED = 1e-13


@dataclass(frozen=True)
class SampledCurve:
    """A symmetric curve known at 0, step, 2 step, ...: linear in e^x between, constant after the end."""

    step: float
    values: Vector

    def __call__(self, x: Vector) -> Vector:
        last = len(self.values) - 1
        cell = np.minimum(x / self.step, max(last - 1, 0)).astype(int)  # a quotient may exceed any int
        share = np.expm1(np.minimum(x - cell * self.step, self.step)) / math.expm1(self.step)
        value: Vector = self.values[cell] * (1 - share) + self.values[np.minimum(cell + 1, last)] * share
        return value


def selection_rounds(
    eta: float, release: Profile | None, counts: Iterable[int], cells: int
) -> dict[int, Profile]:
    """Return the dominating curve of k rounds for every k in ``counts``.

    Parameters
    ----------
    eta : float
        Range of the privacy loss of one selection.
    release : Profile or None
        Curve of the release that follows each selection.
    counts : iterable of int
        Numbers of rounds wanted.
    cells : int
        Grid cells per standard deviation of the loss of a round (at most that many per eta).
    """
    from ..kernels.selection_recursion import advance

    counts = set(counts)
    loss = math.hypot(eta / 2, release.size if release else 0.0)
    # a range below one grid step is rounded up to it: an eta-bounded range is eta'-bounded for eta' > eta
    eta = max(eta, 2 * loss / cells)
    per_range = min(cells, max(1, math.ceil(eta * cells / (2 * loss))))
    step = eta / per_range
    law = _without_gains(discretise(release, step, tail=_CUT * 1e-4)) if release else _NO_LOSS
    length = max(counts) * (per_range + law.high) + 1
    curve, wide, after = np.zeros(length), np.empty(3 * length + len(law.mass)), np.empty(3 * length)
    rises = np.expm1(step * np.arange(-per_range, 1.0))
    falls = -np.expm1(-step * np.arange(per_range + law.high + 1.0))
    profiles, done, size = {}, 0, 1
    for count in sorted(counts):
        size = advance(
            curve, size, count - done, rises, falls, math.expm1(step), law.low, law.mass, law.infinite, _CUT,
            wide, after,
        )  # fmt: skip
        profiles[count], done = symmetric(SampledCurve(step, curve[:size].copy())), count
    return profiles


def _without_gains(law: GridLaw) -> GridLaw:
    """The law with its least losses raised to one value: H falls, so no E[H(x - W)] becomes smaller."""
    first = int(np.searchsorted(np.cumsum(law.mass), _RAISED))
    mass = law.mass[first:].copy()
    mass[0] += law.mass[:first].sum()
    return GridLaw(law.step, law.low + first, mass, law.infinite)
