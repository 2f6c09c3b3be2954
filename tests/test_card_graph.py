"""The cards as a graph: its edges by hand, what cards hear, the network's symmetry, a run with it and its resume."""

import os
import signal

import numpy as np
import pytest
import torch

import agents
import pyramid_env as pe
from agents.action_head import MASKED_LOGIT
from agents.card_graph import CardNetwork, hear, plain_hear
from agents.card_views import BESIDE, LAST, LIKE, NEXT, OFF, ON, OVER, RELATIONS, UNDER, CardTables
from agents.checkpoint import CheckpointError, put_weights
from agents.config import ConfigError, make_config
from agents.legal import legal_lists
from agents.ppo import Ppo
from agents.training import resume, train
from agents.warm_start import grown
from pyramid_env import functional
from pyramid_env.geometry import place, row_column
from pyramid_env.kernels import CURSOR
from pyramid_env.moves import Kind, move_table
from pyramid_env.observation import layout, position_from_observation


def played(preset, games=32, steps=9, seed=0):
    """Games some random moves after their start."""
    rules, rng = pe.rules(preset), np.random.default_rng(seed)
    arrays = functional.arrays(rules, "memory", games)
    functional.reset(rules, "memory", arrays, np.arange(1_000_000, 1_000_000 + games))
    for _ in range(steps):
        functional.step(rules, "memory", arrays, some_actions(arrays, rng))
    return arrays


def some_actions(arrays, rng):
    """A random legal action of each game; 0 of games that are over."""
    legal = legal_lists(arrays.bits)
    slots = (rng.random(legal.shape) * (legal >= 0)).argmax(axis=1)
    return np.maximum(legal[np.arange(len(legal)), slots], 0).astype(np.int64)


def seen_cards(rules, rows):
    """(B, cards) ranks as the player knows them, 0 for gone or not seen."""
    fields = layout(rules, "memory").views(rows)
    ranks, states = position_from_observation(rules, fields)
    left = (
        (states[:, 0, None] >> np.arange(rules.places)) & 1,
        (states[:, 1, None] >> np.arange(rules.stock_size)) & 1,
    )
    return ranks * np.concatenate(left, axis=1).astype(np.int8), states


# ---- the graph -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", pe.PRESETS)
@pytest.mark.parametrize("steps", [3, 40])
def test_edges_are_what_the_rules_say_cards_have_to_do_with_each_other(preset, steps):
    rules = pe.rules(preset)
    arrays = played(preset, steps=steps)
    graph = CardTables(rules, "memory").graph(arrays.rows)
    ranks, _ = seen_cards(rules, arrays.rows)
    cover, above = {}, {}
    for i in range(rules.places):
        row, column = row_column(i)
        cover[i] = {place(row + 1, column), place(row + 1, column + 1)} if row < rules.rows else set()
    for i in reversed(range(rules.places)):
        above[i] = cover[i] | {a for c in cover[i] for a in above[c]}
    checked = 0
    for b in range(len(arrays.rows)):
        there = [c for c in range(ranks.shape[1]) if ranks[b, c]]
        first = graph.starts[b]
        assert graph.starts[b + 1] - first == len(there)
        assert graph.nodes[b].tolist() == [first + there.index(c) if c in there else -1 for c in range(ranks.shape[1])]
        stock = [c for c in there if c >= rules.places]
        for i in there:
            expected = {relation: set() for relation in range(RELATIONS)}
            for j in there:
                if i != j and ranks[b, i] + ranks[b, j] == rules.ranks:
                    over, under = j in above.get(i, ()), i in above.get(j, ())
                    expected[OVER if over else UNDER if under else BESIDE].add(j)
                if i != j and ranks[b, i] == ranks[b, j] != rules.ranks:
                    expected[LIKE].add(j)
                if j in cover.get(i, ()):
                    expected[ON].add(j)
                if i in cover.get(j, ()):
                    expected[OFF].add(j)
            if i in stock:
                expected[NEXT] |= set(stock[stock.index(i) + 1 : stock.index(i) + 2])
                expected[LAST] |= set(stock[max(0, stock.index(i) - 1) : stock.index(i)])
            for relation in range(RELATIONS):
                at = (first + there.index(i)) * RELATIONS + relation
                found = graph.edges[graph.edge_starts[at] : graph.edge_starts[at + 1]] - first
                assert {there[k] for k in found} == expected[relation]
                assert len(found) == len(expected[relation])
                checked += len(found)
    assert checked > 100


