import numpy as np
import pytest

from dpglm.split import Split


@pytest.mark.parametrize("share", [0.001, 0.1, 0.4, 0.999])
def test_parts_are_disjoint_complete_and_of_the_declared_share(share):
    split = Split(share)
    held_out, training = split.held_out.taken(0, 50_000), split.training.taken(0, 50_000)
    assert sorted([*held_out, *training]) == list(range(50_000))
    assert abs(len(held_out) - share * 50_000) < 3


def test_a_position_is_in_the_same_part_however_the_table_is_cut():
    part = Split(0.23).held_out
    whole = part.taken(0, 10_000)
    edges = [0, 1, 2, 500, 501, 7_777, 10_000]
    pieces = [start + part.taken(start, stop) for start, stop in zip(edges, edges[1:], strict=False)]
    assert np.array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize("held_out", [False, True])
def test_the_number_of_rows_of_a_part_is_known_without_a_pass(held_out):
    split = Split(0.07)
    part = split.held_out if held_out else split.training
    for stop in (0, 1, 2, 3, 17, 1_000, 123_457):
        assert part.before(stop) == len(part.taken(0, stop))
    assert abs(split.held_out.before(10**12) - 0.07 * 10**12) < 1e3


def test_any_stretch_of_a_sorted_table_is_in_both_parts():
    part = Split(0.05).held_out
    assert all(part.taken(start, start + 100).size in range(3, 8) for start in range(0, 20_000, 100))
