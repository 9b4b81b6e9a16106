"""What tables offer and queries need: solvers run on what suffices, and are refused by name elsewhere.

And their parts by a public rule of positions.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Budget, Neighbours, Stream, solvers
from dpglm.curator import Curator
from dpglm.data import CSC, CSR, Dense, as_block, as_data
from dpglm.data.streamed import StreamedRecords
from dpglm.data.terms import SquaredRow
from dpglm.errors import SourceChanged, UnsupportedProblem
from dpglm.losses import Logistic
from dpglm.mechanisms import Randomness
from dpglm.penalties import L2, L1Ball
from dpglm.problem import Problem
from dpglm.queries import QUERIES
from dpglm.tables import Columns, Rows, RowsAndColumns, Split, can

rng = np.random.default_rng(0)
N, P = 90, 4
X = rng.standard_normal((N, P))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] > 0, 1.0, -1.0)
PROBLEM = Problem(Logistic(), L2(0.2), Bounds(row_norm=1.0))
CAPABILITIES = (Rows, Columns, RowsAndColumns)


def stream(reads=None):
    """The table in three blocks; what is read is written down."""

    def read():
        for rows, targets in zip(np.array_split(X, 3), np.array_split(Y, 3), strict=True):
            if reads is not None:
                reads.append(len(rows))
            yield rows, targets

    return Stream(read, N, P)


def records_of(table, bounds, constant=0.0):
    if isinstance(table, Stream):
        return StreamedRecords(table, lambda rows, targets: (rows, targets), bounds, constant)
    return as_data(table, Y, bounds, constant)


def planned(solver, problem=PROBLEM, epsilon=2.0):
    return solver.plan(problem, N, P, Budget(epsilon, 1e-5), Neighbours.ZERO_OUT)


def run(solver, table, problem=PROBLEM, epsilon=2.0):
    plan = planned(solver, problem, epsilon)
    solvers.require_able(solver, plan, problem, table)
    records = records_of(table, problem.bounds, problem.constant(P))
    curator = Curator(records, plan.neighbours, Randomness(5))
    w = solver.run(plan, problem, curator).w
    assert not plan.budget.private or curator.spent == plan.price
    return w


@pytest.mark.parametrize("table", [Dense(X), CSR(sp.csr_array(X)), CSC(sp.csc_array(X))], ids=["C", "R", "K"])
def test_tables_in_memory_offer_everything(table):
    assert can(table, CAPABILITIES)


def test_a_stream_offers_passes_only_and_rows_of_a_table_too():
    assert not any(
        can(table, [need]) for table in (stream(), Dense(X).rows(np.arange(3))) for need in CAPABILITIES
    )


def test_every_query_says_what_it_needs():
    assert all(set(query.needs) <= set(CAPABILITIES) for query in QUERIES)


@pytest.mark.parametrize("epsilon", [2.0, np.inf])
@pytest.mark.parametrize(
    "solver",
    [
        solvers.GradientDescent(steps=9),
        solvers.GradientDescent(steps=9, batch_size=20),
        solvers.OutputPerturbation(),
        solvers.ObjectivePerturbation(),
    ],
)
def test_solvers_that_need_passes_run_on_a_stream_as_on_a_table(solver, epsilon):
    assert np.array_equal(run(solver, stream(), epsilon=epsilon), run(solver, X, epsilon=epsilon))


def test_coordinate_descent_is_refused_on_a_stream_with_those_that_can():
    reads = []
    with pytest.raises(UnsupportedProblem) as refused:
        run(solvers.CoordinateDescent(), stream(reads))
    assert str(refused.value) == (
        "CoordinateDescent needs a table that offers columns at random, Stream offers passes only: use "
        "GradientDescent, GreedyCoordinateDescent, OutputPerturbation, ObjectivePerturbation or "
        "PreconditionedDescent"
    )
    assert reads == []  # before any record was read


def test_only_solvers_that_serve_the_problem_are_named():
    ball = Problem(Logistic(), L1Ball(2.0), Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match=r"rows and columns at random.*: use GradientDescent"):
        run(solvers.FrankWolfe(), stream(), ball)


def test_steps_of_single_records_need_rows_at_random():
    with pytest.raises(UnsupportedProblem, match="needs a table that offers rows at random"):
        run(solvers.DualCoordinateDescent(), stream())


def test_every_solver_can_run_on_tables_in_memory():
    for solver in solvers.SOLVERS.values():
        try:
            plan = planned(solver())
        except UnsupportedProblem:
            continue
        for table in (X, sp.csr_array(X), sp.csc_array(X)):
            solvers.require_able(solver(), plan, PROBLEM, as_block(table))


def test_rows_of_a_table_refuse_what_they_do_not_offer():
    records = as_data(X, Y, PROBLEM.bounds).rows(np.arange(5))
    with pytest.raises(UnsupportedProblem, match="rows at random"):
        records.rows(np.arange(2))
    with pytest.raises(UnsupportedProblem, match="columns at random"):
        records.column(0)
    with pytest.raises(UnsupportedProblem, match="rows and columns at random"):
        _ = records.without_zeros


def test_a_source_of_another_size_than_it_states_is_refused():
    for n in (N - 1, N + 1):
        changed = Stream(stream().read, n, P)
        with pytest.raises(SourceChanged, match="more or fewer records than it states"):
            records_of(changed, PROBLEM.bounds).total(SquaredRow(1.0))


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
