"""Fits with a seed give the numbers that they gave when these were stored.

Processors may round sums differently in the last digit, so the comparison here is not one of bits.
"""

import numpy as np
import pytest

from . import fits

STORED = fits.stored()


@pytest.mark.parametrize("name", sorted(STORED))
def test_a_seeded_fit_gives_what_it_gave(name):
    assert np.allclose(fits.fitted(*name.split(" | ")), STORED[name], rtol=1e-6, atol=1e-9)


def test_every_case_is_stored():
    assert set(STORED) == {f"{name} | {table}" for name in fits.MODELS for table in fits.TABLES}
