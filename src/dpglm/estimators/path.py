"""One of the models along a fit, chosen and paid for."""

from __future__ import annotations

from typing import Any, Self

from ..data.columns import RecordColumns
from ..solvers.model_selection import Along
from .docs import documented
from .meta import PrivateChoice, choices_of, glm_of, with_params, with_solver
from .watched import all_or_nothing


@documented
class PrivatePath(PrivateChoice):
    """The model along one private fit that has the least loss.

    A fit by most solvers passes many models: its iterates, a ridge path, and sparse models with some of its
    features. All of them follow from what is released, so they cost nothing more. One of them is chosen by
    its loss, by the exponential mechanism: the whole fit, unless the loss of another is clearly less.

    The loss is that on rows which are held out by their positions: a record is either in the fit or held
    out, so it pays for one of both, and fit and choice each have the whole budget. Where the solver releases
    a Gram matrix, as the default does for narrow tables, no row is held out. The loss is that on all rows,
    corrected for what the whole fit gains on its own rows alone, and the choice takes 1 to 5 % of the budget.
    If a choice would take more rows or more of the budget, the whole fit is returned.

    Parameters
    ----------
    estimator : estimator of dpglm
        Or a schema and one, by `make_private_pipeline`. Its epsilon is that of the whole.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 5 %, as much as a good choice needs, or none
        if there is a Gram matrix.
    budget_share : float, optional
        Share of the budget, in squared mu, for a choice on all rows, instead of a share of the rows.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen model.
    best_params_ : dict or list of dict
        Which model it is; one for each class where there are more than two.
    {chosen}

    Examples
    --------
    >>> from dpglm import LogisticRegression, PrivatePath
    >>> from dpglm.datasets import load_adult
    >>> adult = load_adult()
    >>> model = PrivatePath(LogisticRegression(epsilon=1.0, classes=[-1, 1])).fit(adult.X, adult.y)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.83)
    True
    """

    def __init__(self, estimator: Any, share: float | None = None, budget_share: float | None = None) -> None:
        self.estimator = estimator
        self.share = share
        self.budget_share = budget_share

    @all_or_nothing
    def fit(
        self, X: object, y: object = None, sample_weight: object = None, offset: object = None,
        exposure: object = None, units: object = None,
    ) -> Self:  # fmt: skip
        """Fit to private records, and choose; all that is given is what ``fit`` of the estimator takes."""
        model = self._fitted(X, y, RecordColumns(None, sample_weight, offset, exposure, units))
        found = [{"model": "the whole fit" if one is None else one.name} for one in choices_of(model)]
        self.best_params_ = found[0] if len(found) == 1 else found
        self.best_estimator_ = with_solver(model, glm_of(self.estimator).solver)
        return self

    def _carrier(self) -> Any:
        along = Along(glm_of(self.estimator).solver, self.share, self.budget_share)
        return with_params(self.estimator, solver=along)
