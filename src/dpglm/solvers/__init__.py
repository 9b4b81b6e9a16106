"""Solvers: loops of releases and public steps. None of them ever sees a record."""

from .auto import SOLVERS, get
from .base import AuditCase, Result, Solver
from .coordinate_descent import CoordinateDescent
from .gradient_descent import GradientDescent
from .greedy_coordinate_descent import GreedyCoordinateDescent

__all__ = [
    "SOLVERS",
    "AuditCase",
    "CoordinateDescent",
    "GradientDescent",
    "GreedyCoordinateDescent",
    "Result",
    "Solver",
    "get",
]
