"""One of the models along a fit, chosen and paid for."""

from __future__ import annotations

from typing import Any, Self

from ..data.beside import Several
from ..solvers.along import Along
from .docs import documented
from .meta import PrivateChoice, choices_of, glm_of, with_params, with_solver
from .watched import all_or_nothing


@documented
class PrivatePath(PrivateChoice):
    """The model along one private fit that has the least loss on held-out rows.

    A fit by most solvers passes many models: its iterates, a ridge path, and sparse models with some of its
    features. All of them follow from what is released, so they cost nothing more. Some rows are held out by
    their positions; one of the models is chosen by its loss on these, by the exponential mechanism. It is the
    whole fit unless the loss of another is clearly less. A record is either in the fit or held out, so it
    pays for one of both: fit and choice each have the whole budget of the estimator.

    Parameters
    ----------
    estimator : estimator of dpglm
        Or a schema and one, by `make_private_pipeline`. Its epsilon is that of the whole.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 5 %, as much as a good choice needs. If that
        takes more, or the solver passes one model only, the fit to all rows is returned.

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

    def __init__(self, estimator: Any, share: float | None = None) -> None:
        self.estimator = estimator
        self.share = share

    @all_or_nothing
    def fit(
        self, X: object, y: object = None, sample_weight: object = None, offset: object = None,
        exposure: object = None, units: object = None,
    ) -> Self:  # fmt: skip
        """Fit to private records, and choose; all that is given is what ``fit`` of the estimator takes."""
        model = self._fitted(X, y, Several(None, sample_weight, offset, exposure, units))
        found = [{"model": "the whole fit" if one is None else one.name} for one in choices_of(model)]
        self.best_params_ = found[0] if len(found) == 1 else found
        self.best_estimator_ = with_solver(model, glm_of(self.estimator).solver)
        return self

    def _carrier(self) -> Any:
        return with_params(self.estimator, solver=Along(glm_of(self.estimator).solver, self.share))
