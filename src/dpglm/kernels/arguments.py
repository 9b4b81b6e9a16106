"""Named tuples of the arguments of compiled code.

A call with named tuples takes some microseconds longer than one with their fields, or with plain tuples of
them: kernels that are called at every step of a method take these.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Entries = NDArray[np.floating]
Signed = NDArray[np.signedinteger]
Unsigned = NDArray[np.unsignedinteger]
Integers = NDArray[np.int64]
Places = NDArray[np.uint32]
Words = NDArray[np.uint64]
Whole = int | np.unsignedinteger
Fields = tuple[Any, ...]
"""The fields of a named tuple, as a plain one."""

LARGEST_SLOPE = 1e150
"""No slope and no dual step counts as larger."""

PLAIN, SQUARES, SIZES = range(3)
"""Sums over the entries of row times factor: of themselves, their squares or absolute values."""


class Compressed(NamedTuple):
    """A sparse table by rows or by columns, whichever is the *major* index; indices are unsigned."""

    indptr: Unsigned
    indices: Unsigned
    entries: Entries


class BothWays(NamedTuple):
    """A sparse table by rows and by columns."""

    rows: Compressed
    columns: Compressed


class Held(NamedTuple):
    """A sparse table of which some columns are extracted, with a 1 for each of them."""

    table: BothWays
    columns: NDArray[np.uint8]


class ScoreRule(NamedTuple):
    """The rule of scores of coordinates: its code, the public n, the penalty, and coordinates without one."""

    code: int
    n: int
    l1: float
    l2: float
    low: float
    high: float
    free: int


class Margins(NamedTuple):
    """A loss, targets, margins and slopes of the records."""

    form: Form
    y: Floats
    z: Floats
    slopes: Floats


class KeptState(NamedTuple):
    """Sums that are kept up to date, for ``sums.shift``: the table by rows, and what its columns need.

    Attributes
    ----------
    indptr, indices, table, scale, tail : arrays
        The table; the factor of each row; the constant feature, if there is one.
    state : array of shape (columns, 3)
        Of each column its sum, and centre and half width of its tracked range.
    limits : array of shape (columns, 2) or (2, 2)
        What a term is cut to, and its rounding constant: of each column, or of all and of the last one.
    marks, touched : arrays of shape (columns,)
        The mark of the last change that listed a column, and space for the list.
    points : array of shape (columns, 2)
        Coefficient and curvature of each.
    """

    indptr: Unsigned
    indices: Unsigned
    table: Entries
    scale: Floats
    tail: Floats
    state: Floats
    limits: Floats
    marks: Floats
    touched: Signed
    points: Floats


class HasForm(Protocol):
    """A loss with a compiled form, or None."""

    @property
    def form(self) -> int | None: ...
    @property
    def form_parameter(self) -> float: ...
    @property
    def form_range(self) -> tuple[float, float, float, float]: ...


class Form(NamedTuple):
    """A loss: its code (see ``formulas``), its first parameter, and further ones of losses that have them.

    These are the range of margins, the largest target (the width of a quantile) and the largest curvature.
    """

    code: int
    parameter: float
    low: float = 0.0
    high: float = 0.0
    top: float = 0.0
    smoothness: float = 0.0

    @classmethod
    def of(cls, loss: HasForm) -> Form:
        """The form of a loss that has one."""
        if loss.form is None:
            raise TypeError(f"{loss!r} has no compiled form")
        return cls(loss.form, loss.form_parameter, *loss.form_range)


class Beside(NamedTuple):
    """Optional numbers of a record other than its row and target.

    Attributes
    ----------
    share : array
        Factor from 0 to 1 of all that the record adds to a sum, after it was clipped.
    offset : array
        A number that is added to its margin.
    """

    share: Floats
    offset: Floats


PAIRED = frozenset(range(5))
"""The codes of losses whose slopes are computed in pairs of doubles too (see ``double_double``)."""


class Duals(NamedTuple):
    """Of each record its dual variable and how much its prediction changes with it; steps are written."""

    alpha: Floats
    weight: Floats
    steps: Floats


class RowFacts(NamedTuple):
    """Of each record the factor of its row, its norm with the constant feature, and its target.

    A null record has the factor 0. ``constant`` is the constant feature, 0 if there is none. ``beside`` is
    None if no record has a weight or an offset: then its parts are not computed at all. ``duals`` are given
    if dual steps take the place of slopes.
    """

    scale: Floats
    norms: Floats
    y: Floats
    constant: float
    beside: Beside | None = None
    duals: Duals | None = None


class Cut(NamedTuple):
    """The limit of a term, and the number whose addition and subtraction rounds it to a grid."""

    limit: float
    rounding: float


class Terms(NamedTuple):
    """The terms of a column's sum, as functions of margins without the intercept's part ``base``."""

    form: Form
    base: float
    cut: Cut


class NoiseBlock(NamedTuple):
    """A block of releases of coordinates: each with its noise.

    A row of ``lines``, one cache line, is what a step along a coordinate needs: the rate of its move; the
    threshold, the divisor and the ends of its proximal step; the grid of its release; the clip, a multiple of
    the grid of terms, and the number whose addition rounds a term to that grid (see ``exact``).
    """

    coordinates: Signed
    noise: Floats
    lines: Floats


CoordinateSteps = tuple[Form, Floats, Floats, Floats, NoiseBlock, Floats]
"""Arguments of ``coordinate.descend_*`` after the table: form, y, z, w, releases, moves."""


class DualVariables(NamedTuple):
    """For each record its target, the weight and the largest size of its steps, and its dual variable."""

    y: Floats
    weight: Floats
    limit: Floats
    alpha: Floats


class DualPoint(NamedTuple):
    """The map to coefficients from the sum v of all dual variables times their rows.

    Coefficient j is v_j, soft-thresholded, times the inverse, clipped to [low, high]. If ``plain``, no
    coefficient has a threshold or an interval; ``common`` is then the inverse that all features share, 0 if
    they differ. An intercept is the last coefficient: ``centre`` plus v_j times the inverse.
    """

    centre: float
    inverse: Floats
    threshold: Floats
    low: Floats
    high: Floats
    plain: bool
    common: float


DualSteps = tuple[Form, DualVariables, Floats, Floats, DualPoint, Signed]
"""Arguments of ``dual.ascend_*`` after the table: form, variables, v, w, point, order."""


class Bins(NamedTuple):
    """Candidates sorted by the place t_j = (value_j - reference) / scale + ORIGIN of each on a line.

    Bin 0 holds all with t_j < 1, bin k >= 1 those in [k, k + 1). ``perm[start[k]:start[k + 1]]`` are the
    members of bin k, and ``position`` is the inverse of ``perm``. ``line`` begins with grid, 1 / scale and
    reference. ``masses`` is scratch space of BINS numbers.
    """

    perm: Places
    position: Places
    start: Integers
    line: Floats
    masses: Floats


class Followed(NamedTuple):
    """Sums of columns at *followed* margins, which may lag behind the true ones by a slack.

    Attributes
    ----------
    rows : array of shape (n, 8)
        A cache line for each row: v_i, whose product with the factor is a part of its margin; the followed
        part; target; factor of its entries; the part at which the models of the leading columns take it,
        and the slope there; its place in the `Calendar`; and the v that these models take.
    sums : array of shape (p, 2)
        Sum at the followed margins and its slack; a slack of -1 - k marks leading column k.
    slack : float
        How far a followed margin may lag behind.
    """

    rows: Floats
    sums: Floats
    slack: float


class Leading(NamedTuple):
    """Leading columns: those of large weight, whose sums are linear models in the factor.

    Attributes
    ----------
    columns : array of shape (h,)
    lines : array of shape (h, 4)
        The model of each: constant, multiple of the factor, slack; and the bound by which it is in its bin.
    begins, entries : arrays of shapes (n + 1,) and (m, 2)
        By rows, where each begins, and (number of the leading column, entry).
    slack : float
        How far the margins that the models take may lag behind.
    drift : array of shape (2,)
        How much the models may be off because moves were left out of them, as a share of what their slacks
        have for it and over the factor; and what a unit of push adds to that for a unit of entries.
    """

    columns: Unsigned
    lines: Floats
    begins: Unsigned
    entries: Entries
    slack: float
    drift: Floats


class Blocks(NamedTuple):
    """Some columns by blocks of rows, and in each block by columns.

    Attributes
    ----------
    begins : array of shape (blocks, columns + 1)
        Where each column begins in a block; the last is the end of the block.
    places : array of uint16
        The row of an entry, counted from the first row of its block.
    entries : array
    size : int
        Rows in a block.
    """

    begins: Words
    places: NDArray[np.uint16]
    entries: Entries
    size: int


class Pending(NamedTuple):
    """Head columns, whose moves stay pending: their sums are expansions to second order around a reference.

    Whole numbers are in the units of ``kernels.pending_moves``.

    Attributes
    ----------
    leading : Leading
        The heads, by rows too. Of ``lines`` the first three are sum, 0 and slack, at the present factor.
    blocks : Blocks
        The heads by blocks of rows.
    lengths : array of shape (h,)
        The number of entries of each head.
    active : array of shape (h,)
        A 1 for each head that may have a coefficient or a move while the reference stays.
    sums : array of shape (h, 3)
        At the reference the sum of each head, its change as all but the heads shrink, and the error of that.
    block : array of shape (2, h, h)
        The change of each head's sum (second index) as an active head moves (first one), and the error of
        that.
    coefs : array of shape (h, 2)
        Of each head the sum of the moves before the reference, and of those since then, over the factor.
    which, pushes : arrays of the same shape
        The pending moves, and space for more: head, and its push.
    masks : array of shape (h, windows)
        A bit for each pending move: whether it is one of the head.
    counts : array of shape (4,)
        How many moves are pending, the level of the sums (0 for slopes only, see ``pending.add_pairs``), how
        many rows selections have looked at since the reference, and how many times a column that is no head
        has moved a row since the list of moves was empty.
    moved, values, scalars : arrays of shapes (h, 2), (h, 2) and (3,)
        Set by ``pending.expand``: since the reference the move of each head, and its square; of each head its
        sum and the error of that; the change of the factor, its square, and what rounding adds for a row.
    most : array of shape (8,)
        With s the sum of a row's absolute entries of active heads, and x its largest one of heads, the
        largest of all rows' s x, parts of no head, x, numbers of active heads, s² x and s x²; twice the
        largest error of a row; the factor of the reference.
    scratch : array of shape (h,)
    numbers, xs : arrays of shape (2, h)
        Space for the active heads of a row, and for the others.
    pairs : array of shape (level * h, h)
        What rows add to the block, until it is added; 0 before.
    steep, beta, gamma : float
        Bounds of the loss's slope, of its smoothness, and of how fast its curvature changes.
    largest : float
        The largest absolute entry of the table.
    entry, tiny : float
        What the rounding of doubles adds for each entry, and to the move of a head.
    """

    leading: Leading
    blocks: Blocks
    lengths: Integers
    active: NDArray[np.uint8]
    sums: Integers
    block: Integers
    coefs: Floats
    which: NDArray[np.int32]
    pushes: Floats
    masks: Words
    counts: Integers
    moved: Integers
    values: Integers
    scalars: Integers
    most: Floats
    scratch: Floats
    numbers: Unsigned
    xs: Floats
    pairs: Floats
    steep: float
    beta: float
    gamma: float
    largest: float
    entry: float
    tiny: float


class Calendar(NamedTuple):
    """The schedule of row updates: after which step to look at which row.

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
    coming : array
        Space for the columns of the next proposals (see ``prefetch``).
    """

    factors: Floats
    links: NDArray[np.int32]
    lists: NDArray[np.int32]
    pool: NDArray[np.int32]
    spare: Integers
    coming: Integers


class Box(NamedTuple):
    """The box of the coordinates of a row: features move by ``middle``, are scaled and rounded to a grid.

    ``dimension`` counts the constant 1, if there is one, after the features.
    """

    middle: Floats
    inverse: Floats
    rounding: float
    dimension: int


class Soft(NamedTuple):
    """The weights of a record's slope and curvature (see ``products``).

    ``limit`` bounds the norm of a row, ``bound`` is the largest slope, and ``curvature`` the largest
    curvature, which is allowed where the slope is 0. ``added`` is what rounding can add to the norm of a row
    that is weighed by its curvature.
    """

    limit: float
    bound: float
    curvature: float
    rounding_bent: float
    rounding_pulled: float
    added: float
