"""Plan and run of a solver on a table, as most tests of solvers need it."""

from dpglm import Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.mechanisms import Randomness

BUDGET = Budget(1.0, 1e-6)
REPLACE = Neighbours.REPLACE_ONE


def solved(solver, problem, table, y, budget=BUDGET, seed=0):
    """The result of a run, which spends exactly its plan."""
    plan = solver.plan(problem, *table.shape, budget, REPLACE)
    records = as_data(table, y, problem.bounds, problem.constant(table.shape[1]))
    curator = Curator(records, REPLACE, Randomness(seed))
    result = solver.run(plan, problem, curator)
    assert not budget.private or curator.spent == plan.price
    return result
