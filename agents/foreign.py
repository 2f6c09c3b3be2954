"""Foreign agents: ``module:factory`` names a class or function of the user's own that plays beside ours.

    class Careful:
        level = "memory"                      # what it is shown: "table" (the default), "memory" or "clairvoyant"

        def __init__(self, rules): ...        # pyramid_env.Rules

        def act(self, observations, action_masks, rng):
            return ...                        # (B,) actions for (B, ...) observations and (B, A) masks

A policy that another framework serves needs no more than this; ``begin(games)`` and ``act_in(games, ...)`` are taken
too, where it remembers games (see :class:`agents.base.Agent`). What it is called in tables is what it was named by, or
its attribute ``name``.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.base import LEVELS, Agent, AgentError, Observations
from pyramid_env.rules import Rules


class ForeignAgent(Agent):
    """Any object with ``act`` as an agent.

    Args:
        player: has ``act``, perhaps ``begin``, ``act_in``, ``level``, ``name``.
        rules: what it plays.
        spec: what it was named by.

    Raises:
        AgentError: no method ``act``, or a level that is none.
    """

    def __init__(self, player: Any, rules: Rules, spec: str) -> None:
        super().__init__(rules)
        if not callable(getattr(player, "act", None)):
            raise AgentError(
                f"{spec}: expected an object with act(observations, action_masks, rng), got {type(player).__name__}"
            )
        self.name = str(getattr(player, "name", "") or spec)
        self.level = getattr(player, "level", Agent.level)
        if self.level not in LEVELS:
            raise AgentError(f"{spec}: level: expected one of {', '.join(LEVELS)}, got {self.level!r}")
        self.player: Final = player

    def begin(self, games: int) -> None:
        """See :meth:`Agent.begin`."""
        if hasattr(self.player, "begin"):
            self.player.begin(games)

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        chosen: NDArray[np.int64] = self.player.act(observations, action_masks, rng)
        return chosen

    def act_in(
        self,
        games: NDArray[np.intp],
        observations: Observations,
        action_masks: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act_in`."""
        if not hasattr(self.player, "act_in"):
            return self.act(observations, action_masks, rng)
        chosen: NDArray[np.int64] = self.player.act_in(games, observations, action_masks, rng)
        return chosen


def names_foreign(spec: str) -> bool:
    """Does a text look like ``module:factory``?"""
    module, _, factory = spec.partition(":")
    return bool(factory) and all(part.isidentifier() for part in (*module.split("."), *factory.split(".")))


def make_foreign(spec: str, rules: Rules) -> Agent:
    """The agent that ``module:factory`` makes; modules of the present folder are found too.

    Raises:
        AgentError: no such module or no such name in it, or what the factory returns is no agent. What the module or
            the factory raise themselves comes as it is.
    """
    module, _, factory = spec.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        made: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise
        raise AgentError(f"{spec}: no module {error.name!r}, neither installed nor in {here}") from None
    for part in factory.split("."):
        if not hasattr(made, part):
            raise AgentError(f"{spec}: {made.__name__} has no {part!r}")
        made = getattr(made, part)
    if not callable(made):
        raise AgentError(f"{spec}: expected a class or a function of the rules, got {type(made).__name__}")
    player = made(rules)
    if isinstance(player, Agent):
        player.name = player.name or spec
        return player
    return ForeignAgent(player, rules, spec)
