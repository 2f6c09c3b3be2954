"""Agents that play pyramid_env, from random to trained; importing this needs no torch."""

from pathlib import Path

from agents.base import Agent, AgentError, Observations, agent_names, make_agent, register
from agents.greedy import GreedyAgent
from agents.oracle import OracleAgent
from agents.planner import PlannerAgent
from agents.random_agent import RandomAgent
from agents.scout import ScoutAgent
from agents.tips import TipsAgent
from pyramid_env.rules import Rules


def _without_option(name: str, made: type[Agent]) -> None:
    def make(rules: Rules, option: str) -> Agent:
        if option:
            raise AgentError(f"{name}: expected no option, got {option!r}")
        return made(rules)

    register(name, make)


_without_option("random", RandomAgent)
_without_option("greedy", GreedyAgent)
_without_option("tips", TipsAgent)
_without_option("scout", ScoutAgent)
register("planner", PlannerAgent)

register("oracle", lambda rules, option: OracleAgent(rules, option or "win"))


def load(path: Path | str, rules: Rules | str | None = None, *, deterministic: bool = True) -> Agent:
    """A trained agent, ours or one of stable-baselines3's, from its run folder or checkpoint; see agents.loading."""
    from agents import loading

    return loading.load(path, rules, deterministic=deterministic)


__all__ = [
    "Agent",
    "AgentError",
    "GreedyAgent",
    "Observations",
    "OracleAgent",
    "PlannerAgent",
    "RandomAgent",
    "ScoutAgent",
    "TipsAgent",
    "agent_names",
    "load",
    "make_agent",
    "register",
]