def test_looks_count_the_cards_of_a_rank_and_of_its_partners():
    """Two positions that differ only in what has not been seen look different; places, piles and kings are told."""
    rules = pe.rules("pyramid")
    tables = CardTables(rules, "memory")
    arrays = played("pyramid", games=200, steps=25)
    graph = tables.graph(arrays.rows)
    ranks, states = seen_cards(rules, arrays.rows)
    unseen = layout(rules, "memory").views(arrays.rows)["unseen"]
    values, checked = 4 + 3, 0
    counts_from = 28 * 6 + 24 * 2 + 24 * 2
    for b in range(200):
        for c in np.flatnonzero(ranks[b]):
            look, rank = graph.looks[graph.nodes[b, c]], int(ranks[b, c])
            if rank < 13:
                for side, which in ((1, rank), (4, 13 - rank)):
                    counts = (ranks[b, :28] == which).sum(), (ranks[b, 28:] == which).sum(), unseen[b, which - 1]
                    assert [look[side + w] - counts_from - (side - 1 + w) * values for w in range(3)] == list(counts)
            assert (look[0] % 2 == 1) == (rank == 13)
            if c >= 28:
                turned = c - 28 < states[b, CURSOR]
                assert (28 * 6 <= look[0] < 28 * 6 + 48) == turned
                checked += 1
            else:
                assert look[0] // 6 == c
    assert checked > 100


@pytest.mark.parametrize("preset", [*pe.PRESETS])
def test_the_cards_of_a_move_are_those_that_leave(preset):
    rules, rng = pe.rules(preset), np.random.default_rng(1)
    tables, arrays, seen = CardTables(rules, "memory"), played(preset, steps=0), set()
    for _ in range(60):
        actions = some_actions(arrays, rng)
        rows, before = arrays.rows.copy(), arrays.states[:, :2].copy()
        graph = tables.graph(rows)
        _, _, cards = tables.moved(rows, graph, actions.astype(np.int16)[:, None])
        over = arrays.terminated | arrays.truncated
        functional.step(rules, "memory", arrays, actions)
        for b in np.flatnonzero(~over):
            kind = move_table(rules)[int(actions[b])].kind
            pyramid, stock = (int(bits) for bits in before[b] & ~arrays.states[b, :2])
            gone = [i for i in range(rules.places) if pyramid >> i & 1]
            gone += [rules.places + k for k in range(rules.stock_size) if stock >> k & 1]
            if kind != Kind.DRAW:
                assert sorted(graph.nodes[b, gone]) == sorted(c for c in cards[b] if c < len(graph.looks))
                seen.add(kind)
    assert len(seen) >= 2


def test_cards_that_have_not_been_seen_change_nothing():
    """The same deal with the rest of the stock in another order gives the same logits."""
    rules = pe.rules("till_dawn")
    arrays = played("till_dawn", steps=4)
    other = functional.arrays(rules, "memory", len(arrays.ranks))
    other.states[:] = arrays.states
    other.ranks[:] = arrays.ranks
    cursor = rules.places + int(arrays.states[:, CURSOR].max()) + 1
    other.ranks[:, cursor:] = other.ranks[:, cursor:][:, ::-1]
    functional.observe(rules, "memory", other)
    assert not np.array_equal(other.ranks, arrays.ranks)
    network, legal = fresh(rules), legal_lists(arrays.bits)
    with torch.no_grad():
        some = [network(torch.from_numpy(rows), torch.from_numpy(legal))[0] for rows in (arrays.rows, other.rows)]
    assert torch.equal(*some)


