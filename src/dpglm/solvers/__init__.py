"""Solvers: loops of releases and public steps. None of them ever sees a record."""

from .auto import SOLVERS, get
from .base import AuditCase, Result, Solver
from .coordinate_descent import CoordinateDescent
from .gradient_descent import GradientDescent

__all__ = ["SOLVERS", "AuditCase", "CoordinateDescent", "GradientDescent", "Result", "Solver", "get"]
