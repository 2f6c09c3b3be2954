"""The exact solver: what a deal or a position allows when every card is known, with a legal line as evidence."""

from pyramid_env.solver.api import solve, solve_position
from pyramid_env.solver.columns import Solutions
from pyramid_env.solver.labels import PositionValues, RatedMove, rate_moves, solve_positions
from pyramid_env.solver.many import solve_many
from pyramid_env.solver.result import Limits, Objective, Solution, SolverError, Status

__all__ = [
    "Limits",
    "Objective",
    "PositionValues",
    "RatedMove",
    "Solution",
    "Solutions",
    "SolverError",
    "Status",
    "rate_moves",
    "solve",
    "solve_many",
    "solve_position",
    "solve_positions",
]
