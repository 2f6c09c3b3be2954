"""Pyramid solitaire for people, planners and learners: exact rules, a game, Gymnasium environments and a solver.

The solver, the benchmark and what is built on them are loaded when first asked for: they take half of the time that
importing everything takes, and a training process needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pyramid_env import errors
from pyramid_env.cards import Card
from pyramid_env.deal import Deal
from pyramid_env.env import PyramidEnv
from pyramid_env.game import Game
from pyramid_env.moves import Kind, Move
from pyramid_env.registration import register as _register
from pyramid_env.rollouts import Rollouts, rollout
from pyramid_env.rules import PRESETS, Rules, rules
from pyramid_env.vector_env import PyramidVectorEnv

if TYPE_CHECKING:
    from pyramid_env import benchmark
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
    from pyramid_env.table import Table as Table  # not in __all__: it needs the notebook extra
    from pyramid_env.table import play, watch
    from pyramid_env.winnable import WinnableDeals

    __version__: str

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
    "play",
    "rate_moves",
    "rollout",
    "rules",
    "solve",
    "solve_information_state",
    "solve_legal",
    "solve_many",
    "solve_positions",
    "watch",
]

_LATER: Final = {
    **dict.fromkeys(("Solution", "Solutions", "Status", "rate_moves", "solve", "solve_information_state"), "solver"),
    **dict.fromkeys(("solve_legal", "solve_many", "solve_positions"), "solver"),
    **dict.fromkeys(("Table", "play", "watch"), "table"),
    "WinnableDeals": "winnable",
}
"""Public names that are loaded when first asked for, with the module that has them."""

_MODULES_LATER: Final = ("benchmark", "functional", "render", "solver", "table", "winnable")
"""Modules that are loaded when first asked for."""


def __getattr__(name: str) -> Any:
    """A name that is loaded late; from then on it is an ordinary one."""
    if name == "__version__":
        return _version()
    if name in _MODULES_LATER:
        return import_module(f"{__name__}.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """All names, the late ones too."""
    return sorted({*globals(), *_LATER, *_MODULES_LATER, "__version__"})


def _version() -> str:
    from importlib import metadata  # takes 20 ms

    try:
        return metadata.version("pyramid-env")
    except metadata.PackageNotFoundError:
        return "0.1.0"


_register()
