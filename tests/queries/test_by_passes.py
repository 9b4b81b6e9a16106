"""Scores over records that are read in passes are those over resident records, and have the same law."""

import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from dpglm import Bounds, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.data.stream import Stream
from dpglm.data.streamed import StreamedRecords
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Logistic, Squared
from dpglm.mechanisms import Exponential, Gaussian, Randomness, Round
from dpglm.queries import CoordinateScores, VertexScores
from dpglm.queries.streamed_scores import cut_gradient

rng = np.random.default_rng(0)
N, P = 61, 3
X = rng.standard_normal((N, P))
X[7] = np.nan
Y = rng.choice([-1.0, 1.0], N)
BOUNDS = Bounds(row_norm=1.5)
CLIPS = np.array([0.3, 0.01, 0.7, 0.2])


def resident(constant=0.5):
    return as_data(X, Y, BOUNDS, constant)


def streamed(constant=0.5, rows=9):
    def read():
        for start in range(0, N, rows):
            yield X[start : start + rows], Y[start : start + rows]

    return StreamedRecords(Stream(read, N, P), lambda table, targets: (table, targets), BOUNDS, constant)


def coordinate_scores(clips=CLIPS, rule="gs-r"):
    form = (0.001, 0.01, -math.inf, math.inf)
    return CoordinateScores(Logistic(), clips, np.full(len(clips), 0.3), rule, form, np.full(len(clips), 9.0))


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_a_record_adds_at_most_its_clip_to_a_sum(loss, constant):
    clips = CLIPS[: P + bool(constant)]
    w = rng.standard_normal(len(clips))
    everyone = cut_gradient(as_data(X, Y, BOUNDS, constant), loss, w, clips)
    for k in range(N):
        without = X.copy()
        without[k] = np.nan
        difference = everyone - cut_gradient(as_data(without, Y, BOUNDS, constant), loss, w, clips)
        assert (np.abs(difference) <= clips).all()  # sums are exact in doubles, and so is their difference


@pytest.mark.parametrize("rule", ["gs-s", "gs-r", "gs-q"])
@pytest.mark.parametrize("clips", [CLIPS, np.full(4, math.inf)])
def test_scores_of_coordinates_are_those_of_resident_records(rule, clips):
    query = coordinate_scores(clips, rule)
    for w in (np.zeros(P + 1), rng.standard_normal(P + 1)):
        here, there = query(streamed(), w), query(resident(), w)
        # Without clips resident records carry the usual rounding.
        assert np.array_equal(here, there) if np.isfinite(clips).all() else np.allclose(here, there)


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
@pytest.mark.parametrize("clip", [0.2, math.inf])
def test_scores_of_vertices_are_those_of_resident_records(loss, clip):
    query = VertexScores(loss, clip, P, 1.5, "gumbel", refresh=0.0)
    for w in (np.zeros(P + 1), rng.standard_normal(P + 1)):
        here, there = query(streamed(), w), query(resident(), w)
        assert np.allclose(here, there, rtol=1e-12, atol=1e-12)
        assert w.any() or math.isinf(clip) or np.array_equal(here, there)  # margins of 0 are not rounded


def walked(records, query, mechanism, seed):
    """Coordinates and slopes of three rounds, each followed by a move."""
    curator = Curator(records, Neighbours.REPLACE_ONE, Randomness(seed))
    scores, seen = curator.open(query, np.zeros(P + 1), mechanism), []
    for _ in range(3):
        seen.append(scores.step())
        scores.move(seen[-1][0], 0.5)
    return seen, curator.spent


def test_rounds_give_what_they_give_on_resident_records_and_log_the_same():
    query, mechanism = coordinate_scores(), Round(Exponential(0.5), Gaussian(2.0))
    for seed in range(5):
        here, there = (walked(records, query, mechanism, seed) for records in (streamed(), resident()))
        assert [j for j, _ in here[0]] == [j for j, _ in there[0]]
        assert np.allclose([value for _, value in here[0]], [value for _, value in there[0]], rtol=1e-9)
        assert here[1] == there[1]


def test_whole_paths_of_vertices_have_the_law_of_those_on_resident_records():
    counts = []
    for records, structure in ((streamed(rows=30), "gumbel"), (resident(), "binned")):
        query = VertexScores(Logistic(), 0.3, P, 1.5, structure, refresh=0.0)
        curator = Curator(records, Neighbours.REPLACE_ONE, Randomness(3))
        last = [
            curator.open(query, np.zeros(P + 1), Exponential(6.0)).run(np.full(2, 0.5), 2.0)[-1]
            for _ in range(400)
        ]
        counts.append(np.bincount(last, minlength=2 * P))
    assert chi2_contingency(np.array(counts)).pvalue > 0.01


@pytest.mark.parametrize("structure", ["lazy", "binned", "grouped"])
def test_structures_that_keep_state_of_records_are_refused(structure):
    curator = Curator(streamed(), Neighbours.ZERO_OUT, Randomness(0))
    with pytest.raises(UnsupportedProblem, match=f"'{structure}' needs a resident table: use one of"):
        curator.open(VertexScores(Logistic(), 0.3, P, 1.5, structure), np.zeros(P + 1), Exponential(1.0))


def test_the_gap_is_that_of_resident_records_and_not_private():
    query, w = VertexScores(Logistic(), 0.3, P, 1.5, "heap"), np.array([0.5, -0.2, 0.0, 0.3])
    gaps = [
        Curator(records, Neighbours.ZERO_OUT, Randomness(0)).open(query, w, Exponential(0.0)).gap(1.0)
        for records in (streamed(), resident())
    ]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-12)
    private = Curator(streamed(), Neighbours.ZERO_OUT, Randomness(0)).open(query, w, Exponential(1.0))
    with pytest.raises(ValueError, match="not private"):
        private.gap(1.0)


@pytest.mark.parametrize("query", [coordinate_scores(), VertexScores(Logistic(), 0.3, P, 1.5, "gumbel")])
def test_a_mechanism_of_another_kind_is_refused(query):
    curator = Curator(streamed(), Neighbours.ZERO_OUT, Randomness(0))
    with pytest.raises(ValueError, match="is released by a mechanism that selects"):
        curator.open(query, np.zeros(P + 1), Gaussian(1.0))
