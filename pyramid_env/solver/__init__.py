"""The exact solver: what a deal or a position allows when every card is known, with a legal line as evidence."""

from pyramid_env.solver.api import solve, solve_position
from pyramid_env.solver.many import solve_many
from pyramid_env.solver.result import Limits, Objective, Solution, SolverError, Status

__all__ = ["Limits", "Objective", "Solution", "SolverError", "Status", "solve", "solve_many", "solve_position"]
