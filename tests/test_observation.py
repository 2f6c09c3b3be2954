"""Observations: equal to what the plain reference sees, blind to unseen cards, and enough to rebuild the position."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from reference import Reference

import pyramid_env as pe
from pyramid_env import kernels
from pyramid_env.errors import PyramidError
from pyramid_env.observation import LEVELS, layout, position_from_observation

ODD_RULES = (
    pe.rules("till_dawn", draw_count=3, waste_piles=3, pair_waste_tops=True, predealt=5, overlap=True),
    pe.rules(draw_count=3, stock_top=True, pair_stock_waste=True, passes=None, goal="all"),
    pe.rules(rows=4, ranks=5, suits=2),
    pe.rules(rows=2, ranks=11, suits=3, decks=2, stock_top=True, passes=2),
)
ALL_RULES = [*pe.PRESETS.values(), *ODD_RULES]


def play_randomly(env: pe.PyramidEnv, rng: np.random.Generator):
    """Yield (observation, action that led to it or None) at every position of one random game."""
    observation, info = env.reset(seed=int(rng.integers(2**31)))
    yield observation, None
    draws = rng.choice([0.1, 0.5, 0.9])
    over = False
    while not over and rng.random() > 0.002:
        legal = np.flatnonzero(info["action_mask"])
        action = int(legal[-1] if rng.random() < draws else rng.choice(legal))
        observation, _, over, _, info = env.step(action)
        yield observation, action


def seen_by(game: Reference, rules: pe.Rules) -> dict[str, list[int]]:
    """The fields as they follow from the reference's lists of cards."""
    lying = {card.number: card.rank for pile in [game.stock, *game.wastes] for card in pile}
    turned = game.stock[:1] if rules.stock_top else []
    dealt_ranks = [rank for rank in range(1, rules.ranks + 1) for _ in range(rules.decks * rules.suits)]
    unseen = [card.rank for card in game.stock if card.number not in game.seen]
    assert len(dealt_ranks) == rules.cards
    return {
        "pyramid": [rank or 0 for row in game.pyramid for rank in row],
        "waste": [pile[-1].rank if pile else 0 for pile in game.wastes],
        "waste_count": [len(pile) for pile in game.wastes],
        "waste_under": [pile[-2].rank if len(pile) > 1 else 0 for pile in game.wastes],
        "stock": [len(game.stock)],
        "stock_top": [turned[0].rank if turned else 0],
        "pass": [game.pass_number],
        "cleared": [game.cleared_in],
        "known": [lying.get(k, 0) if k in game.seen else rules.ranks + 1 for k in range(rules.stock_size)],
        "cursor": [game.stock[0].number if game.stock else rules.stock_size],
        "unseen": [unseen.count(rank) for rank in range(1, rules.ranks + 1)],
        "clairvoyant_stock": [lying.get(k, 0) for k in range(rules.stock_size)],
    }


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_observations_are_what_the_reference_sees(rules: pe.Rules) -> None:
    rng = np.random.default_rng(1)
    env = pe.PyramidEnv(rules, observation="clairvoyant")
    for _ in range(4):
        for observation, action in play_randomly(env, rng):
            if action is None:
                game = Reference(rules, env.deal.ranks.tolist())
            else:
                game.play(env.moves.text(env.moves[action]))
            expected = seen_by(game, rules)
            for name, values in observation.items():
                assert values.tolist() == expected[name], name
            assert observation in env.observation_space


