"""Agent: what plays a batch of games from observations alone, and the registry that makes one from a name or a path."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules

Observations = Mapping[str, NDArray[np.int8]]
"""Observation fields by name, each (B, size)."""

SHIPPED: Final = "shipped"
"""Name of the trained agent that comes with the kit for a preset; agents/shipped.py."""

LEVELS: Final = ("table", "memory", "clairvoyant")


class AgentError(PyramidError):
    """An agent that cannot be made or used: unknown name, missing checkpoint, other rules than it was made for."""


class Agent(ABC):
    """A player of one game (one ``Rules``), for many positions at once.

    An agent gets observations, never a deal, so it knows no more than its information level shows. :meth:`act` keeps
    nothing about a row between calls: rows may be other games in the next call, and fewer. An agent that remembers
    what it saw overrides :meth:`begin` and :meth:`act_in`, which evaluation calls.

    Attributes:
        name: what tables call it.
        level: information level of the observations it wants: ``"table"``, ``"memory"`` or ``"clairvoyant"``.
        rules: the rules it plays by.
        threads: so many it may use in a call; which results do not depend on. Most use one whatever it is.
        batch_size: games that it is played on side by side, 1 or more, where nobody asks for another number. A larger
            one is quicker for a network; where random numbers are drawn, other ones then fall to a game.
    """

    name: str = ""
    level: str = "table"
    threads: int = 1
    batch_size: int = 256

    def __init__(self, rules: Rules) -> None:
        self.rules: Final = rules

    @property
    def clairvoyant(self) -> bool:
        """Does it see hidden cards? Its results are bounds then, not play."""
        return self.level == "clairvoyant"

    @abstractmethod
    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Choose a legal action in each of B positions.

        Args:
            observations: fields of the agent's level, each (B, size).
            action_masks: (B, A), true = legal. Each row needs a legal action: finished games are not handed in.
            rng: the only source of randomness.

        Returns:
            (B,) action indices.

        Raises:
            ValueError: for a mask row without a legal action; the rows are named.
        """

    def begin(self, games: int) -> None:  # noqa: B027 - nothing to do unless an agent remembers
        """So many new games begin, side by side; those before are forgotten."""

    def act_in(
        self,
        games: NDArray[np.intp],
        observations: Observations,
        action_masks: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """As :meth:`act`, in the games of these indices (B,) among those that have begun; each move of a game once."""
        return self.act(observations, action_masks, rng)


def checked_masks(action_masks: NDArray[np.bool_], actions: int | None = None) -> NDArray[np.bool_]:
    """The masks as a (B, A) bool array.

    Raises:
        ValueError: another shape, another number of actions than ``actions``, or rows without a legal action.
    """
    masks = np.asarray(action_masks, dtype=np.bool_)
    if masks.ndim != 2 or (actions is not None and masks.shape[1] != actions):
        raise ValueError(f"action_masks: expected shape (B, {'A' if actions is None else actions}), got {masks.shape}")
    empty = np.flatnonzero(~masks.any(axis=1))
    if empty.size:
        shown = ", ".join(map(str, empty[:10])) + (", ..." if empty.size > 10 else "")
        raise ValueError(
            f"action_masks: expected a legal action in every row, got none in {empty.size} of {len(masks)} rows "
            f"({shown}); a finished game has no legal action and must be reset before it is played"
        )
    return masks


def choose(rows: NDArray[np.intp], actions: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int64]:
    """One action a row, uniformly among those listed for it.

    Args:
        rows: (N,) row of each candidate, ascending, each of 0..B-1 at least once.
        actions: (N,) the candidate.
        rng: drawn from once, for B numbers.
    """
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    counts = np.diff(starts, append=len(rows))
    picked = starts + rng.integers(counts)
    chosen: NDArray[np.int64] = actions[picked].astype(np.int64)
    return chosen


class Registry:
    """Agents by name; each is a function of the rules and of the option after the colon (``"oracle:score"``)."""

    makers: ClassVar[dict[str, Callable[[Rules, str], Agent]]] = {}


def register(name: str, maker: Callable[[Rules, str], Agent]) -> None:
    """Make a name known to :func:`make_agent`; ``maker(rules, option)`` gets ``""`` when no option was given."""
    Registry.makers[name] = maker


def agent_names() -> tuple[str, ...]:
    """The names that :func:`make_agent` knows, besides paths."""
    return (*Registry.makers, SHIPPED)


def make_agent(spec: str, rules: Rules | str = "pyramid", *, threads: int | None = None) -> Agent:
    """An agent from its name or from a path.

    Args:
        spec: ``"random"``, ``"greedy"``, ``"tips"``, ``"scout"``, ``"planner"`` (``"planner:64"``: see
            :class:`agents.planner.Settings`), ``"oracle"`` (``"oracle:score"``: best score instead of the win),
            ``"shipped"`` (the trained network that comes with the kit for these rules), a run folder of train.py, or a
            checkpoint file; ``"runs/x:sampled"`` draws actions from the policy instead of taking the likeliest; or
            ``"module:factory"``, a class or function of the rules that makes an agent of yours (agents/foreign.py).
        rules: the rules it is to play; a trained agent of other rules is refused.
        threads: that a trained agent may use (:attr:`Agent.threads`); torch gets one for the whole process then, since
            its own threads mostly wait for each other here. None leaves both as they are.

    Raises:
        AgentError: unknown name and no such path (the nearest name is named), or a checkpoint that does not fit.
    """
    from agents.foreign import make_foreign, names_foreign  # which needs Agent

    chosen = read_rules(rules)
    name, _, option = spec.partition(":")
    if name in Registry.makers:
        return Registry.makers[name](chosen, option)
    if name == SHIPPED:
        from agents.shipped import shipped_path

        agent = _load(shipped_path(chosen), chosen, option, threads)
        agent.name = spec
        return agent
    path = Path(spec)
    if not path.exists() and option:
        path = Path(spec.rpartition(":")[0])
        option = spec.rpartition(":")[2]
    else:
        option = ""
    if path.exists():
        return _load(path, chosen, option, threads)
    if names_foreign(spec):
        return make_foreign(spec, chosen)
    close = difflib.get_close_matches(name, agent_names(), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise AgentError(
        f"agent: expected {', '.join(agent_names())}, a run folder, a checkpoint file or module:factory; got "
        f"{spec!r}{hint}, and there is no such path"
    )


def _load(path: Path, rules: Rules, option: str, threads: int | None) -> Agent:
    """A trained agent; only here torch is imported, so untrained agents do without the training extra."""
    try:
        import torch

        from agents.loading import load
    except ModuleNotFoundError as error:
        raise AgentError(
            f"{path}: a trained agent needs the training extra: {error}; pip install -e '.[train]'"
        ) from None
    if option not in ("", "sampled"):
        raise AgentError(f"{path}: expected no option or 'sampled', got {option!r}")
    agent = load(path, rules, deterministic=option != "sampled")
    if threads is not None:
        torch.set_num_threads(1)
        agent.threads = threads
    return agent
