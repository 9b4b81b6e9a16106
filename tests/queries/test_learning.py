"""Queries of raw records: sensitivities over neighbouring tables."""

from collections import Counter

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.data.raw_counts import RawCounts, RawRecords, cells_of
from dpglm.mechanisms import Exponential
from dpglm.mechanisms.grid import on_grid
from dpglm.plan.private_size import MAY_LEARN, OWN_PASS
from dpglm.queries import LEARNING, ClassCounts, ColumnRanges, LevelCounts, RecordCount, RowNorms
from dpglm.queries.learning import pairs, preference, share_of_width, tail_of
from dpglm.schema import Number
from dpglm.schema.numbers import candidates_of
from dpglm.testing import check_query

CANDIDATES = np.array([-1.0, -0.1, 0.1, 1.0])
NORMS = np.array([0.1, 1.0, 10.0])


class Rows(RawRecords):
    """Rows of four numbers; one with a cell that is not finite is a null record."""

    def __init__(self, records):
        rows = np.array([row for row, _ in records])
        self.rows, self.table_size = rows[np.isfinite(rows).all(axis=1)], len(rows)

    def census(self):
        cells = [cells_of(column, CANDIDATES) for column in self.rows.T]
        return RawCounts(self.table_size, np.array(cells), tuple(Counter(c.tolist()) for c in self.rows.T))

    def with_schema(self, schema):
        return self

    def norms(self, candidates):
        with np.errstate(over="ignore"):
            return cells_of(np.linalg.norm(self.rows, axis=1), candidates)


CASES = {
    ColumnRanges: ColumnRanges(np.tile(CANDIDATES, (4, 1)), tail=1),
    LevelCounts: LevelCounts(columns=4),
    RowNorms: RowNorms(NORMS, tail=1),
}


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("kind", CASES)
def test_neighbours_move_the_answer_by_at_most_the_sensitivity(kind, neighbours):
    share = check_query(CASES[kind], neighbours, Bounds(row_norm=1.0), pairs=800, held=Rows)
    assert 0.95 <= share <= 1 + 1e-9


def test_the_check_notices_a_sensitivity_that_is_too_small():
    class Understated(RowNorms):
        def sensitivity(self, neighbours):
            return np.full(len(self.candidates), 0.4)

    with pytest.raises(AssertionError, match="moved the answer"):
        check_query(Understated(NORMS, 1), Neighbours.REPLACE_ONE, Bounds(row_norm=1.0), pairs=100, held=Rows)


def test_a_plan_may_learn_by_these_queries():
    assert set(MAY_LEARN) == {query.name for query in LEARNING}
    assert {RowNorms.name, ClassCounts.name} == set(OWN_PASS)
    # Counts of classes and of records are not of raw records: see test_queries.py.
    assert {*CASES, ClassCounts, RecordCount} == set(LEARNING)


def test_scores_count_values_below_above_and_at_candidates():
    values = np.array([-5.0, -1.0, 0.0, 0.1, 0.1, 3.0, np.nan])
    cells = cells_of(values, CANDIDATES)
    assert cells.tolist() == [1, 1, 0, 0, 1, 2, 0, 0, 1]
    lower, upper = pairs(4)
    expected = [
        -(abs((values < CANDIDATES[i]).sum() - 2) + abs((values > CANDIDATES[j]).sum() - 2)) / 2
        for i, j in zip(lower, upper, strict=True)
    ]
    assert CASES[ColumnRanges].scores(cells).tolist() != expected
    assert ColumnRanges(CANDIDATES[None], tail=2).scores(cells).tolist() == expected


def test_without_noise_the_preference_decides_between_equal_scores_only():
    widths = np.array([1e-9, 1.0, 7.0])
    public = preference(np.ones(3), widths, 0.0)
    assert (np.diff(public) < 0).all() and np.ptp(public) < 0.5


def test_a_tail_grows_with_the_noise_up_to_an_eighth():
    assert [tail_of(6_400, scale) for scale in (0.0, 50.0, 1e9)] == [100, 400, 800]


@pytest.mark.parametrize("widest", [(-8, 8), (0, 1000), (1900, 2100)])
def test_candidates_that_happen_to_lie_close_together_have_little_public_weight(widest):
    ends = candidates_of(Number(learn=True, widest=widest)).scale
    lower, upper = pairs(len(ends))
    widths = ends[upper] - ends[lower]
    shares = share_of_width(ends, lower, widths), share_of_width(ends, upper, widths)
    assert all((share > 0).all() and (share <= 1).all() for share in shares)
    weights = np.exp(preference(shares[0] * shares[1], widths, 1.0))
    assert weights.max() < 0.01 * weights.sum()


def test_rounding_of_scores_is_paid_for_in_tables_of_any_length():
    """Scores of that many records have few digits left for the public weight, and fewer from 2^45 on."""
    ends = candidates_of(Number(learn=True, widest=(-8, 8))).scale
    lower, upper = pairs(len(ends))
    public = preference(np.ones(len(lower)), ends[upper] - ends[lower], 7.3)
    query, cells = ColumnRanges(ends[None], tail=1000), np.zeros(2 * len(ends) + 1, dtype=np.int64)
    cells[0] = 2**46 + 20
    other = cells.copy()
    other[0], other[-1] = cells[0] - 1, 1
    grid, _ = Exponential(7.3).law(1.0)
    one, two = (on_grid(query.scores(found) + public, grid) for found in (cells, other))
    assert np.abs(one - two).max() <= 1.0 + grid
