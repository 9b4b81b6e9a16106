"""Solvers: loops of releases and public steps. None of them ever sees a record."""

from .auto import SOLVERS, get
from .base import AuditCase, Result, Solver
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .frank_wolfe import FrankWolfe
from .gradient_descent import GradientDescent
from .greedy_coordinate_descent import GreedyCoordinateDescent

__all__ = [
    "SOLVERS",
    "AuditCase",
    "CoordinateDescent",
    "DualCoordinateDescent",
    "FrankWolfe",
    "GradientDescent",
    "GreedyCoordinateDescent",
    "Result",
    "Solver",
    "get",
]
