"""Entries beyond a bound on one side only are cut like all others."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds
from dpglm.data import as_data

FORMS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["negative", "positive"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limit", [0.5, np.array([0.5, 0.25, 8.0])], ids=["one limit", "one each"])
def test_entries_of_one_sign_beyond_the_bound_are_cut(form, sign, dtype, limit):
    X = sign * np.array([[3.0, 0.0, 0.125], [0.0, 7.0, 0.25], [0.25, 0.125, 0.0]], dtype=dtype)
    data = as_data(FORMS[form](X), np.zeros(3), Bounds(feature=limit))
    expected = np.clip(X, -np.broadcast_to(limit, 3), np.broadcast_to(limit, 3))
    rows = np.array([data.t_dot(unit) for unit in np.eye(3)])
    assert np.array_equal(rows, expected)
    assert np.allclose(data.row_norms, np.linalg.norm(expected, axis=1))
