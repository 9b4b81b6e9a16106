"""The plan of a fit: everything that happens to the records, decided before any is read."""

from .counted import CountedPlan
from .plan import PassCount, Plan, Setting
from .release import Releasable, Release

__all__ = ["CountedPlan", "PassCount", "Plan", "Releasable", "Release", "Setting"]
