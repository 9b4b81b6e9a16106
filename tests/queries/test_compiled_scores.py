"""Greedy draws and moves in one compiled call each: the same releases and state as by separate calls."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Logistic, Squared
from dpglm.mechanisms import Exponential, Gaussian, Laplace, Randomness, Round
from dpglm.queries import CoordinateScores
from dpglm.queries.coordinate import CompiledScores

N, P = 60, 5000
RNG = np.random.default_rng(0)
X = sp.random_array((N, P), density=0.02, format="csr", rng=RNG, data_sampler=RNG.standard_normal)
X.data[X.indptr[7]] = np.nan  # a null record
Y = RNG.choice([-1.0, 1.0], N)

CASES = {
    "logistic": (Logistic(), "gs-r", Gaussian(2.0), 0.0, np.float64),
    "float32": (Logistic(), "gs-s", Gaussian(2.0), 0.0, np.float32),
    "intercept": (Logistic(), "gs-q", Laplace(2.0), 0.5, np.float64),
    "squared": (Squared(), "gs-r", Gaussian(2.0), 0.5, np.float64),
}


def walked(case, moves, counted, noise=0.05, least_clip=0.2):
    """Releases, sums, margins and bins after some rounds; sorts of all candidates are counted."""
    loss, rule, additive, constant, dtype = CASES[case]
    dimension = P + (constant > 0)
    data = as_data(X.astype(dtype), Y, Bounds(row_norm=1.0), constant)
    query = CoordinateScores(
        loss, np.linspace(least_clip, 0.2, dimension), np.full(dimension, 0.01), rule,
        (1e-3, 1e-4, -40.0, 40.0), np.full(dimension, 2.0),
    )  # fmt: skip
    curator = Curator(data, Neighbours.REPLACE_ONE, Randomness(3))
    opened = curator.open(query, np.zeros(dimension), Round(Exponential(noise), additive))
    found = []
    for k, size in enumerate(moves):
        j, slope = opened.step()
        build = opened._kept._build
        opened._kept._build = lambda scores, build=build, k=k: (counted.append(k), build(scores))
        # The intercept moves now and then: its column has all records.
        place, value = (P, 0.01 * k) if constant and k % 9 == 4 else (j, size * np.sign(slope))
        opened.move(place, value)
        del opened._kept._build
        found += [j, slope]
    kept, sums = opened._kept, opened._clipped
    return opened, [
        np.array(found),
        sums.kept.state,
        sums.kept.points,
        opened._z,
        opened._slopes,
        *kept.parts[:4],
    ]


@pytest.mark.parametrize("least_clip", [0.2, 0.199])
@pytest.mark.parametrize("case", CASES)
def test_compiled_rounds_are_those_of_separate_calls(case, least_clip, monkeypatch):
    moves = np.random.default_rng(1).choice([0.3, 3.0, 30.0], 60)
    sorts, other_sorts = [], []
    opened, compiled = walked(case, moves, sorts, least_clip=least_clip)
    assert opened._compiled is not None and len(opened._clipped.kept.limits) == (
        len(opened._sums) if least_clip < 0.2 else 2
    )
    monkeypatch.setattr(CompiledScores, "of", lambda *_: None)
    opened, separate = walked(case, moves, other_sorts, least_clip=least_clip)
    assert opened._compiled is None
    for one, other in zip(compiled, separate, strict=True):
        assert np.array_equal(one, other)
    assert len(set(compiled[0][::2])) > 5 and sorts == other_sorts


def test_all_candidates_are_sorted_anew_where_the_largest_score_leaves_the_bins(monkeypatch):
    moves, sorts, other_sorts = np.random.default_rng(1).choice([0.3, 3.0, 30.0], 60), [], []
    _, compiled = walked("squared", moves, sorts, noise=0.002)
    monkeypatch.setattr(CompiledScores, "of", lambda *_: None)
    _, separate = walked("squared", moves, other_sorts, noise=0.002)
    assert sorts and sorts == other_sorts
    assert all(map(np.array_equal, compiled, separate))
