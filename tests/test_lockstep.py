"""Lockstep: kernels and reference play the same random games; after every move everything they know must be equal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from reference import Reference

import pyramid_env as pe
from pyramid_env import kernels
from pyramid_env.batch import Batch
from pyramid_env.errors import RulesError
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.stepping import observe_games, packed, play_games

GAMES = 200
ENGINES = (("memory", "int8"), ("clairvoyant", "packed"))
"""Levels and mask formats of the batches that play along."""

MOST_MOVES = 300
"""Without a limit of passes a player who hardly ever removes could go on for ever; longer games are left there."""

DRAW_CHANCE = (None, 0.05, 0.9)
"""The players, taken in turn: any legal move alike; one who removes nearly always; one who nearly always draws."""

ODD_RULES = {
    "short deck, five ranks": pe.rules(rows=3, ranks=5, suits=4, passes=2),
    "short deck, eleven ranks, both tops": pe.rules(
        "till_dawn", rows=4, ranks=11, suits=3, scoring="msc", goal="pyramid"
    ),
    "two rows, nearly all is stock": pe.rules(rows=2, ranks=13, suits=4, pair_waste_two=True, goal="all"),
    "no stock": pe.rules(rows=4, ranks=5, suits=2, overlap=True),
    "nine rows, one deck's worth of stock": pe.rules("double_pyramid", rows=9, passes=1, scoring="msc"),
    "sixty-three stock cards": pe.rules(rows=2, ranks=11, suits=3, decks=2, stock_top=True, passes=2, scoring="none"),
    "draw three, two passes": pe.rules(draw_count=3, passes=2),
    "draw three, stock top": pe.rules(draw_count=3, stock_top=True, pair_stock_waste=True, scoring="msc"),
    "three piles, three passes": pe.rules(draw_count=3, waste_piles=3, passes=3, pair_waste_tops=True),
    "three piles, tops apart, without limit": pe.rules(draw_count=3, waste_piles=3, passes=None, goal="all"),
    "three piles, everything pairs": pe.rules(
        "till_dawn", draw_count=3, waste_piles=3, pair_waste_tops=True, predealt=5, overlap=True
    ),
    "five piles, four cards turned": pe.rules(
        draw_count=5, waste_piles=5, predealt=4, passes=2, pair_waste_two=True, goal="all"
    ),
    "one pile for each card": pe.rules(draw_count=24, waste_piles=24, passes=1, pair_waste_tops=True, goal="all"),
    "all cards turned, one pile": pe.rules(predealt=24, passes=3, pair_waste_two=True, goal="all"),
    "overlap with stock top": pe.rules("overlap", stock_top=True, pair_stock_waste=True, passes=2),
    "overlap, all must go": pe.rules("overlap", goal="all", pair_waste_two=True, draw_count=2),
    "ends with the stock": pe.rules("solitaire13", end_on_exhausted=True),
    "ends with the stock of pass two": pe.rules("microsoft", end_on_exhausted=True, passes=2, goal="all"),
    "without limit, both tops, all must go": pe.rules("pysol", passes=None, pair_waste_two=True, scoring="none"),
}


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_presets_in_lockstep(preset: str) -> None:
    play_in_lockstep(pe.rules(preset), GAMES, np.random.default_rng(1))


@pytest.mark.parametrize("name", ODD_RULES)
def test_odd_rules_in_lockstep(name: str) -> None:
    play_in_lockstep(ODD_RULES[name], GAMES // 4, np.random.default_rng(2))


def test_any_consistent_rules_in_lockstep() -> None:
    rng = np.random.default_rng(3)
    for _ in range(150):
        play_in_lockstep(random_rules(rng), 3, rng)


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_game_in_lockstep_also_back_and_forth(preset: str) -> None:
    """Game, played by text, with moves taken back and made again; the reference keeps a copy of every position."""
    rng = np.random.default_rng(4)
    for number in range(4):
        game = pe.Game(number, preset)
        moves = move_table(game.rules)
        line = [Reference(game.rules, game.ranks.tolist())]
        at = 0
        for _ in range(150):
            plain = line[at]
            legal = plain.legal_moves()
            assert {moves.text(move) for move in game.legal_moves} == legal
            assert tuple(game.state.tolist()) == plain.packed()
            assert (game.is_over, game.is_won, game.score) == (not legal, plain.is_won, plain.score)
            assert (game.par, game.msc, game.cards_left) == (plain.par(), plain.msc(), plain.cards_left)
            assert (game.pass_number, game.passes_used) == (plain.pass_number, plain.passes_begun)
            assert (game.can_undo, game.can_redo) == (at > 0, at < len(line) - 1)
            chance = rng.random()
            if game.can_undo and chance < 0.1:
                game.undo()
                at -= 1
            elif game.can_redo and chance < 0.5:
                game.redo()
                at += 1
            elif legal:
                move = choose(legal, DRAW_CHANCE[number % len(DRAW_CHANCE)], rng)
                game.play(move)
                del line[at + 1 :]
                line.append(plain.copy())
                line[-1].play(move)
                at += 1


def random_rules(rng: np.random.Generator) -> pe.Rules:
    """Switches by chance, again and again until they are consistent."""
    flags = ("stock_top", "pair_stock_waste", "pair_waste_two", "pair_waste_tops", "overlap", "end_on_exhausted")
    while True:
        draw_count = int(rng.choice([1, 1, 2, 3, 8]))
        try:
            return pe.Rules(
                decks=int(rng.integers(1, 3)),
                rows=int(rng.integers(2, 10)),
                ranks=int(rng.choice([5, 7, 9, 11, 13])),
                suits=int(rng.integers(1, 5)),
                draw_count=draw_count,
                waste_piles=int(rng.choice([1, draw_count])),
                predealt=int(rng.choice([0, 0, 1, 4])),
                passes=[1, 2, 3, None][rng.integers(4)],
                goal=str(rng.choice(["pyramid", "all"])),
                scoring=str(rng.choice(["par", "msc", "none"])),
                **{flag: bool(rng.random() < 0.4) for flag in flags},
            )
        except RulesError:
            continue


def play_in_lockstep(rules: pe.Rules, games: int, rng: np.random.Generator) -> None:
    """Random games to the end, compared before the first move and after every move."""
    moves = move_table(rules)
    texts = [moves.text(move) for move in moves]
    action_of = {text: action for action, text in enumerate(texts)}
    one_deck = [rank for rank in range(1, rules.ranks + 1) for _ in range(rules.suits * rules.decks)]
    ranks = rng.permuted(np.tile(np.array(one_deck, np.int8), (games, 1)), axis=1)
    references = [Reference(rules, deal.tolist()) for deal in ranks]

    states = np.empty((games, kernels.STATE_COLUMNS), np.int64)
    masks = np.empty((games, len(moves)), np.int8)
    facts = np.empty((games, kernels.FACT_COLUMNS), np.int32)
    illegal = np.empty(games, np.bool_)
    rows = np.empty((games, layout(rules, "memory").size), np.int8)
    tables = packed(rules, "memory")
    kernels.start(kernels.table(rules), states)
    observe_games(*tables, ranks, states, np.arange(games), masks, facts, rows)

    engines = [Batch(games, rules, level, mask_format) for level, mask_format in ENGINES]
    for engine in engines:
        engine.games.ranks[:], engine.games.states[:] = ranks, states
        engine.begin(np.arange(games))
    check_engines(engines, tables, ranks, states, masks, facts, rows)

    actions = np.empty(games, np.int64)
    legal = [reference.legal_moves() for reference in references]
    compare(references, legal, action_of, ranks, states, masks, facts)
    for _ in range(MOST_MOVES):
        for b, reference in enumerate(references):
            actions[b] = -1
            if legal[b]:
                move = choose(legal[b], DRAW_CHANCE[b % len(DRAW_CHANCE)], rng)
                reference.play(move)
                legal[b] = reference.legal_moves()
                actions[b] = action_of[move]
        if not (actions >= 0).any():
            break
        assert play_games(*tables, ranks, states, actions, actions < 0, masks, facts, rows, illegal) == 0
        compare(references, legal, action_of, ranks, states, masks, facts)
        for engine in engines:
            np.maximum(actions, 0, out=engine.actions)  # a game that is over has no legal action: nothing changes
            assert engine.play().illegal == (actions < 0).sum()
        check_engines(engines, tables, ranks, states, masks, facts, rows)


def check_engines(engines, tables, ranks, states, masks, facts, rows) -> None:
    """What the engine keeps up to date by changes is what is written anew from the position, at every level."""
    for engine, (level, mask_format) in zip(engines, ENGINES, strict=True):
        games = engine.games
        shown = [engine.mask_row(b) for b in range(len(masks))]
        expected_rows = rows
        if level == "clairvoyant":
            expected_rows = np.empty_like(games.rows)
            scratch = (masks.copy(), facts.copy(), expected_rows)
            observe_games(*packed(engine.rules, level), ranks, states, np.arange(len(masks)), *scratch)
        for name, expected, got in (
            ("position", states, games.states),
            ("bits", masks, np.array(shown)),
            ("mask", masks if mask_format == "int8" else masks[:, :0], games.masks),
            ("facts", facts, games.facts),
            ("row", expected_rows, games.rows),
        ):
            if not np.array_equal(expected, got):
                b = int(np.flatnonzero((expected != got).any(axis=1))[0])
                pytest.fail(f"{engine.rules}: {name} differs: expected {expected[b].tolist()}, got {got[b].tolist()}")
        assert (games.scores == facts[:, kernels.SCORE]).all()
        assert (games.terminated == (facts[:, kernels.OVER] != 0)).all()


def choose(legal: set[str], draw_chance: float | None, rng: np.random.Generator) -> str:
    """One legal move; sorted first, so that the games are the same in every run."""
    removals = sorted(legal - {"draw"})
    if draw_chance is None:
        options = sorted(legal)
    elif not removals or ("draw" in legal and rng.random() < draw_chance):
        options = ["draw"]
    else:
        options = removals
    return options[rng.integers(len(options))]


def compare(
    references: list[Reference],
    legal: list[set[str]],
    action_of: dict[str, int],
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    masks: NDArray[np.int8],
    facts: NDArray[np.int32],
) -> None:
    """Position, full mask, scores, the end and the win of every game."""
    expected_masks = np.zeros_like(masks)
    for b, moves in enumerate(legal):
        for move in moves:
            expected_masks[b, action_of[move]] = 1
    expected_states = np.array([reference.packed() for reference in references], np.int64)
    expected_facts = np.array([facts_of(r, moves) for r, moves in zip(references, legal, strict=True)], np.int32)
    for name, expected, got in (
        ("position", expected_states, states),
        ("mask", expected_masks, masks),
        ("facts", expected_facts, facts),
    ):
        if not np.array_equal(expected, got):
            b = int(np.flatnonzero((expected != got).any(axis=1))[0])
            pytest.fail(
                f"{references[b].rules}: {name} differs at {references[b].key()}, deal {ranks[b].tolist()}: "
                f"expected {expected[b].tolist()}, got {got[b].tolist()}"
            )


def facts_of(game: Reference, legal: set[str]) -> list[int]:
    """The facts in the order of the kernels' columns."""
    facts = {
        kernels.CARDS_LEFT: game.cards_left,
        kernels.PYRAMID_LEFT: game.pyramid_left,
        kernels.PAR: game.par(),
        kernels.MSC: game.msc(),
        kernels.SCORE: game.score,
        kernels.WON: int(game.is_won),
        kernels.OVER: int(not legal),
        kernels.PASS_NUMBER: game.pass_number,
        kernels.CLEARED_IN: game.cleared_in,
    }
    return [facts[column] for column in range(kernels.FACT_COLUMNS)]
