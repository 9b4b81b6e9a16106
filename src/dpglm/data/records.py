"""The records of a fit: a table, its targets, and the bounds that hold for every row.

What one record adds to a sum is computed here and nowhere else: its margin, its slope, the clipped slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import ROUNDING, Vector, finer_grid, one_blas_thread
from ..kernels.arguments import (
    LARGEST_SLOPE,
    PLAIN,
    SIZES,
    SQUARES,
    Beside,
    BothWays,
    Duals,
    DualSteps,
    Form,
    RowFacts,
)
from ..losses import Loss
from ..tables import Capability, Columns, Index, Rows, RowsAndColumns, refusal
from ..threads import chunk_count, even_edges, parallel_sum, run_ranges
from .products import CrossProducts, rows_a_chunk
from .record_set import ByClass, Coins, Grid, Part, RecordSet
from .resident import Dense, ResidentTable, RowSlice, Steps
from .sparse import CSC, ColumnCache
from .sums import ClippedSums, WeightedSums
from .terms import DualMoves, FixedFactors, Gradient, PreciseGradient, Term
from .units import Units

_ROWS_A_CHUNK = 1 << 13


@dataclass(frozen=True, eq=False)
class Records(RecordSet):
    """Rows inside their bounds, with an optional constant feature, and one target each.

    The table itself is not copied to scale its rows: ``scale`` multiplies them inside the products, and
    ``norms`` are those of the scaled rows, computed when they are asked for unless they are known. A null
    record, one that is not finite, has scale 0: it adds nothing to any sum, not even through the constant
    feature. What is asked beyond passes over the table is refused if the table does not offer it.

    ``radius`` is the declared bound on the norm of a row, the constant feature included. ``table_size`` is
    the public number of records of the whole table, where these are some of its records, or the most that
    there can be, where their number is private: it decides on the grid of sums.

    ``beside`` holds the share of each record, a factor from 0 to 1 of what it adds after clipping, and the
    offset that is added to its margin; None if no record has a weight or an offset.

    ``persons`` says whose the records are, if persons have several. Then ``table_size`` is the number of
    persons, batches and parts are those of persons, and the shares are parts of those of a person.
    """

    block: ResidentTable | RowSlice
    scale: Vector
    known_norms: Vector | None
    y: Vector
    constant: float
    radius: float = math.inf
    table_size: int = 0
    beside: Beside | None = None
    persons: Units | None = None

    def __post_init__(self) -> None:
        if not self.table_size:
            units = self.n_records if self.persons is None else self.persons.count
            object.__setattr__(self, "table_size", units)

    @property
    def has_units(self) -> bool:
        return self.persons is not None

    @cached_property
    def n_records(self) -> int:
        return self.block.shape[0]

    @cached_property
    def n_features(self) -> int:
        """Features of the table, without the constant one."""
        return self.block.shape[1]

    @cached_property
    def intercept_column(self) -> Vector:
        """The constant feature: zero for a null record."""
        return np.where(self._counts, self.constant, 0.0)

    @cached_property
    def norms(self) -> Vector:
        """Norm of each row, scaled, without the constant feature."""
        if self.known_norms is not None:
            return self.known_norms
        table = self.block if isinstance(self.block, ResidentTable) else self._piece
        return self.scale * table.row_norms

    @cached_property
    def row_norms(self) -> Vector:
        """Norm of each row, the constant feature included."""
        if not self.constant:
            return self.norms
        norms: Vector = np.sqrt(np.square(self.norms) + np.square(self.intercept_column))
        return norms

    def margins(self, w: Vector) -> Vector:
        """Prediction of each record at w, before the link: an affine map."""
        return self.dot(w) if self.beside is None else self.dot(w) + self.beside.offset

    def shared(self, values: Vector) -> Vector:
        """Numbers of the records, each times the share of its record."""
        return values if self.beside is None else values * self.beside.share

    def parted(self, values: Vector, less: float = 0.0) -> Vector:
        """Numbers of the records that have no weight, each times its part in its person.

        Parts of persons with several records are smaller by ``less``.
        """
        if self.persons is None:
            return values
        share = self.persons.share
        return values * np.where(self.persons.several, np.maximum(share - less, 0.0), share)

    def on_grid(self, values: Vector, grid: float) -> NDArray[np.int64]:
        """Numbers of the records in whole steps of a grid: the nearest.

        Those of a person with several records are rounded towards 0: together they do not grow.
        """
        rounding = ROUNDING * grid
        nearest = ((values + rounding) - rounding) / grid
        if self.persons is not None:
            nearest = np.where(self.persons.several, np.trunc(values / grid), nearest)
        steps: NDArray[np.int64] = nearest.astype(np.int64)
        return steps

    def beside_less(self, added: float, root: bool = False) -> Beside | None:
        """What stands beside the records; shares of persons with several are smaller by ``added``.

        Or their roots are, if it is the roots that are multiplied by.
        """
        if self.beside is None or self.persons is None:
            return self.beside
        share = self.beside.share
        less = np.square(np.maximum(np.sqrt(share) - added, 0.0)) if root else np.maximum(share - added, 0.0)
        return Beside(np.where(self.persons.several, less, share), self.beside.offset)

    def slopes(self, loss: Loss, z: Vector, rows: Index | None = None) -> Vector:
        """Slope at margin z of all records, or of ``rows``: at most 1e150, and 0 for a null record."""
        slopes = _slopes(loss, z, self.y if rows is None else self.y[rows])
        if self._all_count:
            return slopes
        return np.where(self._counts if rows is None else self._counts[rows], slopes, 0.0)

    def dual_steps(self, loss: Loss, alpha: Vector, z: Vector, weight: Vector) -> Vector:
        """Dual step of each record from its dual variable and margin, of at most 1e150.

        ``weight`` is how much the prediction of a record changes with a step of 1. A null record has a dual
        variable too, but its row is 0.
        """
        if loss.form is None:
            return finite(loss.dual_step(alpha, z, self.y, weight))
        from ..kernels.formulas import write_dual_steps  # compiled code is loaded by those who use it

        steps = np.empty_like(z)
        write_dual_steps(Form.of(loss), alpha, z, self.y, weight, steps)
        return steps

    def clipped(self, slopes: Vector, clip: float) -> Vector:
        """Slopes cut so that slope times row, the constant feature included, has norm at most ``clip``.

        They are multiplied by the share of each record then: it adds at most its share of the clip.
        """
        if not math.isfinite(clip):
            return self.shared(slopes)
        with np.errstate(divide="ignore"):
            most = clip / self.row_norms
        return self.shared(np.clip(slopes, -most, most))

    def dot(self, w: Vector) -> Vector:
        """Each row times w: a linear map. For predictions see ``margins``."""
        features, intercept = self.split(w)
        if not w.any():
            return np.zeros(self.n_records)  # where most methods start
        z: Vector = self.scale * self.block.dot(features)
        if self.constant:
            z += self.intercept_column * intercept
        return z

    def t_dot(self, r: Vector) -> Vector:
        """Sum over the records of r_i times row i, of any length: not private."""
        return np.asarray(self.total(FixedFactors(r)))

    def steps(self, term: Term, grid: Grid, finely: int = 0) -> Steps:
        if term.scales is not None:
            return self.with_columns(term.scales).steps(replace(term, scales=None), grid, finely)
        if term.constant_feature is not None:
            other = self.with_constant(term.constant_feature)
            return other.steps(replace(term, constant_feature=None), grid, finely)
        if isinstance(term, Gradient) and term.longest is not None:
            return self.weighed_by_length(term.longest).steps(replace(term, longest=None), grid, finely)
        shape = (1 + finely, term.entries(self.n_features))
        if term.needs_norms:
            _ = self.row_norms  # parts of the records would compute them in every pass
        if isinstance(term, CrossProducts):
            with one_blas_thread():
                return parallel_sum(
                    lambda start, stop, out: self._add_products(term, start, stop, out[0]),
                    self._even(chunk_count(self.n_records * self.n_features)), shape,
                )  # fmt: skip
        if isinstance(term, PreciseGradient) or (
            isinstance(term, Gradient | DualMoves) and term.is_compiled and not finely
        ):
            return self._gradient_steps(term, float(grid), shape)
        return parallel_sum(
            lambda start, stop, out: self.part(start, stop)._add(term.part(start, stop), grid, out),
            self._chunks(), shape,
        )  # fmt: skip

    def _gradient_steps(
        self, term: Gradient | DualMoves | PreciseGradient, grid: float, shape: tuple[int, int]
    ) -> Steps:
        """The same for gradients that compiled code computes as a whole."""
        form, clip, piece = Form.of(term.loss), term.clip, self._piece
        finer = finer_grid(1.0, self.table_size)
        rounding = np.array([ROUNDING * grid * finer**k for k in range(shape[0])])
        w, given = np.empty((*term.w.shape[:-1], self.n_features + 1)), term.w.shape[-1]
        w[..., :given], w[..., given:] = term.w, 0.0

        def gradient(start: int, stop: int, out: Steps) -> None:
            here = slice(start, stop)
            duals = (
                Duals(term.alpha[here], term.weight[here], term.steps[here])
                if isinstance(term, DualMoves)
                else None
            )
            facts = self._row_facts(here, duals)
            place = piece.index, piece.first + start
            if isinstance(term, PreciseGradient):
                piece.table.add_precise_gradient(*place, facts, form, w, clip, rounding, out)
            else:
                piece.table.add_gradient(*place, facts, form, w, clip, float(rounding[0]), out[0])

        return parallel_sum(
            gradient, even_edges(self.n_records, chunk_count(piece.entries, self.n_features)), shape
        )

    def _row_facts(self, here: slice, duals: Duals | None = None) -> RowFacts:
        """What compiled passes take of some records besides their rows."""
        return RowFacts(
            self.scale[here], self.row_norms[here], self.y[here], self.constant, taken(self.beside, here),
            duals,
        )  # fmt: skip

    def add_class_gradient(self, w: Vector, clip: float, grid: float, out: Steps) -> None:
        """Add the gradients at w of each record for all classes, in one thread.

        They are scaled down together to a norm of at most ``clip``. w has a column for each class, ``out`` a
        row; the last entry of a row is that of the constant feature.
        """
        piece, by_class = self._piece, np.zeros((w.shape[1], self.n_features + 1))
        by_class[:, : len(w)] = w.T
        table = piece.table
        for start in range(0, self.n_records, table.rows_of_classes):
            here = slice(start, min(start + table.rows_of_classes, self.n_records))
            place = piece.index, piece.first + start
            table.add_class_gradient(*place, self._row_facts(here), by_class, clip, ROUNDING * grid, out)

    def _add_products(self, term: CrossProducts, start: int, stop: int, out: NDArray[np.int64]) -> None:
        for chunk, _, _ in self._few(term.rows_at_once, start, stop):
            term.add(chunk, out)

    def in_chunks(self, width: int, work: Callable[[Records, int, int], object]) -> None:
        """Run work(records, start, stop) on chunks of few records of so many numbers, in threads."""

        def chunks(_: int, start: int, stop: int) -> None:
            for chunk in self._few(rows_a_chunk(width), start, stop):
                work(*chunk)

        with one_blas_thread():
            run_ranges(chunks, self._even(chunk_count(self.n_records * width)))

    def _few(self, count: int, start: int, stop: int) -> Iterator[tuple[Records, int, int]]:
        """Chunks of at most ``count`` of the records from start to stop, each with its start and stop."""
        edges = [*range(start, stop, count), stop]
        if self.persons is not None:
            edges = self.persons.whole(edges)
        for first, last in pairwise(edges):
            if first < last:
                yield self.part(first, last), first, last

    def in_table(self, block: ResidentTable, scale: Vector, norms: Vector) -> Records:
        """The same records with other rows, and without a constant feature."""
        return Records(
            block, scale, norms, self.y, 0.0, table_size=self.table_size, beside=self.beside,
            persons=self.persons,
        )  # fmt: skip

    def with_constant(self, constant: float) -> Records:
        """The same records with another constant feature; what was computed for one is kept."""
        if constant == self.constant:
            return self
        if constant not in self._other_constants:
            rows = math.sqrt(max(self.radius**2 - self.constant**2, 0.0))
            self._other_constants.clear()
            self._other_constants[constant] = replace(
                self, constant=constant, radius=math.hypot(rows, constant)
            )
        return self._other_constants[constant]

    def weighed_by_length(self, longest: float) -> Records:
        """The same records, those with a longer row with the weight longest / norm; what they add is clipped.

        The weight is a part of the share, which follows after the clip, and the clip is for the weighed row.
        What was computed for the last norm is kept.
        """
        if longest not in self._by_length:
            weight = longest / np.maximum(self.row_norms, longest)
            offset = np.zeros(self.n_records) if self.beside is None else self.beside.offset
            weighed = replace(self, beside=Beside(self.shared(weight), offset))
            weighed.__dict__["row_norms"] = np.minimum(self.row_norms, longest)
            self._by_length.clear()
            self._by_length[longest] = weighed
        return self._by_length[longest]

    @cached_property
    def _by_length(self) -> dict[float, Records]:
        return {}

    def with_columns(self, scales: Vector) -> Records:
        """The same records with column j of the table multiplied by scale j, which is from 0 to 1.

        What was computed for the last scales is kept.
        """
        if not (self._other_columns and np.array_equal(self._other_columns[0][0], scales)):
            block = self.block if isinstance(self.block, ResidentTable) else self._piece
            table = replace(self, block=block.times_columns(scales), known_norms=None)
            self._other_columns[:] = [(scales, table)]
        return self._other_columns[0][1]

    @cached_property
    def _other_columns(self) -> list[tuple[Vector, Records]]:
        return []

    @cached_property
    def _other_constants(self) -> dict[float, Records]:
        return {}

    @property
    def dense(self) -> Vector:
        """The rows as an array of doubles, before they are scaled: for few records."""
        piece = self._piece
        return piece.table.dense(piece.index, piece.first, piece.count)

    def longest(self, term: Term) -> float:
        edges = self._chunks()
        found, _ = np.zeros(len(edges) - 1), self.norms

        def work(k: int, start: int, stop: int) -> None:
            rows = self.part(start, stop)
            lengths = np.abs(term.part(start, stop).factors(rows)) * rows.row_norms
            found[k] = np.max(np.square(lengths) if term.square else lengths, initial=0.0)

        run_ranges(work, edges)
        return float(found.max(initial=0.0))

    def part(self, start: int, stop: int) -> Records:
        """A range of the records, read in place."""
        if (start, stop) == (0, self.n_records):
            return self
        here = slice(start, stop)
        known: Vector | None = self.__dict__.get("norms", self.known_norms)
        part = Records(
            self._piece.part(start, stop), self.scale[here], None if known is None else known[here],
            self.y[here], self.constant, self.radius, self.table_size, taken(self.beside, here),
            None if self.persons is None else self.persons.taken(here),
        )  # fmt: skip
        if "row_norms" in self.__dict__:
            part.__dict__["row_norms"] = self.row_norms[here]
        return part

    def _chunks(self) -> list[int]:
        """Edges of chunks that, with what is computed for each of their rows, stay in the cache.

        They are fewer where a sum of each has more entries than a chunk.
        """
        n, entries = self.n_records, self._piece.entries
        fitting = entries // (4 * self.n_features + 1)
        return self._even(max(chunk_count(entries, self.n_features), min(n // _ROWS_A_CHUNK, fitting)))

    def _even(self, parts: int) -> list[int]:
        """Edges of ranges of about as many records each; all records of a person are in one of them."""
        edges = even_edges(self.n_records, parts)
        return edges if self.persons is None else self.persons.whole(edges)

    def _add(self, term: Term, grid: Grid, out: Steps) -> None:
        """Add what each record adds, in one thread and at once."""
        piece = self._piece
        table, index, first = piece.table, piece.index, piece.first
        factors, rounding = term.factors(self), ROUNDING * grid
        entries = factors * self.scale
        if not term.square:
            tail = factors * self.intercept_column
            if term.cuts is not None and self.constant:
                tail = np.clip(tail, -term.cuts[-1], term.cuts[-1])
            last = float(np.ravel(rounding)[-1])
            if term.sizes:
                out, sizes = np.split(out, 2, axis=1)
                sizes[0, -1] += _steps(np.abs(tail), last)
                table.add(index, first, np.abs(entries), SIZES, float(rounding), sizes[0])
            out[0, -1] += _steps(tail, last)
            if len(out) > 1:
                finer = finer_grid(float(np.ravel(grid)[-1]), self.table_size) * ROUNDING
                out[1, -1] += _steps(tail - ((tail + last) - last), finer)
        if not term.columns:
            return
        if term.cuts is not None:
            p = self.n_features
            table.add_cut(index, first, entries, term.cuts[:p], np.ravel(rounding)[:p], out[0])
        elif len(out) > 1:
            finer = finer_grid(float(grid), self.table_size) * ROUNDING
            table.add_finely(index, first, entries, float(rounding), finer, out[0], out[1])
        else:
            table.add(index, first, entries, SQUARES if term.square else PLAIN, float(rounding), out[0])

    @property
    def _piece(self) -> RowSlice:
        if isinstance(self.block, RowSlice):
            return self.block
        if isinstance(self.block, ResidentTable):
            return self.block.whole
        raise TypeError(f"{type(self.block).__name__} is not a table in memory")

    def batch(self, coins: Coins) -> NDArray[np.intp]:
        """Indices of the records whose coins say yes, without null records, which add nothing to any sum."""
        persons = self.persons
        if persons is None:
            taken = coins.taken(0, self.n_records)
        else:
            taken = persons.rows_of(coins.taken(0, persons.count))
        return taken if self._all_count else taken[self._counts[taken]]

    def rows(self, batch: NDArray[np.intp]) -> Records:
        """Some of the records, read in place."""
        # NumPy takes less time for ``take`` than for an index in brackets.
        norms = self.norms.take(batch)
        some = Records(
            self._by_rows.rows(batch), self.scale.take(batch), norms, self.y.take(batch), self.constant,
            self.radius, self.table_size, taken(self.beside, batch),
            None if self.persons is None else self.persons.taken(batch),
        )  # fmt: skip
        if self.constant:
            some.__dict__["row_norms"] = self.row_norms.take(batch)  # faster than from the norms
        return some

    def _facts(self, index: NDArray[np.intp]) -> dict[str, Any]:
        return {"scale": self.scale[index], "known_norms": self.norms[index], "y": self.y[index]}

    def of_part(self, part: Part) -> Records:
        if not isinstance(self.block, ResidentTable):
            raise refusal(self.block, (Rows,), "a query of a part")
        persons = self.persons
        index = size = part.taken(0, self.n_records if persons is None else persons.count)
        if persons is not None:
            index, persons = persons.rows_of(size), persons.only(size)
        facts = self._facts(index)
        block, beside = self.block.copied(index), taken(self.beside, index)
        return replace(self, block=block, table_size=len(size), beside=beside, persons=persons, **facts)

    def ascend(self, *steps: *DualSteps) -> int:
        """Dual steps of some records, one after the other; how many moved (see ``kernels.coordinate``)."""
        return self._by_rows.ascend(self.scale, self._tail, *steps)

    @cached_property
    def by_columns(self) -> Dense | CSC:
        """The table by columns, its rows already scaled."""
        return self._by_columns.scaled_columns(self.scale)

    def column(self, j: int) -> tuple[Index, Vector]:
        """The rows that hold feature j, the constant one being the last, and their entries."""
        if j == self.n_features:
            return slice(None), self.intercept_column
        rows, entries = self._by_columns.column(j)
        return rows, entries * self.scale[rows]

    def stored_column(self, j: int) -> tuple[Index, NDArray[np.floating]]:
        """The rows that hold a feature of the table, and their entries before they are scaled."""
        return self._by_columns.column(j)

    def sums(self, limit: Vector, reach: Vector) -> ClippedSums:
        """Sums over the records of r_i times entry j, each term cut to [-limit_j, limit_j], at r = 0.

        ``reach`` bounds the terms by what is public: where it is below the limit, nothing can be cut.
        """
        return self._by_columns.sums(self.scale, self._tail, limit, reach, self.table_size)

    @property
    def without_zeros(self) -> Records:
        """The same records in a sparse table."""
        return replace(self, block=self._both_ways.without_zeros())

    @property
    def both_ways(self) -> BothWays:
        """The table by rows and by columns, before its rows are scaled."""
        return self._both_ways.both_ways()

    @property
    def on_demand(self) -> ColumnCache:
        """The table by rows, and by columns those that are asked for, before its rows are scaled."""
        return self._both_ways.on_demand()

    def weighed(self, r: Vector, limit: float) -> WeightedSums:
        """Sums over the records of r_i times entry j, each term cut to [-limit, limit], and weights."""
        return self._both_ways.weighed(self.scale, r, limit, self.table_size)

    def with_target(self, target: Callable[[Vector], Vector]) -> Records:
        """The same table with other targets; those of `ByClass` come with factors of the shares."""
        beside = self.beside
        if isinstance(target, ByClass) and beside is not None:
            beside = Beside(beside.share * target.of(self.y), beside.offset)
        return replace(self, y=target(self.y), beside=beside)

    @cached_property
    def _counts(self) -> NDArray[np.bool_]:
        """Whether a record counts: null records do not."""
        return self.scale > 0

    @cached_property
    def _all_count(self) -> bool:
        return bool(self._counts.all())

    @property
    def _tail(self) -> Vector:
        """The constant feature; empty without an intercept."""
        return self.intercept_column[: self.n_records if self.constant else 0]

    @cached_property
    def _by_rows(self) -> ResidentTable:
        return self._resident(Rows)

    @cached_property
    def _by_columns(self) -> ResidentTable:
        return self._resident(Columns)

    @cached_property
    def _both_ways(self) -> ResidentTable:
        return self._resident(RowsAndColumns)

    def _resident(self, need: Capability) -> ResidentTable:
        if isinstance(self.block, ResidentTable):
            return self.block
        raise refusal(self.block, (need,), "a query")


def taken(beside: Beside | None, rows: slice | NDArray[np.intp]) -> Beside | None:
    """What stands beside some of the records."""
    return None if beside is None else Beside(beside.share[rows], beside.offset[rows])


def _slopes(loss: Loss, z: Vector, y: Vector) -> Vector:
    """Slopes of a loss, by compiled code where it has a form: the same on every processor."""
    if loss.form is None:
        return finite(loss.derivative(z, y))
    from ..kernels.formulas import write_slopes  # compiled code is loaded by those who use it

    slopes = np.empty_like(z)
    write_slopes(Form.of(loss), z, y, slopes)
    return slopes


def _steps(values: Vector, rounding: float) -> np.int64:
    """The sum of values, each rounded to a grid, in steps of it."""
    total: np.int64 = ((values + rounding).view(np.int64) - np.float64(rounding).view(np.int64)).sum()
    return total


def finite(slopes: Vector) -> Vector:
    """Slopes of at most 1e150: a loss that overflows must not turn a bounded record into NaN."""
    if max(slopes.max(initial=0.0), -slopes.min(initial=0.0)) <= LARGEST_SLOPE:
        return slopes
    return np.clip(np.nan_to_num(slopes), -LARGEST_SLOPE, LARGEST_SLOPE)
