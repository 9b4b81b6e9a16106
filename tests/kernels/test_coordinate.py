"""Steps of coordinate descent over a dense table: two in one pass are the same as one after the other."""

import numpy as np
import pytest

from dpglm.arrays import cache_lines
from dpglm.data.sums import cut_to_grid
from dpglm.kernels import coordinate
from dpglm.kernels.arguments import Form, NoiseBlock
from dpglm.losses import Huber, Squared

P = 5


def descended(X, tail, loss, limit, order, blocks):
    """Margins, coefficients and moves after the order of coordinates, in blocks of steps.

    Targets are 0: else margins would be rounded at the end of each block.
    """
    rng = np.random.default_rng(1)
    n, dimension = len(X), P + (tail.size > 0)
    z, w, moves = rng.standard_normal(n), np.zeros(dimension), np.empty(len(order))
    noise, y = rng.standard_normal(len(order)), np.zeros(n)
    clip, rounding = cut_to_grid(np.full(dimension, limit), n)
    lines = cache_lines(dimension)
    lines[:, :6] = 1 / n, 0.1 / n**0.5, 1.1, -0.2, np.inf, 2.0**-20
    lines[:, 6], lines[:, 7] = clip, rounding
    for part in np.array_split(np.arange(len(order)), blocks):
        releases = NoiseBlock(order[part], noise[part], lines)
        some = np.empty(len(part))
        coordinate.descend_dense(X, tail, Form.of(loss), y, z, w, releases, some)
        moves[part] = some
    return z, w, moves


@pytest.mark.parametrize("n", [3, 8, 101, 40_007])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss, limit", [(Squared(), 0.7), (Squared(), np.inf), (Huber(1.0), 0.7)])
@pytest.mark.parametrize("constant", [False, True])
def test_a_block_of_steps_is_the_same_as_single_steps(n, dtype, loss, limit, constant):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, P)).astype(dtype))
    tail = np.ones(n) if constant else np.empty(0)
    order = rng.integers(P + constant, size=30)
    order[:4] = [1, 1, 2, 0]
    block = descended(X, tail, loss, limit, order, 1)
    single = descended(X, tail, loss, limit, order, len(order))
    assert all(np.array_equal(a, b) for a, b in zip(block, single, strict=True))
    assert np.abs(block[2]).max() > 0.3 / n**0.5
