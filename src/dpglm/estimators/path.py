"""One of the models along a fit, chosen and paid for."""

from __future__ import annotations

from typing import Any, Self

from ..solvers.along import Along
from .meta import PrivateChoice, choices_of, glm_of, with_params, with_solver
from .watched import all_or_nothing


class PrivatePath(PrivateChoice):
    """The model along one private fit that has the least loss on held-out rows.

    A fit by most solvers passes many models: its iterates, or those of a ridge path from released second
    moments. All of them are released, so they cost nothing more. Some rows are held out by their positions;
    one of the models is chosen by its loss on these, by the exponential mechanism. A record is either in the
    fit or held out, so it pays for one of both: fit and choice each have the whole budget of the estimator.

    Parameters
    ----------
    estimator : estimator of dpglm
        Or a schema and one, by `make_private_pipeline`. Its epsilon is that of the whole.
    share : float, optional
        Share of the rows that are held out; by default from 2 to 10 %, as much as a good choice needs. If
        10 % are not enough, or the solver passes one model only, the fit to all rows is returned.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen model.
    best_params_ : dict or list of dict
        Which model it is; one for each class where there are more than two.
    plan_ : Plan
        What was released and how it was priced.
    privacy_ : Guarantee
        The promise; print it.
    classes_ : array
        The classes of a classifier.
    n_features_in_ : int
    feature_names_in_ : array of str
        Names of the columns, if the table has names.

    Notes
    -----
    **Guarantee.** Everything that ``fit`` stores satisfies ``privacy_`` (docs/proofs/search.md).

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
    def fit(self, X: object, y: object = None, units: object = None) -> Self:
        """Fit to private records, and choose; X, y and units are those that the estimator takes."""
        model = self._fitted(X, y, units)
        found = [{"model": "the whole fit" if one is None else one.name} for one in choices_of(model)]
        self.best_params_ = found[0] if len(found) == 1 else found
        self.best_estimator_ = with_solver(model, glm_of(self.estimator).solver)
        return self

    def _template(self) -> Any:
        glm_of(self.estimator)
        return self.estimator

    def _carrier(self) -> Any:
        return with_params(self.estimator, solver=Along(glm_of(self.estimator).solver, self.share))
