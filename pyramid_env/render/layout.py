"""Layout: where the cards and labels of a View stand, in card widths; SVG and pixels draw the same layout."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from pyramid_env.cards import Card
from pyramid_env.render.view import Pile, View

CARD_WIDTH: Final = 1.0
CARD_HEIGHT: Final = 1.4
COLUMN_STEP: Final = 1.1
WIDE_STEP: Final = 1.5
"""Between a stock and its one waste pile: room for the words below."""

ROW_STEP: Final = 0.6
FAN_DOWN: Final = 0.5
FAN_RIGHT: Final = 0.5
MARGIN: Final = 0.3
HEADER: Final = 0.65
FOOTER: Final = 0.5
GAP: Final = 0.35
"""Between the pyramid and the piles."""

LABEL: Final = 0.4
"""Height of the line under a pile."""

LETTERS: Final = 0.18
"""Height of the capitals of labels."""

LETTER_STEP: Final = 0.16
"""Room that one letter of a label takes."""

NARROWEST: Final = 6.6
"""Width of the smallest table: the line with pass and score fits."""

PILES_A_ROW: Final = 8


class Style(Enum):
    """How a card is drawn."""

    EXPOSED = "exposed"
    COVERED = "covered"
    BACK = "face down"
    EMPTY = "empty"


class Spot(NamedTuple):
    """A card to draw, its upper left corner at (x, y); ``note`` says in words where it lies."""

    x: float
    y: float
    card: Card | None
    style: Style
    note: str


class Label(NamedTuple):
    """A line of text, vertically centred on y; ``anchor`` -1, 0, 1: x is its left end, centre, right end."""

    x: float
    y: float
    text: str
    anchor: int
    size: float = 1.0  # of the letters, 1 = LETTERS


class Layout(NamedTuple):
    """Everything to draw, in the order of drawing. Size and places of piles depend on the rules alone."""

    width: float
    height: float
    spots: tuple[Spot, ...]
    labels: tuple[Label, ...]


def layout(view: View) -> Layout:
    """The layout of a position: title, pyramid, piles, and a last line with pass and score."""
    rules = view.rules
    grid = _grid(view)
    width = max(rules.rows * COLUMN_STEP, grid.width, NARROWEST) + 2 * MARGIN
    piles_top = HEADER + (rules.rows - 1) * ROW_STEP + CARD_HEIGHT + GAP
    bottom = piles_top + grid.height
    spots, labels = _pyramid(view, width / 2), _title(view, width)
    for slot in range(grid.slots):
        x = (width - grid.width) / 2 + slot % grid.a_row * grid.step
        y = piles_top + slot // grid.a_row * (grid.slot_height + LABEL)
        pile = slot - view.has_stock
        spots += _pile(view, pile, x, y) if pile >= 0 else [_stock(view, x, y)]
        below = y + grid.slot_height + LABEL / 2
        labels.append(_fit(x + CARD_WIDTH / 2, below, _count(view, pile), 0, grid.step))
    standing = f"{view.pass_text}   score {view.score}   cards left {view.cards_left}"
    labels.append(_fit(width / 2, bottom + FOOTER / 2, standing, 0, width - 2 * MARGIN))
    return Layout(width, bottom + FOOTER, tuple(spots), tuple(labels))


class _Grid(NamedTuple):
    """The piles: stock first, then the waste piles, in rows."""

    slots: int
    a_row: int
    step: float
    slot_height: float
    width: float
    height: float


def _grid(view: View) -> _Grid:
    rules = view.rules
    slots = (len(view.piles) if rules.stock_size else 0) + view.has_stock
    a_row = max(1, min(slots, max(PILES_A_ROW, rules.rows)))
    slot_width, slot_height = _slot(view)
    rows = -(-slots // a_row)
    step = WIDE_STEP if len(view.piles) == 1 else COLUMN_STEP
    return _Grid(slots, a_row, step, slot_height, (a_row - 1) * step + slot_width, rows * (slot_height + LABEL))


def _title(view: View, width: float) -> list[Label]:
    y, room = HEADER / 2, width - 2 * MARGIN
    title = _fit(MARGIN, y, view.title, -1, room - LETTER_STEP * (len(view.end_text) + 2))
    return [title, _fit(width - MARGIN, y, view.end_text, 1, room)] if view.end_text else [title]


def _count(view: View, pile: int) -> str:
    """The line under a pile; -1 is the stock."""
    if pile < 0:
        return "recycle" if view.can_recycle and not view.over else f"stock {view.stock_count}"
    return f"{'waste ' if len(view.piles) == 1 else ''}{view.piles[pile].size}"


def _fit(x: float, y: float, text: str, anchor: int, room: float) -> Label:
    """A label whose letters are small enough for the room."""
    return Label(x, y, text, anchor, min(1.0, room / (LETTER_STEP * max(len(text), 1))))


def _fan(view: View) -> tuple[float, float]:
    """How far a card of a waste pile lies right of and below the one under it."""
    return (0.0, FAN_DOWN) if len(view.piles) > 1 else (FAN_RIGHT, 0.0)


def _slot(view: View) -> tuple[float, float]:
    """Width and height of the deepest pile that can be seen."""
    rules = view.rules
    deepest = 2 if rules.pair_waste_two else 1
    if rules.nothing_hidden:
        deepest = max(1, -(-rules.stock_size // rules.waste_piles))
    right, down = _fan(view)
    return CARD_WIDTH + (deepest - 1) * right, CARD_HEIGHT + (deepest - 1) * down


def _pyramid(view: View, centre: float) -> list[Spot]:
    spots = []
    for above, row in enumerate(view.rows):
        left = centre - (above * COLUMN_STEP + CARD_WIDTH) / 2
        for column, place in enumerate(row):
            if place.card is not None:
                style = Style.EXPOSED if place.exposed else Style.COVERED
                note = f"row {above + 1}, column {column + 1}"
                spots.append(Spot(left + column * COLUMN_STEP, HEADER + above * ROW_STEP, place.card, style, note))
    return spots


def _stock(view: View, x: float, y: float) -> Spot:
    if view.stock_top:
        return Spot(x, y, view.stock_top, Style.EXPOSED, "top of the stock")
    return Spot(x, y, None, Style.BACK if view.stock_count else Style.EMPTY, "stock")


def _pile(view: View, number: int, x: float, y: float) -> list[Spot]:
    pile: Pile = view.piles[number]
    name = "waste" if len(view.piles) == 1 else f"waste {number + 1}"
    if not pile.cards:
        return [Spot(x, y, None, Style.EMPTY, name)]
    right, down = _fan(view)
    styles = [Style.COVERED] * (len(pile.cards) - 1) + [Style.EXPOSED]
    return [
        Spot(x + at * right, y + at * down, card, style, f"top of {name}" if style is Style.EXPOSED else name)
        for at, (card, style) in enumerate(zip(pile.cards, styles, strict=True))
    ]
