"""Fingerprints of records: the same for the same multiset of records, however it is cut and stored."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import LogisticRegression, Stream
from dpglm.data import as_block
from dpglm.data.fingerprint import Fingerprint, Mark
from dpglm.errors import SourceChanged
from dpglm.kernels import tables as kernels
from dpglm.solvers import GradientDescent

N, P = 203, 11
KEY = 0x0123456789ABCDEFFEDCBA9876543210
WORD = 2**64 - 1


def table():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((N, P)), rng.standard_normal(N)
    X[rng.random(X.shape) < 0.4] = 0.0
    return X, y


def mark(X, y, key=KEY):
    return Fingerprint(key).of(as_block(X), y)


@pytest.mark.parametrize("store", [np.asfortranarray, sp.csr_array, sp.csc_array])
def test_storage_does_not_matter(store):
    X, y = table()
    assert mark(store(X), y) == mark(X, y)


def test_order_and_cut_do_not_matter():
    X, y = table()
    mixed = np.random.default_rng(2).permutation(N)
    assert mark(X[mixed], y[mixed]) == mark(X, y)
    cut = [mark(X[a:b], y[a:b]) for a, b in ((0, 5), (5, 5), (5, 150), (150, N))]
    total = Mark()
    for part in cut:
        total = total.joined(part)
    assert total == mark(X, y)


def test_single_precision_counts_as_the_doubles_it_is_computed_with():
    X, y = table()
    single = X.astype(np.float32)
    assert mark(single, y) == mark(single.astype(np.float64), y)


def changed_tables():
    X, y = table()
    k = int(np.flatnonzero(X[:, 2])[0])
    other = X.copy()
    other[k, 2] = np.nextafter(X[k, 2], 9)
    yield "one digit of one entry", other, y
    other = X.copy()
    other[k, 2] *= -1
    yield "one sign", other, y
    other = X.copy()
    other[np.flatnonzero(X[:, 0] == 0)[0], 0] = -0.0
    yield "the sign of a zero", other, y
    yield "a target moved to another record", X, y[::-1].copy()
    other = X.copy()
    other[0] = X[1]
    yield "a doubled row", other, np.append(y[1], y[1:])
    yield "columns exchanged", X[:, ::-1].copy(), y
    other = X.copy()
    other[[0, 1], 3] = other[[1, 0], 3] + 1.0
    yield "entries exchanged between rows", other, y
    yield "a missing row", X[1:], y[1:]


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in changed_tables()])
def test_a_change_is_noticed_in_both_lanes(X, y):
    before, after = mark(*table()), mark(X, y)
    assert before.first != after.first
    assert before.second != after.second


def test_nan_counts_by_its_digits():
    X, y = table()
    quiet, other = X.copy(), X.copy()
    quiet[0, 0] = np.nan
    other[0, 0] = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    assert mark(quiet, y) == mark(quiet.copy(), y) != mark(other, y)


def test_the_two_lanes_are_the_stated_formula():
    X, y = table()
    seeds = [KEY >> 64, KEY & WORD]
    keys = np.empty((2, P + 1), dtype=np.uint64)
    kernels.write_keys(np.array(seeds, dtype=np.uint64), keys)

    def halves(word):
        return (word & 0xFFFFFFFF) * (word >> 32)

    def mixed(h):
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            h = (h ^ (h >> 33)) * factor & WORD
        return h ^ (h >> 33)

    sums = [0, 0]
    for row in np.column_stack([X, y]).view(np.uint64).tolist():
        for lane in (0, 1):
            own = keys[lane].tolist()
            h = sum(halves((v + k) & WORD) - halves(k) for v, k in zip(row, own, strict=True))
            sums[lane] = (sums[lane] + mixed((h & WORD) ^ seeds[lane])) & WORD
    assert mark(X, y) == Mark(N, *sums)


def test_another_key_is_another_fingerprint_and_the_key_is_not_shown():
    X, y = table()
    assert mark(X, y) != mark(X, y, KEY + 1) != mark(X, y, KEY + 2**64)
    assert repr(Fingerprint(KEY)) == "Fingerprint()"
    assert Fingerprint().of(as_block(X), y) != Fingerprint().of(as_block(X), y)


def fitted(read):
    model = LogisticRegression(epsilon=1.0, classes=[-1, 1], solver=GradientDescent(steps=4))
    return model.fit(Stream(read, N, P), None)


def test_a_stream_that_changes_its_order_and_blocks_is_the_same_table():
    X, y = table()
    labels, rng = np.sign(y), np.random.default_rng(0)

    def read():
        mixed, cut = rng.permutation(N), int(rng.integers(1, N))
        return ((X[here], labels[here]) for here in (mixed[:cut], mixed[cut:]))

    assert np.isfinite(fitted(read).coef_).all()


def test_a_stream_that_changes_a_record_in_a_later_pass_is_refused():
    X, y = table()
    passes = []

    def read():
        passes.append(None)
        other = X.copy()
        other[7, 3] += 1e-9 * (len(passes) == 3)
        return [(other[:50], np.sign(y[:50])), (other[50:], np.sign(y[50:]))]

    with pytest.raises(SourceChanged, match=r"^the source gave other records than before: every pass must"):
        fitted(read)
    assert len(passes) == 3
