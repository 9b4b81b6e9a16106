"""Solvers: loops of releases and public steps. None of them ever sees a record."""

from .auto import SOLVERS, get, require_able
from .base import AuditCase, Result, Solver
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .dual_frank_wolfe import DualFrankWolfe
from .frank_wolfe import FrankWolfe
from .gradient_descent import GradientDescent
from .greedy_coordinate_descent import GreedyCoordinateDescent
from .objective_perturbation import ObjectivePerturbation
from .output_perturbation import OutputPerturbation

__all__ = [
    "SOLVERS",
    "AuditCase",
    "CoordinateDescent",
    "DualCoordinateDescent",
    "DualFrankWolfe",
    "FrankWolfe",
    "GradientDescent",
    "GreedyCoordinateDescent",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Result",
    "Solver",
    "get",
    "require_able",
]
