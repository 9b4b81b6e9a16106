"""What travels together into compiled code.

A call with named tuples takes some two microseconds longer than one with their parts: kernels that are called
at every step of a method take the parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Compressed(NamedTuple):
    """A sparse table by rows or by columns, whichever is the *major* index; indices are unsigned."""

    indptr: Any
    indices: Any
    entries: Any


class BothWays(NamedTuple):
    """A sparse table by rows and by columns."""

    rows: Compressed
    columns: Compressed


class Form(NamedTuple):
    """A loss: its code (see ``forms``) and its one parameter."""

    code: int
    parameter: float

    @classmethod
    def of(cls, loss: Any) -> Form:
        """The form of a loss that has one."""
        return cls(loss.form, loss.form_parameter)


class Cut(NamedTuple):
    """What a term is cut to, and the number whose addition and subtraction rounds it to a grid."""

    limit: float
    rounding: float


class Terms(NamedTuple):
    """What a record adds to a column's sum, given its margin without the intercept's part ``base``."""

    form: Form
    base: float
    cut: Cut


class NoiseBlock(NamedTuple):
    """A block of releases of coordinates: for each its noise and the grid of its sum; clips of all."""

    coordinates: Any
    clip: Any
    noise: Any
    grid: Any


class DualVariables(NamedTuple):
    """For each record its target, the weight and the largest size of its steps, and its dual variable."""

    y: Any
    weight: Any
    limit: Any
    alpha: Any


class DualPoint(NamedTuple):
    """How coefficients follow from the sum v of all dual variables times their rows.

    Coefficient j is v_j beyond the threshold times the inverse, kept in [low, high]; where all are ``plain``,
    there is neither threshold nor interval. An intercept is the last one, ``centre`` plus v_j times the
    inverse.
    """

    centre: float
    inverse: Any
    threshold: Any
    low: Any
    high: Any
    plain: bool


class Bins(NamedTuple):
    """Candidates sorted by the place t_j = (value_j - reference) / scale + ORIGIN of each on a line.

    Bin 0 holds all with t_j < 1, bin k >= 1 those in [k, k + 1). ``perm[start[k]:start[k + 1]]`` are the
    members of bin k, and ``position`` is the inverse of ``perm``. ``line`` begins with grid, 1 / scale and
    reference. ``masses`` is scratch of BINS numbers.
    """

    perm: Any
    position: Any
    start: Any
    line: Any
    masses: Any


class Followed(NamedTuple):
    """Sums of columns at *followed* margins, which may lag behind the true ones by a slack.

    Attributes
    ----------
    rows : array of shape (n, 8)
        A cache line for each row: v_i, whose product with the factor is a part of its margin; the followed
        part; target; factor of its entries; the part that heads have followed, and the slope there.
    sums : array of shape (p, 2)
        Sum at the followed margins and its slack; a slack of -1 - k marks head k.
    bounds : array of shape (p,)
        Scratch.
    slack : float
        How far a followed margin may lag behind.
    """

    rows: Any
    sums: Any
    bounds: Any
    slack: float


class Heads(NamedTuple):
    """Columns that weigh much, followed to first order in the factor.

    Attributes
    ----------
    columns : array of shape (h,)
    lines : array of shape (h, 4)
        Constant, part that the factor multiplies, slack, bound that its bin stands for.
    begins, entries : arrays of shapes (n + 1,) and (m, 2)
        By rows, where each begins, and (number of the head, entry).
    slack : float
        How far the margins that heads have followed may lag behind.
    """

    columns: Any
    lines: Any
    begins: Any
    entries: Any
    slack: float


class Calendar(NamedTuple):
    """When to look at which row.

    Attributes
    ----------
    factors : array of shape (steps + 1,)
        The factor before each step, and after the last.
    links : array of shape (n, 16)
        The memory of `Followed.rows` as integers. Number DUE is the step at which a row must be looked at
        again, 0 for none.
    lists : array of shape (steps + 1, 3)
        For each step the first chunk of its list (-1 for none), how many rows that chunk has, and how many
        there are in all. A list may hold rows that have become due at an earlier step since.
    pool : array of shape (chunks, 1 + CHUNK)
        The next chunk (-1 for none), and rows.
    spare : array of shape (2,)
        The first chunk that is free, and how many are.
    """

    factors: Any
    links: Any
    lists: Any
    pool: Any
    spare: Any
