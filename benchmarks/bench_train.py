"""Training benchmark: environment steps learned from a CPU second, own PPO beside sb3-contrib's MaskablePPO.

    python -m benchmarks.bench_train [--rules TEXT] [--rounds N] [--updates N] [--games N] [--steps N] [--batch N]

One process, one torch thread, by CPU time. The contestants take turns, update by update, so that all of them meet the
same neighbours on the machine; a round is ``--updates`` updates of each, and the table has the median round.

Equal for all: rules, games side by side, steps, batch size, epochs, learning rate, reward, observation rows, and the
network: embedding sum of 128, one shared layer of 256, a policy and a value head (torch's own embedding gradient where
that is said). What differs:

    own PPO              agents/ppo.py
    our policy           MaskablePPO with MaskedTokenPolicy (distribution over legal moves, built once a forward pass)
                         and the compact buffer, as ``algorithm: maskable_ppo`` of train.py
    stock policy         MaskablePPO with sb3-contrib's own policy, distribution and buffer, and our features: the
                         yardstick
    stock, torch's sum   the same, and torch's own gradient of the embedding sum
    stock MLP            MaskablePPO as its users write it: "MlpPolicy", here two layers of 128 and 256 on one-hot rows

``--reach SECONDS`` asks the second question instead: MaskablePPO (our policy) trains for so many CPU seconds, then own
PPO for a fifth of them, once with the same network and once as ``--config`` has it, with what MaskablePPO cannot have
(pairs of ranks as groups, moves without a choice left out). Each has its section of ``--config``, its schedules
stretched over the steps that it is about to make. The table has the best validation win rate that each met; evaluation
is not counted. ``--settings`` changes the config first, ``--own`` what the last contestant has of it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from agents.config import Config, load_config, make_config
from agents.evaluation import evaluate_agent
from agents.learner import Learner, make_learner
from agents.networks import TokenFeatures
from agents.ppo import Ppo
from agents.sb3_learner import MaskablePpoLearner, make_env
from pyramid_env.benchmark import parse_deals

Update = Callable[[], None]

TRIAL_S: Final = 10.0
"""CPU seconds at most in which it shows how many steps a second a contestant makes."""


class TorchSum(TokenFeatures):
    """Our features with torch's own embedding sum."""

    def __init__(self, observation_space: spaces.Space[Any], **sizes: Any) -> None:
        super().__init__(observation_space, **sizes)
        rows, width = self.trunk.table.weight.shape
        self.bag = nn.EmbeddingBag(rows, width, mode="sum")

    def forward(self, observations: Any) -> Tensor:
        features: Tensor = self.trunk.layers(self.bag(observations.int() + self.trunk.offsets))
        return features


class OneHot(BaseFeaturesExtractor):
    """Each entry of the row as a one-hot vector: what a linear layer takes."""

    def __init__(self, observation_space: spaces.Box) -> None:
        counts = observation_space.high.astype(np.int64) + 1
        super().__init__(observation_space, int(counts.sum()))
        self.register_buffer("first", torch.as_tensor(np.concatenate([[0], np.cumsum(counts)[:-1]])))

    def forward(self, observations: Tensor) -> Tensor:
        empty = torch.zeros(len(observations), self.features_dim)
        return empty.scatter_(1, observations.long() + self.first, 1.0)


def main() -> None:
    """Read the command line, take turns, print."""
    parser = argparse.ArgumentParser(description="Environment steps learned from a CPU second.")
    parser.add_argument("--rules", default="pyramid")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=1, help="of each contestant in a round")
    parser.add_argument("--games", type=int, default=256)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--reach", type=float, metavar="SECONDS")
    parser.add_argument("--settings", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--own", nargs="*", default=[], metavar="KEY=VALUE", help="settings of own PPO's last row alone"
    )
    parser.add_argument("--config", type=Path, default=Path(__file__).parent.parent / "configs" / "pyramid.yaml")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.reach is not None:
        config = load_config(options.config, ["evaluation.bound=false", *options.settings])
        return print_reach(config, options.reach, options.own)
    print_speed(options)


# ---- speed -----------------------------------------------------------------------------------------------------------