# ---- the network -----------------------------------------------------------------------------------------------------


def fresh(rules, width=16, layers=2):
    """A network none of whose layers is the identity any more."""
    torch.manual_seed(0)
    network = CardNetwork(rules, "memory", width, layers)
    for layer in network.layers:
        for last in (layer.second, layer.whole_second):
            torch.nn.init.normal_(last.weight, std=0.2)
    return network


@pytest.mark.parametrize("preset", ["pyramid", "till_dawn", "giza", "double_pyramid"])
@pytest.mark.parametrize("half", [False, True])
def test_what_cards_hear_and_its_gradients_are_those_of_torch(preset, half):
    rules = pe.rules(preset)
    graph = CardTables(rules, "memory").graph(played(preset).rows)
    generator = torch.Generator().manual_seed(0)
    cards = torch.randn(len(graph.looks), 8, generator=generator, requires_grad=True)
    wholes = torch.randn(32, 8, generator=generator, requires_grad=True)
    results = []
    for function in (hear, plain_hear):
        heard, means = function(cards, wholes, graph, half)
        weights = torch.linspace(-1, 1, heard.numel()).view(heard.shape)
        loss = (heard.float() * weights).sum() + (means * means).sum()
        results.append((heard, means, *torch.autograd.grad(loss, [cards, wholes])))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours.float(), theirs.float(), rtol=1e-2 if half else 1e-5, atol=2e-2 if half else 1e-5)
    assert results[0][0].dtype == (torch.bfloat16 if half else torch.float32)


def test_half_precision_is_near_the_exact_one():
    arrays, network = played("pyramid"), fresh(pe.rules("pyramid"))
    rows, legal = torch.from_numpy(arrays.rows), torch.from_numpy(legal_lists(arrays.bits))
    with torch.no_grad():
        exact, _ = network(rows, legal)
        network.half_precision = True
        rough, _ = network(rows, legal)
    there = legal >= 0
    assert not torch.equal(exact, rough)
    assert torch.allclose(exact[there], rough[there], atol=0.1 * float(exact[there].abs().max()))


def test_ranks_that_leave_together_are_all_alike():
    """Exchanging aces with fives and queens with eights, wherever they lie, changes no logit and no value."""
    rules, arrays = pe.rules("pyramid"), played("pyramid", steps=20)
    change = np.arange(rules.ranks + 2, dtype=np.int8)
    change[[1, 5, 12, 8]] = 5, 1, 8, 12
    exchanged = arrays.rows.copy()
    fields, before = layout(rules, "memory").views(exchanged), layout(rules, "memory").views(arrays.rows)
    for name in ("pyramid", "waste", "known"):
        fields[name][:] = change[before[name]]
    fields["unseen"][:] = before["unseen"][:, change[1 : rules.ranks + 1] - 1]
    legal, network = torch.from_numpy(legal_lists(arrays.bits)), fresh(rules)
    with torch.no_grad():
        found = [network(torch.from_numpy(rows), legal) for rows in (arrays.rows, exchanged)]
    assert not np.array_equal(exchanged, arrays.rows)
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_every_weight_learns_and_illegal_actions_keep_their_logit(preset):
    rules, arrays = pe.rules(preset), played(preset, steps=5)
    network, legal = fresh(rules), torch.from_numpy(legal_lists(arrays.bits))
    logits, values = network(torch.from_numpy(arrays.rows), legal)
    assert torch.equal(logits <= MASKED_LOGIT, legal < 0)
    every, _ = network(torch.from_numpy(arrays.rows))
    picked = every.gather(1, legal.long().clamp(min=0)).masked_fill(legal < 0, MASKED_LOGIT)
    assert torch.allclose(picked, logits, atol=1e-5)
    (logits.sigmoid().sum() + values.sum()).backward()
    still = {name for name, weight in network.named_parameters() if not weight.grad.abs().max() > 0}
    assert not still
    assert all(torch.isfinite(weight.grad).all() for weight in network.parameters())


# ---- runs ------------------------------------------------------------------------------------------------------------


