"""Prices of mechanisms: describe a mechanism as an event, compose, calibrate.

Knows no data, loss or solver. Every rounding goes against us: a reported epsilon or delta is never below the
true one, and calibrated noise never below the least that is enough. Proofs: docs/proofs/composition.md,
docs/proofs/poisson_sampling.md and, for fits that release the minimiser of a perturbed objective,
docs/proofs/objective_perturbation.md.
"""

from .calibrate import calibrate, calibrate_beside
from .compose import Curve, compose, imprecise_delta
from .curves import gaussian_delta, gaussian_epsilon, gaussian_mu
from .dominating_gaussian import SLACK_SHARE, Cover, calibrate_covered, cover, cover_pure, reserved
from .events import (
    NOT_NEGATIVE,
    RATE,
    Composed,
    Event,
    Exponential,
    Gaussian,
    Imprecision,
    Laplace,
    ObjectivePerturbation,
    Parallel,
    PoissonGaussian,
    Pure,
    Repeated,
    Reserved,
    Search,
    event_from_dict,
    together,
)
from .tries import LAWS, NegativeBinomial, PoissonTries, Tries, tries_of

__all__ = [
    "LAWS", "NOT_NEGATIVE", "RATE", "SLACK_SHARE", "Composed", "Cover", "Curve", "Event", "Exponential",
    "Gaussian", "Imprecision", "Laplace", "NegativeBinomial", "ObjectivePerturbation", "Parallel",
    "PoissonGaussian", "PoissonTries", "Pure", "Repeated", "Reserved", "Search", "Tries", "calibrate",
    "calibrate_beside", "calibrate_covered", "compose", "cover", "cover_pure", "event_from_dict",
    "gaussian_delta", "gaussian_epsilon", "gaussian_mu", "imprecise_delta", "reserved", "together",
    "tries_of",
]  # fmt: skip
