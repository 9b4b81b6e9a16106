"""What an evaluation returns: scores with intervals, and the promise."""

from __future__ import annotations

from dataclasses import dataclass

from .. import codec, display, strict
from ..plan import Plan
from ..privacy import Guarantee

VERSION = 1


@dataclass(frozen=True)
class Bin:
    """One bin of predicted probabilities.

    Attributes
    ----------
    low, high : float
        The bin holds probabilities from ``low`` to ``high``.
    share : float
        Share of the records in the bin.
    gap : float
        Mean of outcome - predicted probability in the bin: above 0, the model predicts too little.
    error : float
        Standard error of the gap, from sampling and noise; infinite if noise hides the bin.
    """

    low: float
    high: float
    share: float
    gap: float
    error: float


@dataclass(frozen=True)
class Estimate:
    """One private score.

    Attributes
    ----------
    metric : str
    value : float
    low, high : float
        Ends of the interval.
    standard_error : float
        From sampling and noise.
    noise : float
        The part of it that noise causes.
    level : float
        Probability with which the interval covers the score.
    determined : bool
        Whether noise left enough to state an interval; if not, it is all that is possible.
    words : str
        What is estimated.
    bins : tuple of Bin
        For calibration: the bins of predicted probabilities.
    """

    metric: str
    value: float
    low: float
    high: float
    standard_error: float
    noise: float
    level: float
    determined: bool
    words: str
    bins: tuple[Bin, ...] = ()

    def __str__(self) -> str:
        interval = f"{100 * self.level:g} % interval {self.low:.4g} to {self.high:.4g}"
        if not self.determined:
            return f"{self.metric}: not determined, noise hides it ({interval})"
        said = f"{self.metric} {self.value:.4g}, {interval} ({self.words})"
        rows = [
            f"  {one.low:.2f} to {one.high:.2f}: {100 * one.share:5.1f} % of the records, "
            f"outcome - prediction {one.gap:+.3f}, standard error {one.error:.3f}"
            for one in self.bins
        ]
        return "\n".join([said, *rows])


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on private records, and the promise that holds for all of them together.

    Attributes
    ----------
    model : str
        Name of the model.
    estimates : tuple of Estimate
    plan : Plan
    privacy : Guarantee
        The promise; print it.
    """

    model: str
    estimates: tuple[Estimate, ...]
    plan: Plan
    privacy: Guarantee

    def __getitem__(self, metric: str) -> Estimate:
        """The score of that name."""
        for estimate in self.estimates:
            if estimate.metric == metric:
                return estimate
        raise KeyError(f"{metric!r} was not evaluated: only {[one.metric for one in self.estimates]}")

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON-able values; infinite numbers are the text "inf"."""
        return strict.sealed(
            {
                "format": "dpglm evaluation",
                "version": VERSION,
                "model": self.model,
                "scores": codec.to_plain("scores", self.estimates),
                "plan": self.plan.to_dict(),
                "privacy": self.privacy.to_dict(),
            }
        )

    def to_json(self) -> str:
        """All of it as strict JSON text."""
        return strict.to_json(self.to_dict())

    def __str__(self) -> str:
        scores = "\n".join(map(str, self.estimates))
        return f"{self.model} on {self.plan.n_records:,} records\n{scores}\n{self.privacy.headline}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The scores as a notebook shows them."""
        rows = [
            (one.metric, f"{one.value:.4g}", f"{one.low:.4g}", f"{one.high:.4g}", f"{one.noise:.2g}")
            for one in self.estimates
        ]
        private = self.privacy.private
        return display.card(
            "private" if private else "not private",
            private,
            self.privacy.headline,
            display.table(("score", "value", "from", "to", "error by noise"), rows, figures=range(1, 5)),
        )
