"""Independent computations to hold the accountant against; slow, simple, and bounding from the other side."""

import math

import numpy as np
from scipy.stats import norm


def achieved_delta(eta, rounds, epsilon, release=None, cells=32):
    """A delta that an adaptive adversary attains against ``rounds`` of [selection; release].

    The adversary is held to t on a grid, so no interpolation is needed; losses of the release, given by its
    distribution function under P, are rounded down and those above its quantile 1 - 1e-15 dropped.
    """
    step = eta / cells
    start = round(epsilon / step)
    assert abs(start * step - epsilon) < 1e-9 * step + 1e-12, "epsilon must lie on the grid"
    low, mass = (0, np.ones(1)) if release is None else _rounded_down(release, step)
    high = low + len(mass) - 1
    reach = rounds * (cells + max(high, -low, 0)) + abs(start)
    x = step * np.arange(-reach, reach + 1)
    curve = np.maximum(-np.expm1(x), 0.0)
    weights = np.expm1(step * np.arange(cells + 1) - eta) / math.expm1(-eta)
    for _ in range(rounds):
        after = np.zeros_like(curve)
        for k, m in zip(range(low, high + 1), mass, strict=True):
            after += m * _shifted(curve, k, x)
        curve = np.max(
            [
                w * _shifted(after, j, x) + (1 - w) * _shifted(after, j - cells, x)
                for j, w in enumerate(weights)
            ],
            axis=0,
        )
    return float(curve[reach + start])


def gaussian_loss_cdf(mu):
    return lambda x: norm.cdf(x, loc=mu * mu / 2, scale=mu), mu * mu / 2 + 8 * mu


def laplace_loss_cdf(epsilon):
    def cdf(x):
        inner = np.exp(np.minimum(x - epsilon, 0.0) / 2) / 2
        return np.where(x < -epsilon, 0.0, np.where(x >= epsilon, 1.0, inner))

    return cdf, epsilon


def achieved_poisson_delta(noise, rate, count, epsilon, neighbours, swapped=False, step=2e-5):
    """Lower bound on delta of composed Poisson-sampled Gaussians: losses rounded down, plain FFT."""
    y = np.linspace(-14 * noise - 2, 14 * noise + 2, 1_000_001)
    zero, plus, minus = (np.exp(-((y - c) ** 2) / (2 * noise**2)) for c in (0.0, 1.0, -1.0))
    p = (1 - rate) * zero + rate * plus
    q = zero if neighbours == "zero-out" else (1 - rate) * zero + rate * minus
    if swapped:
        p, q = q, p
    with np.errstate(divide="ignore", invalid="ignore"):
        index = np.where((p > 0) & (q > 0), np.floor(np.log(p / q) / step), -1e6)
    size = 1 << 20
    usable = (p > 0) & (q > 0) & (np.abs(index) < size // 4)
    law = np.bincount(index[usable].astype(int) % size, weights=p[usable] / p.sum(), minlength=size)
    composed = np.fft.irfft(np.fft.rfft(law) ** count, size)
    x = step * np.fft.fftfreq(size, 1 / size)
    return float(np.sum(np.where(x > epsilon, -np.expm1(np.minimum(epsilon - x, 0.0)) * composed, 0.0)))


def _rounded_down(release, step):
    cdf, top = release
    edges = np.arange(-math.ceil(top / step) - 1, math.ceil(top / step) + 2)
    mass = np.diff(cdf(step * edges + 1e-12 * step))
    return int(edges[0]), mass


def _shifted(curve, by, x):
    """Return curve(x - by step); past the ends (1 - e^x)_+, its least possible value."""
    step = x[1] - x[0]
    result = np.maximum(-np.expm1(x - by * step), 0.0)
    if by >= 0:
        result[by:] = curve[: len(curve) - by]
    else:
        result[:by] = curve[-by:]
    return result
