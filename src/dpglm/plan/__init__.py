"""The plan of a fit: everything that happens to the records, decided before any is read."""

from .passes import PassCount
from .plan import Plan, Setting
from .release import Releasable, Release

__all__ = ["PassCount", "Plan", "Releasable", "Release", "Setting"]
