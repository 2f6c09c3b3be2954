"""Environments of other libraries, made ready to be timed beside ours: one small function each.

A library is imported when its games are made, so none of them need be there.
"""

from __future__ import annotations

import importlib.util
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from timing import Playable, Timer

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # read when JAX is imported; where it would take a GPU, it is no peer


class Peer(NamedTuple):
    """An environment of another library."""

    name: str
    module: str  # that must be installed
    make: Callable[[int], Playable]  # takes the number of games
    includes: str  # what is timed


def installed(peer: Peer) -> bool:
    """Whether its library is there."""
    return importlib.util.find_spec(peer.module) is not None


def started(peer: Peer, games: int) -> Timer | str:
    """Games of a peer that is installed, warmed up, or its error."""
    try:
        return Timer(peer.make(games))
    except Exception as error:  # whatever another library raises: no other row depends on it
        return f"{type(error).__name__}: {error}".splitlines()[0]


# ---- one game --------------------------------------------------------------------------------------------------------


def single_cartpole(games: int) -> Playable:
    """Gymnasium's own; any action is legal."""
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(0)

    def choose(outcome: Any) -> int:
        if outcome is None or outcome[2] or outcome[3]:
            env.reset(seed=0 if outcome is None else None)
        return int(rng.integers(2))

    return Playable(games, env.step, choose)


def klondike_states(games: int, tensors: bool) -> Playable:
    """OpenSpiel's solitaire by its state calls, with mask and observation tensor on request."""
    import pyspiel

    game, rng = pyspiel.load_game("solitaire"), random.Random(0)

    def to_a_decision(state: Any) -> None:
        while not state.is_terminal() and state.is_chance_node():
            cards = state.legal_actions()  # all equally likely
            state.apply_action(cards[int(rng.random() * len(cards))])

    def choose(outcome: Any) -> tuple[Any, int]:
        state, legal = (None, []) if outcome is None else outcome[:2]
        if not legal:
            state = game.new_initial_state()
            to_a_decision(state)
            legal = state.legal_actions()
        return state, legal[int(rng.random() * len(legal))]

    def step(chosen: tuple[Any, int]) -> tuple[Any, ...]:
        state, action = chosen
        state.apply_action(action)
        to_a_decision(state)
        if tensors:
            seen = state.legal_actions_mask(0), state.observation_tensor(0)
            return state, state.legal_actions(), state.rewards(), seen
        return state, state.legal_actions(), state.rewards()  # no legal actions: the game is over

    return Playable(games, step, choose)


# ---- many games ------------------------------------------------------------------------------------------------------


def cartpoles(games: int) -> Playable:
    """Gymnasium's own vector environment; any action is legal."""
    envs, rng = gym.make_vec("CartPole-v1", games, "vector_entry_point"), np.random.default_rng(0)

    def choose(outcome: Any) -> Any:
        if outcome is None:
            envs.reset(seed=0)
        return rng.integers(2, size=games)

    return Playable(games, envs.step, choose)


def envpool_games(games: int, name: str) -> Playable:
    """Games in envpool's C++, on one thread of its own; any of two actions is legal."""
    import envpool

    envs, rng = envpool.make_gymnasium(name, num_envs=games, num_threads=1, seed=0), np.random.default_rng(0)

    def choose(outcome: Any) -> Any:
        if outcome is None:
            envs.reset()
        return rng.integers(2, size=games, dtype=np.int32)

    return Playable(games, envs.step, choose)


def pgx_games(games: int, name: str) -> Playable:
    """Games of pgx, dealt anew by its own wrapper."""
    import jax
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(name)
    each = jax.vmap(auto_reset(env.step, env.init))

    def step(state: Any, actions: Any, key: Any) -> Any:
        # The keys of new games are drawn in the step, as jumanji does and as our deals are.
        return each(state, actions, jax.random.split(key, games))

    return compiled(games, jax.vmap(env.init), step, lambda state: state.legal_action_mask)


def jumanji_games(games: int, name: str) -> Playable:
    """Games of jumanji, dealt anew by its own wrapper."""
    import jumanji
    from jumanji.wrappers import AutoResetWrapper, VmapWrapper

    env = VmapWrapper(AutoResetWrapper(jumanji.make(name)))

    def step(reached: Any, actions: Any, _key: Any) -> Any:
        return env.step(reached[0], actions)

    return compiled(games, env.reset, step, lambda reached: reached[1].observation.action_mask)


def compiled(games: int, init: Any, step: Any, mask: Callable[[Any], Any]) -> Playable:
    """Games as JAX functions, under jit; legal actions and a random key are ready before the clock starts."""
    import jax
    from jax import numpy as jnp

    # Donated: the last state's memory may take the next one, as our copy=False writes in place.
    stepped = jax.jit(step, donate_argnums=0)

    @jax.jit
    def drawn(key: Any, legal: Any) -> Any:
        key, now, deals = jax.random.split(key, 3)
        return key, jax.random.categorical(now, jnp.where(legal, 0.0, -jnp.inf)), deals

    key = jax.random.PRNGKey(0)

    def choose(reached: Any) -> Any:
        nonlocal key
        reached = jax.jit(init)(jax.random.split(key, games)) if reached is None else reached
        key, actions, deals = drawn(key, mask(reached))
        return jax.block_until_ready((reached, actions, deals))

    return Playable(games, lambda chosen: jax.block_until_ready(stepped(*chosen)), choose)


SINGLE = (
    Peer("CartPole, gym.make", "gymnasium", single_cartpole, "4 floats; no masks"),
    Peer("OpenSpiel solitaire, state calls", "pyspiel", partial(klondike_states, tensors=False),
         "apply_action, chance, legal_actions as a list, rewards; no mask, no observation"),
    Peer("OpenSpiel solitaire, mask and tensor", "pyspiel", partial(klondike_states, tensors=True),
         "the same with a mask of 205 and an observation of 1,741 numbers, as lists"),
)  # fmt: skip
JIT = "jit(vmap(step)), buffers donated, dealt anew in the same step"
MANY = (
    Peer("CartPole, its vector environment", "gymnasium", cartpoles, "4 floats; no masks; dealt anew by the next step"),
    Peer("pgx connect_four", "pgx", partial(pgx_games, name="connect_four"), f"7 mask bytes, 6 x 7 x 2 seen; {JIT}"),
    Peer("pgx 2048", "pgx", partial(pgx_games, name="2048"), f"4 mask bytes, 4 x 4 x 31 seen; {JIT}"),
    Peer("jumanji Game2048", "jumanji", partial(jumanji_games, name="Game2048-v1"),
         f"4 mask bytes, 4 x 4 integers seen; {JIT}"),
    Peer("envpool Blackjack", "envpool", partial(envpool_games, name="Blackjack-v1"),
         "3 integers; no masks; num_threads=1; dealt anew by the next step"),
    Peer("envpool CartPole", "envpool", partial(envpool_games, name="CartPole-v1"), "4 floats; the rest as Blackjack"),
)  # fmt: skip
