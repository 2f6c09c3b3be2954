"""The exact solver: what a deal or a position allows when every card is known, with a legal line as evidence; and, for
small decks, what the best player reaches who does not see the hidden cards."""

from pyramid_env.solver.api import solve, solve_position
from pyramid_env.solver.columns import Solutions
from pyramid_env.solver.labels import PositionValues, RatedMove, rate_moves, solve_positions
from pyramid_env.solver.legal import (
    InformationStateSolution,
    LegalSolution,
    solve_information_state,
    solve_legal,
)
from pyramid_env.solver.legal_bound import SampledBound, sample_bound
from pyramid_env.solver.many import solve_many
from pyramid_env.solver.move_values import MoveValues, move_values
from pyramid_env.solver.result import Limits, Objective, Solution, SolverError, Status
from pyramid_env.solver.worlds import sample_worlds

__all__ = [
    "InformationStateSolution",
    "LegalSolution",
    "Limits",
    "MoveValues",
    "Objective",
    "PositionValues",
    "RatedMove",
    "SampledBound",
    "Solution",
    "Solutions",
    "SolverError",
    "Status",
    "move_values",
    "rate_moves",
    "sample_bound",
    "sample_worlds",
    "solve",
    "solve_information_state",
    "solve_legal",
    "solve_many",
    "solve_position",
    "solve_positions",
]