def test_the_fields_of_a_preset_are_pinned() -> None:
    assert [f.name for f in layout(pe.rules("pyramid"), "memory").fields] == [
        "pyramid",
        "waste",
        "waste_count",
        "stock",
        "pass",
        "known",
        "cursor",
        "unseen",
    ]
    assert [f.name for f in layout(pe.rules("till_dawn"), "table").fields] == [
        "pyramid",
        "waste",
        "waste_count",
        "waste_under",
        "stock",
        "stock_top",
        "pass",
        "cleared",
    ]
    sizes = {level: layout(pe.rules("pyramid"), level).size for level in LEVELS}
    assert sizes == {"table": 32, "memory": 70, "clairvoyant": 94}


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_a_level_begins_with_the_level_below(rules: pe.Rules) -> None:
    below: tuple = ()
    for level in LEVELS:
        fields = layout(rules, level).fields
        assert fields[: len(below)] == below
        below = fields
    assert ("known" in {f.name for f in layout(rules, "table").fields}) == (
        rules.nothing_hidden and rules.stock_size > 0
    )


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_an_unseen_card_changes_no_observation(rules: pe.Rules) -> None:
    """Permuting the stock cards that have not been seen changes nothing at the levels table and memory."""
    rng = np.random.default_rng(2)
    env = pe.PyramidEnv(rules, observation="memory")
    others = {level: pe.PyramidEnv(rules, observation=level) for level in LEVELS}
    told_apart = permuted = 0
    for _ in range(2):
        for observation, _ in play_randomly(env, rng):
            unseen = np.flatnonzero(position_from_observation(rules, observation).unseen)
            cards = list(env.deal.cards)
            for at, other in zip(unseen, rng.permutation(unseen), strict=True):
                cards[at] = env.deal.cards[other]
            permuted += cards != list(env.deal.cards)
            twin = pe.Game.from_state(pe.Deal(tuple(cards)), rules, env.state)
            shown = {level: other.reset(options={"game": twin})[0] for level, other in others.items()}
            for level in ("table", "memory"):
                for name, values in shown[level].items():
                    assert (values == observation[name]).all(), (level, name)
            if rules.stock_size:
                hidden, true = unseen - rules.places, env.deal.ranks[unseen]
                told_apart += (shown["clairvoyant"]["clairvoyant_stock"][hidden] != true).any()
    assert bool(told_apart) == bool(permuted)
    assert bool(permuted) == (not rules.nothing_hidden)


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_planner_can_rebuild_the_position(rules: pe.Rules, level: str) -> None:
    rng = np.random.default_rng(3)
    env = pe.PyramidEnv(rules, observation=level)
    observations, positions, table = [], [], kernels.table(rules)
    for observation, _ in play_randomly(env, rng):
        ranks, state = position = position_from_observation(rules, observation)
        assert state.tolist() == env.state.tolist()
        left = bits(int(state[kernels.PYRAMID]), rules.places) + bits(int(state[kernels.STOCK]), rules.stock_size)
        known = np.array(left) & (ranks != 0)
        assert (ranks[known] == env.deal.ranks[known]).all()
        assert position.unseen.sum() == (observation["unseen"].sum() if level == "memory" else 0)
        pyramid, stock, *_, cleared = state.tolist()
        assert kernels.msc_score(table, ranks, pyramid, stock) == env.game.msc
        assert kernels.score(table, ranks, pyramid, stock, cleared) == env.game.score
        observations.append(observation)
        positions.append(position)
    batch = {name: np.stack([observation[name] for observation in observations]) for name in observations[0]}
    for given in (batch, layout(rules, level).flat(batch)):
        ranks, states = position_from_observation(rules, given)
        assert (ranks == np.stack([position.ranks for position in positions])).all()
        assert (states == np.stack([position.state for position in positions])).all()


def bits(mask: int, count: int) -> list[bool]:
    return [bool(mask >> i & 1) for i in range(count)]


def test_what_lies_open_does_not_tell_the_stocks_order() -> None:
    observation, _ = pe.PyramidEnv("pyramid", observation="table").reset(seed=1)
    with pytest.raises(PyramidError, match="expected an observation at level memory or clairvoyant, got the fields"):
        position_from_observation(pe.rules("pyramid"), observation)
    with pytest.raises(PyramidError, match=r"got a row of shape \(3,\)"):
        position_from_observation(pe.rules("pyramid"), np.zeros(3, np.int8))
    open_cards, _ = pe.PyramidEnv("giza", observation="table").reset(seed=1)
    assert not position_from_observation(pe.rules("giza"), open_cards).unseen.any()


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(PyramidError, match="expected one of table, memory, clairvoyant, got 'all'"):
        pe.PyramidEnv(observation="all")


def test_a_picture_of_the_memory() -> None:
    """What is known after three draws and one removal: 9 of the waste with 4 of the pyramid."""
    pyramid = "A / 23 / 456 / 789T / JQ234 / 56789T / JQA2344"
    env = pe.PyramidEnv("pyramid", observation="memory")
    text = pyramid.replace("/", "") + "8 5 9 J" + rest_of_deck(pyramid + "8 5 9 J")
    env.reset(options={"cards": text})
    for move in ("draw", "draw", "draw", "r7c6+waste"):
        observation, *_ = env.step(env.moves.index_of(env.moves.parse(move)))
    assert field(observation, "pyramid")[-7:] == [11, 12, 1, 2, 3, 0, 4]
    assert field(observation, "waste") == [5]
    assert field(observation, "waste_count") == [2]
    assert field(observation, "stock") == [21]
    assert field(observation, "known")[:5] == [8, 5, 0, 14, 14]
    assert field(observation, "cursor") == [3]
    assert sum(field(observation, "unseen")) == 21


def field(observation: dict[str, NDArray[np.int8]], name: str) -> list[int]:
    values: list[int] = observation[name].tolist()
    return values


def rest_of_deck(dealt: str) -> str:
    """The cards of one deck that are not in ``dealt``, in some order."""
    return "".join(rank * (4 - dealt.count(rank)) for rank in "A23456789TJQK")


@pytest.mark.parametrize("level", [["memory"], {"memory"}, np.array(["memory"]), 3, None])
def test_symptom_an_unhashable_level_was_a_type_error(level) -> None:
    with pytest.raises(PyramidError, match="observation: expected one of table, memory, clairvoyant, got "):
        layout(pe.rules(), level)
    with pytest.raises(PyramidError, match="observation: expected one of table, memory, clairvoyant, got "):
        pe.PyramidEnv(observation=level)
    with pytest.raises(PyramidError, match="observation: expected one of table, memory, clairvoyant, got "):
        pe.PyramidVectorEnv(2, observation=level)


@pytest.mark.parametrize("observation", [None, 5, [1, 2], np.array(3, np.int8)])
def test_symptom_a_position_from_what_is_no_observation_was_a_type_error(observation) -> None:
    with pytest.raises(PyramidError, match="expected an observation at level memory or clairvoyant"):
        position_from_observation(pe.rules(), observation)
