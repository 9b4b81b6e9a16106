"""PROVISIONAL."""
from __future__ import annotations
import math
from ..problem import Problem

def default_clip(problem: Problem, p: int) -> float:
    return problem.slope_bound() * problem.radius(p)

def default_time(problem: Problem, p: int, noise: float) -> float:
    return 0.5 / (noise * math.sqrt(problem.dimension(p)))
