"""What tables offer and queries need: solvers run on what suffices, and are refused by name elsewhere."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Budget, Neighbours, solvers
from dpglm.curator import Curator
from dpglm.data import CSC, CSR, Dense, as_block, as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Logistic
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.mechanisms.sampling import Poisson
from dpglm.penalties import L2, L1Ball
from dpglm.problem import Problem
from dpglm.queries import QUERIES, ClippedGradient
from dpglm.tables import Columns, Rows, RowsAndColumns, can

rng = np.random.default_rng(0)
N, P = 90, 4
X = rng.standard_normal((N, P))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] > 0, 1.0, -1.0)
PROBLEM = Problem(Logistic(), L2(0.2), Bounds(row_norm=1.0))
CAPABILITIES = (Rows, Columns, RowsAndColumns)


class Stream:
    """A table in parts that are read one after the other: it offers passes and nothing else."""

    def __init__(self, parts, reads=None):
        self._parts, self.reads = parts, [] if reads is None else reads
        self.shape = (sum(len(part) for part in parts), parts[0].shape[1])

    @property
    def row_norms(self):
        return np.concatenate([np.linalg.norm(part, axis=1) for part in self._read()])

    def dot(self, w):
        return np.concatenate([part @ w for part in self._read()])

    def t_dot(self, r):
        edges = np.cumsum([len(part) for part in self._parts])[:-1]
        return sum(part.T @ piece for part, piece in zip(self._read(), np.split(r, edges), strict=True))

    def second_moments(self, scale):
        edges = np.cumsum([len(part) for part in self._parts])[:-1]
        pieces = np.split(scale, edges)
        return sum(
            np.square(part * piece[:, None]).sum(0) for part, piece in zip(self._read(), pieces, strict=True)
        )

    def clipped(self, limit):
        return Stream([np.clip(part, -limit, limit) for part in self._read()], self.reads)

    def without(self, dropped):
        pieces = np.split(dropped, np.cumsum([len(part) for part in self._parts])[:-1])
        kept = [np.where(p[:, None], 0.0, part) for part, p in zip(self._read(), pieces, strict=True)]
        return Stream(kept, self.reads)

    def _read(self):
        for part in self._parts:
            self.reads.append(len(part))
            yield part


def stream():
    return Stream(np.array_split(X, 3))


def planned(solver, problem=PROBLEM, epsilon=2.0):
    return solver.plan(problem, N, P, Budget(epsilon, 1e-5), Neighbours.ZERO_OUT)


def run(solver, table, problem=PROBLEM, epsilon=2.0):
    plan = planned(solver, problem, epsilon)
    solvers.require_able(solver, plan, problem, table)
    records = as_data(table, Y, problem.bounds, problem.constant(P))
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
    [solvers.GradientDescent(steps=9), solvers.OutputPerturbation(), solvers.ObjectivePerturbation()],
)
def test_solvers_that_need_passes_run_on_a_stream_as_on_a_table(solver, epsilon):
    if epsilon == np.inf and isinstance(solver, solvers.GradientDescent):
        solver = solvers.GradientDescent()
    assert np.allclose(run(solver, stream(), epsilon=epsilon), run(solver, X, epsilon=epsilon), atol=1e-6)


@pytest.mark.parametrize("solver", [solvers.CoordinateDescent(), solvers.GreedyCoordinateDescent()])
def test_coordinate_methods_are_refused_on_a_stream_with_those_that_can(solver):
    table = stream()
    with pytest.raises(UnsupportedProblem) as refused:
        run(solver, table)
    assert str(refused.value) == (
        f"{type(solver).__name__} needs a table that offers columns at random, Stream offers passes only: "
        "use GradientDescent, OutputPerturbation or ObjectivePerturbation"
    )
    assert table.reads == []  # before any record was read


def test_only_solvers_that_serve_the_problem_are_named():
    ball = Problem(Logistic(), L1Ball(2.0), Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match=r"rows and columns at random.*: use GradientDescent or Obj"):
        run(solvers.FrankWolfe(), stream(), ball)


@pytest.mark.parametrize("solver", [solvers.GradientDescent(batch_size=9), solvers.DualCoordinateDescent()])
def test_batches_need_rows_at_random(solver):
    with pytest.raises(UnsupportedProblem, match="needs a table that offers rows at random"):
        run(solver, stream())


def test_every_solver_can_run_on_tables_in_memory():
    for solver in solvers.SOLVERS.values():
        try:
            plan = planned(solver())
        except UnsupportedProblem:
            continue
        for table in (X, sp.csr_array(X), sp.csc_array(X)):
            solvers.require_able(solver(), plan, PROBLEM, as_block(table))


def test_records_refuse_what_their_table_does_not_offer():
    records = as_data(stream(), Y, PROBLEM.bounds)
    curator = Curator(records, Neighbours.ZERO_OUT, Randomness(0))
    with pytest.raises(UnsupportedProblem, match="rows at random"):
        curator.release(ClippedGradient(Logistic(), 1.0), Gaussian(0.0), np.zeros(P), sampling=Poisson(0.5))
    with pytest.raises(UnsupportedProblem, match="columns at random"):
        records.column(0)
    with pytest.raises(UnsupportedProblem, match="rows and columns at random"):
        _ = records.without_zeros
