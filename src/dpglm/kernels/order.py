"""The order of random numbers."""

from __future__ import annotations

import numpy as np

from .arguments import Integers
from .compiled import compiled


@compiled(nogil=True)
def write_order(keys: Integers, digits: int, begins: Integers, found: Integers, order: Integers) -> None:
    """Write the places of the keys, least key first; equal keys stay in their order.

    Keys have so many binary digits. They are put into bins by the first of these, then ordered inside: that
    takes few moves if keys are uniformly random and there are about as many bins as keys. ``begins`` has one
    entry for each bin, a power of two, and one more; ``found`` is space for the ordered keys.
    """
    bins, shift = begins.size - 1, np.int64(digits)
    while bins > 1:
        bins, shift = bins >> 1, shift - 1
    begins[:] = 0
    for key in keys:
        begins[(key >> shift) + 1] += 1
    for k in range(1, begins.size):
        begins[k] += begins[k - 1]
    for i in range(keys.size):
        at = begins[keys[i] >> shift]
        begins[keys[i] >> shift] = at + 1
        found[at], order[at] = keys[i], i
    for i in range(1, keys.size):
        key, place, at = found[i], order[i], i
        while at > 0 and found[at - 1] > key:
            found[at], order[at] = found[at - 1], order[at - 1]
            at -= 1
        found[at], order[at] = key, place