def print_speed(options: argparse.Namespace) -> None:
    """Take turns and print a row for each contestant."""
    settings = {"n_steps": options.steps, "batch_size": options.batch, "n_epochs": options.epochs}
    data = {"rules": options.rules, "env": {"num_envs": options.games}, "ppo": settings, "maskable_ppo": settings}
    config = make_config(data)
    sizes = {"embedding": config.network.embedding, "layers": config.network.shared}
    features = {"features_extractor_class": TokenFeatures, "features_extractor_kwargs": sizes}
    heads: dict[str, Any] = {"net_arch": [], "activation_fn": nn.ReLU, "normalize_images": False}
    contestants: dict[str, Update] = {
        "own PPO": own(config),
        "our policy": sb3(MaskablePpoLearner(make_config(data, ["algorithm=maskable_ppo"])).model),
        "stock policy": sb3(stock(config, **features, **heads)),
        "stock, torch's sum": sb3(stock(config, **{**features, "features_extractor_class": TorchSum}, **heads)),
        "stock MLP": sb3(stock(config, features_extractor_class=OneHot, **{**heads, "net_arch": [128, 256]})),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(options.rounds + 1):
        for name, update in contestants.items():
            began = time.process_time()
            for _ in range(options.updates):
                update()
            if turn:  # the first warms up
                seconds[name].append(time.process_time() - began)
    steps = options.updates * config.steps_per_update
    yardstick = float(np.median(seconds["stock policy"]))
    shape = f"{options.games} games, {options.steps} steps, batches of {options.batch}, {options.epochs} epochs"
    print(f"{config.game}, {shape}")
    print("| contestant | steps a CPU second | x stock policy |\n|---|---|---|")
    for name, each in seconds.items():
        middle = float(np.median(each))
        print(f"| {name} | {steps / middle:,.0f} | {yardstick / middle:.2f} |")


def own(config: Config) -> Update:
    """One update of own PPO."""
    learner = Ppo(config)
    learner.set_schedules(0.0)

    def update() -> None:
        learner.collect()
        learner.update()

    return update


def stock(config: Config, **policy: Any) -> MaskablePPO:
    """MaskablePPO with sb3-contrib's own policy class and buffer."""
    ppo = config.maskable_ppo
    return MaskablePPO(
        MaskableActorCriticPolicy,
        make_env(config.env, config.game),
        learning_rate=ppo.learning_rate,
        n_steps=ppo.n_steps,
        batch_size=ppo.batch_size,
        n_epochs=ppo.n_epochs,
        gamma=ppo.gamma,
        ent_coef=ppo.ent_coef,
        policy_kwargs=policy,
        seed=config.seed,
        device="cpu",
    )


def sb3(model: Any) -> Update:
    """One update of MaskablePPO, by the parts that its ``learn`` calls."""
    model.set_logger(Logger(None, []))
    _, callback = model._setup_learn(10**9, None)

    def update() -> None:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps, True)
        model.train()

    return update


# ---- what is reached -------------------------------------------------------------------------------------------------


def print_reach(config: Config, seconds: float, own_changes: list[str]) -> None:
    """The best validation win rates within the two budgets; ``own_changes``: settings of the last contestant alone."""
    same = ["network.groups=0", "network.recurrent=0", "env.skip_forced=false"]  # what only own PPO has
    contestants = (
        ("MaskablePPO", seconds, ["algorithm=maskable_ppo", *same]),
        ("own PPO", seconds / 5, ["algorithm=ppo", *same]),
        ("own PPO, as in the config", seconds / 5, ["algorithm=ppo", *own_changes]),
    )
    print("| contestant | CPU seconds | steps | best win rate |\n|---|---|---|---|")
    for name, budget, changes in contestants:
        made = make_config(config.to_dict(), changes)
        with tempfile.TemporaryDirectory() as logs:
            trial = Budget(make_learner(made), min(TRIAL_S, budget))
            trial.run(made.total_steps, Path(logs))
            steps = int(trial.learner.steps * budget / trial.used)
            watch = Budget(make_learner(made), budget, measured=20)
            watch.run(steps, Path(logs))
        print(f"| {name} | {watch.used:,.0f} | {watch.learner.steps:,} | {watch.best:.1%} |", flush=True)


class Budget:
    """Stops a learner after so many CPU seconds of learning, and measures it some times meanwhile."""

    def __init__(self, learner: Learner, seconds: float, measured: int = 0) -> None:
        self.learner, self.seconds, self.measured = learner, seconds, measured
        self.used, self.best = 0.0, 0.0
        self._measured, self._since = 0, time.process_time()

    def run(self, steps: int, logs: Path) -> None:
        """Let the learner make so many steps, or as many as the time allows; measured at the end too."""
        self._since = time.process_time()
        self.learner.learn(steps, self, logs)
        if self.measured:
            self._measure()
        self.learner.close()

    def between_updates(self) -> bool:
        """See :class:`agents.learner.Watch`."""
        self.used += time.process_time() - self._since
        if self.measured and self.used >= self.seconds * (self._measured + 1) / self.measured:
            self._measure()
        self._since = time.process_time()
        return self.used >= self.seconds

    def _measure(self) -> None:
        config = self.learner.config
        self._measured += 1
        deals, agent = parse_deals(config.evaluation.deals), self.learner.agent("now", True)
        records = evaluate_agent(agent, config.game, deals, seed=0, batch_size=config.evaluation.batch_size)
        self.best = max(self.best, float(np.mean([record.won for record in records])))

    def played(self, steps: int) -> bool:
        """See :class:`agents.learner.Watch`."""
        return False


if __name__ == "__main__":
    main()
