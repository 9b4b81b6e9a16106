"""The order of random numbers."""

import numpy as np
import pytest

from dpglm.mechanisms import Randomness
from dpglm.mechanisms.randomness import order_of


@pytest.mark.parametrize("digits", [1, 3, 30, 62])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 4095, 4096, 20_000])
def test_the_order_is_that_of_a_stable_sort(count, digits):
    keys = Randomness(count).integers(1 << digits, count)
    assert np.array_equal(order_of(keys, digits), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("key", [lambda i: 500 - i, lambda i: i, lambda i: 0 * i, lambda i: 2**61 + i // 9])
def test_numbers_that_are_not_random_are_ordered_too(key):
    keys = key(np.arange(500))
    assert np.array_equal(order_of(keys, 62), np.argsort(keys, kind="stable"))
