"""A keyed hash of each row of a table and its target, added up over the rows in two lanes of 64 bits.

A lane hashes a row, its target being one more column, in the manner of NH (Black et al., UMAC, CRYPTO 1999).
To the 64 digits of each double a key of its column is added modulo 2**64. Of the result t, and of the key k
itself, the halves are multiplied: the hash is the sum over the columns of low(t) high(t) - low(k) high(k),
modulo 2**64. An entry of +0.0 adds nothing, so a table hashes the same with and without its zeros, by rows
and by columns. If two rows differ in some column, at most 2**33 of the 2**64 keys of that column give both
rows the same hash: with the low half of the key given (the high half, if the low halves of the entries are
equal), the difference of the two products takes each value at most twice. The hash of a row is mixed (the
last steps of MurmurHash3) before rows are added up. The keys of columns are a sequence of SplitMix64.
"""

from __future__ import annotations

import numpy as np

from .arguments import Compressed, Entries, Floats, Whole, Words
from .compiled import compiled, part

_0, _1, _2 = (np.uint64(n) for n in range(3))
_HALF, _MASK = np.uint64(32), np.uint64(0xFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S30, _S27, _S31, _S33 = (np.uint64(n) for n in (30, 27, 31, 33))
_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_C, _D = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


@part
def column_key(seed: np.uint64, j: Whole) -> np.uint64:
    """The key of column j: number j + 1 of SplitMix64."""
    z = seed + (j + _1) * _GOLDEN
    z = (z ^ (z >> _S30)) * _A
    z = (z ^ (z >> _S27)) * _B
    return z ^ (z >> _S31)


@part
def mixed(h: np.uint64) -> np.uint64:
    """The last steps of MurmurHash3."""
    h = (h ^ (h >> _S33)) * _C
    h = (h ^ (h >> _S33)) * _D
    return h ^ (h >> _S33)


@part
def bits(value: float) -> np.uint64:
    """The binary digits of a double."""
    return np.float64(value).view(np.uint64)


@part
def product(digits: np.uint64, key: np.uint64) -> np.uint64:
    """Product of the halves of a word plus its key."""
    t = digits + key
    return (t & _MASK) * (t >> _HALF)


@part
def term(value: float, key: np.uint64) -> np.uint64:
    """What an entry adds to the hash of its row."""
    return product(bits(value), key) - product(_0, key)


@compiled(nogil=True)
def write_keys(seeds: Words, keys: Words) -> None:
    """The keys of all columns, one row of ``keys`` for each lane; the last is that of the target."""
    for lane in range(keys.shape[0]):
        for j in range(np.uint64(keys.shape[1])):
            keys[lane, j] = column_key(seeds[lane], j)


@part
def _nothing(keys: Words, p: np.uint64) -> np.uint64:
    """What the products of a row of zeros add up to."""
    total = _0
    for j in range(p):
        total += product(_0, keys[j])
    return total


@compiled(nogil=True)
def dense_sums(X: Entries, first: int, y: Floats, seeds: Words, keys: Words, out: Words) -> None:
    """Add the hashes of as many rows as there are targets, from ``first`` on."""
    p = np.uint64(X.shape[1])
    keys0, keys1 = keys[0], keys[1]
    none0, none1 = _nothing(keys0, p), _nothing(keys1, p)
    for k in range(np.uint64(y.size)):
        row = X[np.uint64(first) + k]
        a, b = _0 - none0, _0 - none1
        for j in range(p):
            digits = bits(row[j])
            a += product(digits, keys0[j])
            b += product(digits, keys1[j])
        out[0] += mixed((a + term(y[k], keys0[p])) ^ seeds[0])
        out[1] += mixed((b + term(y[k], keys1[p])) ^ seeds[1])


@compiled(nogil=True)
def column_sums(
    X: Entries, first: int, y: Floats, seeds: Words, keys: Words, lanes: Words, out: Words
) -> None:
    """The same for a table stored by columns; ``lanes`` is scratch space of shape (2, rows).

    Two columns at a time: every hash is read and written once for two entries.
    """
    p, chunk, n = np.uint64(X.shape[1]), np.uint64(lanes.shape[1]), np.uint64(y.size)
    keys0, keys1, lane0, lane1 = keys[0], keys[1], lanes[0], lanes[1]
    none0, none1 = _nothing(keys0, p), _nothing(keys1, p)
    for start in range(_0, n, chunk):
        rows, place = min(chunk, n - start), np.uint64(first) + start
        for k in range(rows):
            lane0[k] = term(y[start + k], keys0[p]) - none0
            lane1[k] = term(y[start + k], keys1[p]) - none1
        for j in range(_0, p - p % _2, _2):
            here, after = X[:, j], X[:, j + _1]
            a0, a1, b0, b1 = keys0[j], keys1[j], keys0[j + _1], keys1[j + _1]
            for k in range(rows):
                v, w = bits(here[place + k]), bits(after[place + k])
                lane0[k] += product(v, a0) + product(w, b0)
                lane1[k] += product(v, a1) + product(w, b1)
        for j in range(p - p % _2, p):
            here, a0, a1 = X[:, j], keys0[j], keys1[j]
            for k in range(rows):
                v = bits(here[place + k])
                lane0[k] += product(v, a0)
                lane1[k] += product(v, a1)
        for k in range(rows):
            out[0] += mixed(lane0[k] ^ seeds[0])
            out[1] += mixed(lane1[k] ^ seeds[1])


@compiled(nogil=True)
def sparse_sums(table: Compressed, first: int, y: Floats, seeds: Words, p: int, out: Words) -> None:
    """The same for a table stored by rows without its zeros; keys are computed where they are needed."""
    seed0, seed1, last = seeds[0], seeds[1], np.uint64(p)
    for k in range(np.uint64(y.size)):
        i = np.uint64(first) + k
        a, b = term(y[k], column_key(seed0, last)), term(y[k], column_key(seed1, last))
        for t in range(table.indptr[i], table.indptr[i + _1]):
            j, value = np.uint64(table.indices[t]), table.entries[t]
            a += term(value, column_key(seed0, j))
            b += term(value, column_key(seed1, j))
        out[0] += mixed(a ^ seed0)
        out[1] += mixed(b ^ seed1)
