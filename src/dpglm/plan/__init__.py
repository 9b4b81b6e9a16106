"""The plan of a fit: everything that happens to the records, decided before any is read."""

from .counted import CountedPlan
from .plan import PassCount, Plan
from .release import Releasable, Release
from .text import Setting

__all__ = ["CountedPlan", "PassCount", "Plan", "Releasable", "Release", "Setting"]
