"""Models that report: what was promised, released and found, for people and for machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from ..ledger import Account, extract

if TYPE_CHECKING:
    from ..report import Report


class Reported:
    """The part of an estimator that makes its report. Nothing here reads a record."""

    def report(
        self,
        path: str | Path | None = None,
        *,
        level: float = 0.95,
        evaluation: Any = None,
        audit: Any = None,
        account: Account | str | None = None,
    ) -> Report:
        """The report of the fit: promise, releases, coefficients and what is not covered.

        Everything in it was released by the fit or is public, so it may be shown to everybody who may see the
        model.

        Parameters
        ----------
        path : str or Path, optional
            A file to write: .html for people, .json for machines, .md for a model card, .yaml for an entry of
            the OpenDP deployments registry.
        level : float
            Probability with which an interval covers its coefficient.
        evaluation : Evaluation, optional
            Private scores to be shown, from `dpglm.evaluate`.
        audit : dpglm.audit.Report, optional
            What an audit found.
        account : Account or str, optional
            The account of a ledger whose journal is to be shown, or its address.

        Returns
        -------
        Report
            With ``html()``, ``json()``, ``model_card()`` and ``registry_entry()``.

        Examples
        --------
        >>> from dpglm import LogisticRegression
        >>> from dpglm.datasets import load_adult
        >>> adult = load_adult()
        >>> model = LogisticRegression(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
        >>> report = model.report()
        >>> report.facts["measures"]["guess"]["right"] < 0.54
        True
        """
        from ..report import Report, statement

        check_is_fitted(self)
        found = None if account is None else extract(account)
        report = Report(statement(self, level, evaluation=evaluation, audit=audit, ledger=found))
        if path is not None:
            report.save(path)
        return report
