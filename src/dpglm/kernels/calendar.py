"""The schedule of row updates: which rows to look at after which Frank-Wolfe step (see `Calendar`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .ahead import PROPOSALS
from .arguments import Calendar, Floats, Whole
from .compiled import compiled, part

DUE, CHUNK = 12, 15
_SURE = 2.0**-40


def empty(factors: Floats, links: NDArray[np.int32]) -> Calendar:
    """An uninitialised schedule for steps with these factors, with space for three lists of all rows."""
    lists, spare = np.empty((len(factors), 3), dtype=np.int32), np.empty(2, dtype=np.int64)
    chunks = 3 * len(links) // CHUNK + 2 * len(factors) + 16
    pool, coming = np.empty((chunks, 1 + CHUNK), dtype=np.int32), np.empty(PROPOSALS, dtype=np.int64)
    return Calendar(factors, links, lists, pool, spare, coming)


@part
def until(part: float, v: float, slack: float) -> float:
    """The factor below which factor * v differs from ``part`` by more than a slack; 0 if it never does."""
    if v == 0 or (part > 0) != (v > 0) or abs(part) <= slack:
        return 0.0
    return (abs(part) - slack) / abs(v)


@part
def note(i: Whole, step: Whole, calendar: Calendar) -> None:
    """Write row i into the list of a step. There must be a free chunk."""
    lists, pool, spare = calendar.lists, calendar.pool, calendar.spare
    if lists[step, 0] < 0 or lists[step, 1] == CHUNK:
        chunk = spare[0]
        spare[0] = pool[chunk, 0]
        spare[1] -= 1
        pool[chunk, 0] = lists[step, 0]
        lists[step, 0], lists[step, 1] = chunk, 0
    lists[step, 1] += 1
    lists[step, 2] += 1
    pool[lists[step, 0], lists[step, 1]] = i
    calendar.links[i, DUE] = step


@part
def schedule(i: Whole, least: float, step: int, calendar: Calendar) -> None:
    """Schedule row i for the first step with a factor below ``least``; now it is ``factors[step]``."""
    factors, due = calendar.factors, calendar.links[i, DUE]
    last = factors.size - 1
    least *= 1 + _SURE
    if step == last or factors[last] >= least:
        return
    if due > 0 and factors[due - 1] >= least:
        return
    low, high = step, last  # factors[low] >= least > factors[high], unless it is due at once
    while high - low > 1:
        middle = (low + high) // 2
        if factors[middle] < least:
            high = middle
        else:
            low = middle
    note(i, high, calendar)


@part
def clear(calendar: Calendar) -> None:
    """Make all lists empty and all chunks free."""
    lists, pool, spare = calendar.lists, calendar.pool, calendar.spare
    lists[:, 0], lists[:, 1], lists[:, 2] = -1, 0, 0
    for chunk in range(pool.shape[0]):
        pool[chunk, 0] = chunk + 1
    pool[pool.shape[0] - 1, 0] = -1
    spare[0], spare[1] = 0, pool.shape[0]


@compiled(nogil=True)
def schedule_all(rows: Floats, slack: float, leading_slack: float, calendar: Calendar) -> None:
    """Schedule all rows: those with a margin move with the factor from the first step on."""
    clear(calendar)
    for i in range(np.uint64(rows.shape[0])):
        calendar.links[i, DUE] = 0
        v = rows[i, 0]
        least = max(until(rows[i, 1], v, slack), until(rows[i, 4], v, leading_slack))
        if least > 0:
            schedule(i, least, 0, calendar)


@compiled(nogil=True)
def write_anew(calendar: Calendar) -> None:
    """Write the schedule again, without rows that have become due at an earlier step."""
    clear(calendar)
    for i in range(np.uint64(calendar.links.shape[0])):
        if calendar.links[i, DUE] > 0:
            note(i, calendar.links[i, DUE], calendar)
