"""The plan of a fit: everything that happens to the records, decided before any is read."""

from .plan import CountedPlan, PassCount, Plan, Setting
from .release import Releasable, Release

__all__ = ["CountedPlan", "PassCount", "Plan", "Releasable", "Release", "Setting"]