def settings(learner, **changes):
    """A config for a few seconds on the small game."""
    base = {
        "rules": "mini_one_pass",
        "algorithm": learner,
        "total_steps": 40_960,
        "checkpoint_steps": 20_480,
        "env": {"num_envs": 256},
        "network": {"cards": 16, "card_layers": 2},
        "ppo": {"n_steps": 16, "batch_size": 512},
        "teacher": {"guided": 5_000, "batch_size": 256, "warm_up": 2_000, "learning_rate": 4e-3},
        "evaluation": {"deals": "validation:0-499", "every_steps": 0, "bound": False},
    }
    return make_config(base, [f"{name}={value}" for name, value in changes.items()])


@pytest.mark.parametrize(("algorithm", "half"), [("teacher", "true"), ("teacher", "false"), ("ppo", "false")])
def test_a_run_learns_and_its_checkpoint_plays(algorithm, half, tmp_path):
    """Mini with one pass: random play clears about 15 % of deals, greedy 44 %, the best possible 55 %."""
    config = settings(algorithm, **{"network.half": half})
    done = train(config, tmp_path / "run")
    agent = agents.load(tmp_path / "run", "mini_one_pass")
    assert agent.level == "memory"
    assert done is not None
    arrays = played("mini_one_pass", steps=1)
    fields = layout(config.game, "memory").views(arrays.rows)
    masks = arrays.masks.astype(bool)
    going = masks.any(axis=1)
    rng = np.random.default_rng(0)
    chosen = agent.act({name: field[going] for name, field in fields.items()}, masks[going], rng)
    assert masks[going][np.arange(going.sum()), chosen].all()


def test_ppo_with_cards_resumes_bit_for_bit(tmp_path, monkeypatch):
    config = settings("ppo", threads=1)
    train(config, tmp_path / "whole")
    collect, left = Ppo.collect, [4]

    def signalled(self, played):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)
        collect(self, played)

    monkeypatch.setattr(Ppo, "collect", signalled)
    assert not train(config, tmp_path / "parts").finished
    assert resume(tmp_path / "parts").finished
    whole, parts = (agents.load(tmp_path / name).network.state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"network.groups": 8}, r"network\.groups: expected 0 with network\.cards, got 8"),
        ({"network.recurrent": 8}, r"network\.recurrent: expected 0 with network\.cards, got 8"),
        ({"network.cards": 0, "network.half": "true"}, r"network\.half: expected false without network\.cards"),
        (
            {"algorithm": "imitation", "network.cards": 32, "network.half": "true"},
            r"network\.half: expected false with algorithm",
        ),
        ({"env.observation": "table"}, r"env\.observation: expected memory with network\.cards, got table"),
        ({"algorithm": "dqn"}, r"network\.cards: expected 0 with algorithm dqn"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes, told):
    with pytest.raises(ConfigError, match=told):
        settings("ppo", **changes)


def test_a_run_may_begin_with_a_network_of_fewer_layers(tmp_path):
    """The layers that come on top are the identity at first, so the deeper network plays as the other one did."""
    config = settings("teacher", total_steps=4_096, **{"teacher.guided": 4_096})
    train(config, tmp_path / "shallow")
    deeper = {"init": tmp_path / "shallow", "network.card_layers": 4, "network.half": "true"}
    rows = torch.from_numpy(played("mini_one_pass", steps=2).rows)
    shallow, network = agents.load(tmp_path / "shallow").network, CardNetwork(config.game, "memory", 16, 4)
    put_weights(network, grown(shallow.state_dict(), network), tmp_path)
    with torch.no_grad():
        assert torch.equal(network(rows)[0], shallow(rows)[0])
    assert train(settings("teacher", total_steps=8_192, **deeper), tmp_path / "deeper").finished
    with pytest.raises(CheckpointError, match=r"they differ in network\.card_layers 4 \(there\) and 3 \(asked for\)"):
        train(settings("teacher", **{"init": tmp_path / "deeper", "network.card_layers": 3}), tmp_path / "back")
