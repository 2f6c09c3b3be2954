"""Moves: index, Move and text read into each other for every preset; the numbering is pinned."""

import pytest

from pyramid_env.errors import IllegalMoveError
from pyramid_env.geometry import geometry, place, row_column
from pyramid_env.moves import Kind, Move, move_table
from pyramid_env.rules import PRESETS, rules

ACTIONS = {
    "pyramid": 254,
    "one_pass": 254,
    "solitaire13": 254,
    "solitaire13_three_piles": 196 + 3 * 28 + 28 + 3 + 3 + 1,
    "till_dawn": 254 + 29 + 1 + 1,
    "double_pyramid": 632,
    "microsoft": 254 + 29 + 1,
    "classic": 284,
    "pysol": 284,
    "double_pyramid_pysol": 632 + 46 + 1,
    "tuts_tomb": 254,
    "giza": 196 + 8 * 28 + 28 + 8 + 28 + 1,
    "overlap": 254 + 42,
    "mini": 20,
    "mini_one_pass": 20,
}


@pytest.mark.parametrize("name", PRESETS)
def test_index_move_and_text_read_into_each_other(name):
    table = move_table(rules(name))
    assert len(table) == len(set(table)) == ACTIONS[name]
    assert len({table.text(move) for move in table}) == len(table)
    for action, move in enumerate(table):
        assert table.index_of(move) == action
        assert table.parse(table.text(move)) == move
        assert table.parse(str(move)) == move
        assert table.parse(" + ".join(reversed(table.text(move).upper().split("+")))) == move
    assert table[len(table) - 1] == Move(Kind.DRAW)


def test_the_numbering_is_pinned():
    texts = [str(move) for move in move_table(rules("pyramid"))]
    assert texts[:3] == ["r2c1+r2c2", "r2c1+r3c3", "r2c1+r4c4"]
    assert texts[195:199] == ["r7c6+r7c7", "r1c1+waste", "r2c1+waste", "r2c2+waste"]
    assert texts[224] == "r1c1"
    assert texts[-2:] == ["waste", "draw"]
    giza = [str(move) for move in move_table(rules("giza"))]
    assert giza[196 + 28] == "r1c1+waste2"
    assert giza[-3:] == ["waste6+waste8", "waste7+waste8", "draw"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r8c1",
        "r7c8",
        "r1c1+r2c1",
        "r7c1+r7c1",
        "waste2",
        "stock",
        "waste+waste",
        "fold",
        "r7c1+r7c2+waste",
        "5",
        "r" + "9" * 5000 + "c1",
        "waste" + "1" * 5000,
    ],
)
def test_other_texts_are_no_moves_of_pyramid(text):
    with pytest.raises(IllegalMoveError, match="expected a move of pyramid"):
        move_table(rules("pyramid")).parse(text)


def test_a_move_of_other_rules_is_refused():
    with pytest.raises(IllegalMoveError, match="expected a move of pyramid"):
        move_table(rules("pyramid")).index_of(Move(Kind.STOCK_KING))
    with pytest.raises(IllegalMoveError, match="expected a move as text"):
        move_table(rules("pyramid")).parse(3)


def test_places_rows_and_columns():
    for rows in range(2, 10):
        shape = geometry(rows)
        for index in range(shape.places):
            row, column = row_column(index)
            assert place(row, column) == index
            below = {place(row + 1, column), place(row + 1, column + 1)} if row < rows else set()
            assert {j for j in range(shape.places) if (int(shape.covers[index]) >> j) & 1} == below
        assert sum(int(bits) for bits in shape.rows) == 2**shape.places - 1


def test_tables_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        geometry(7).covers[0] = 0
