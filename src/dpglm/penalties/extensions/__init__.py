"""Lovász extensions of set functions that are 0 for all features: chains, graphs, and one's own."""

from __future__ import annotations

from .base import Extension
from .chain import Chain
from .cut import Cut, cut_of
from .own import Own

__all__ = ["Chain", "Cut", "Extension", "Own", "cut_of"]
