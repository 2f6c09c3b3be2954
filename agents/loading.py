"""Loading: the agent of a checkpoint file or a run folder, whichever algorithm made it."""

from __future__ import annotations

from pathlib import Path

from agents.base import Agent
from agents.checkpoint import Checkpoint, check_rules, checkpoint_path, load_checkpoint
from agents.sections import OWN
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules


def load(path: Path | str, rules: Rules | str | None = None, *, deterministic: bool = True) -> Agent:
    """The agent of a run folder (its best checkpoint) or of a checkpoint file.

    Args:
        path: the folder or the file.
        rules: what it is to play; None: what it was trained on.
        deterministic: the likeliest action; false: draw from the policy.

    Raises:
        CheckpointError: nothing there, damaged, or of another algorithm, environment version, shape or other rules
            than asked for; the difference is named.
    """
    file = checkpoint_path(Path(path))
    checkpoint = load_checkpoint(file)
    if rules is not None:
        check_rules(checkpoint, read_rules(rules), file)
    name = str(path) if deterministic else f"{path}:sampled"
    if checkpoint.kind in OWN:  # our own need no stable-baselines3
        from agents.token_agent import TokenAgent, network_of

        network = network_of(checkpoint, file)
        return TokenAgent(
            network, checkpoint.rules, checkpoint.level, name, deterministic,
            rates_moves=checkpoint.kind == "teacher", has_value=_has_value(checkpoint),
        )  # fmt: skip
    from agents.dqn import q_policy_of
    from agents.sb3 import Sb3Agent, policy_of

    make = policy_of if checkpoint.kind == "maskable_ppo" else q_policy_of
    return Sb3Agent(make(checkpoint, file), checkpoint.rules, checkpoint.level, name, deterministic)


def _has_value(checkpoint: Checkpoint) -> bool:
    """Was the network trained to say what a position is worth? A teacher's is not, nor one beside a critic."""
    ppo = checkpoint.progress.get("config", {}).get("ppo", {})  # of a shipped one, which has no training
    beside_critic = ppo.get("asymmetric_critic") or any(name.startswith("critic.") for name in checkpoint.training)
    return checkpoint.kind != "teacher" and not beside_critic
