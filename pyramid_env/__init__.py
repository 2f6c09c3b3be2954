"""Pyramid solitaire for people, planners and learners: exact rules, a game, Gymnasium environments and a solver."""

from __future__ import annotations

from importlib import metadata

from pyramid_env import benchmark, errors
from pyramid_env.cards import Card
from pyramid_env.deal import Deal
from pyramid_env.env import PyramidEnv
from pyramid_env.game import Game
from pyramid_env.moves import Kind, Move
from pyramid_env.registration import register as _register
from pyramid_env.rollouts import Rollouts, rollout
from pyramid_env.rules import PRESETS, Rules, rules
from pyramid_env.solver import (
    Solution,
    Solutions,
    Status,
    rate_moves,
    solve,
    solve_information_state,
    solve_legal,
    solve_many,
    solve_positions,
)
from pyramid_env.vector_env import PyramidVectorEnv
from pyramid_env.winnable import WinnableDeals

__all__ = [
    "PRESETS",
    "Card",
    "Deal",
    "Game",
    "Kind",
    "Move",
    "PyramidEnv",
    "PyramidVectorEnv",
    "Rollouts",
    "Rules",
    "Solution",
    "Solutions",
    "Status",
    "WinnableDeals",
    "benchmark",
    "errors",
    "rate_moves",
    "rollout",
    "rules",
    "solve",
    "solve_information_state",
    "solve_legal",
    "solve_many",
    "solve_positions",
]

try:
    __version__ = metadata.version("pyramid-env")
except metadata.PackageNotFoundError:
    __version__ = "0.1.0"

_register()
