"""Layout: where the cards and labels of a View stand, in card widths; SVG and pixels draw the same layout."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from pyramid_env.cards import Card
from pyramid_env.render.spots import STOCK, waste_spot
from pyramid_env.render.view import Pile, View

CARD_WIDTH: Final = 1.0
CARD_HEIGHT: Final = 1.4
COLUMN_STEP: Final = 1.1
ROW_STEP: Final = 0.6
FAN_DOWN: Final = 0.5
FAN_RIGHT: Final = 0.5
GAP: Final = 0.35
"""Between the pyramid and the piles, unless cards are large."""

LETTERS: Final = 0.18
"""Height of the capitals of labels."""

LETTER_STEP: Final = 0.16
"""Room that one letter of a label takes."""

NARROWEST: Final = 6.6
"""Width of the smallest table with a last line: pass and score fit."""

PILES_A_ROW: Final = 8

_NONE: Final[frozenset[str]] = frozenset()


class Style(Enum):
    """How a card is drawn."""

    EXPOSED = "exposed"
    COVERED = "covered"
    BACK = "face down"
    EMPTY = "empty"


class Spot(NamedTuple):
    """A card to draw, its upper left corner at (x, y); ``note`` says in words where it lies, ``key`` is its spot
    (:mod:`pyramid_env.render.spots`), ``covers`` the cards that lie on it and can be seen."""

    x: float
    y: float
    card: Card | None
    style: Style
    note: str
    key: str
    covers: tuple[Card, ...] = ()

    @property
    def strip(self) -> bool:
        """Do its covers leave no more to be seen than the strip along the upper edge?"""
        return len(self.covers) > 1


class Label(NamedTuple):
    """A line of text, vertically centred on y; ``anchor`` -1, 0, 1: x is its left end, centre, right end."""

    x: float
    y: float
    text: str
    anchor: int
    size: float = 1.0  # of the letters, 1 = LETTERS


class Layout(NamedTuple):
    """Everything to draw, in the order of drawing. Size and places of piles depend on the rules and on how large the
    cards are, never on the position."""

    width: float
    height: float
    spots: tuple[Spot, ...]
    labels: tuple[Label, ...]


class _Measures(NamedTuple):
    """Distances of one kind of table."""

    column_step: float
    row_step: float
    wide_step: float  # from a stock to its one waste pile: room for the words below
    margin: float
    header: float  # above the pyramid
    footer: float  # below the piles
    label: float  # height of the line under a pile
    letters: float  # size of labels, 1 = LETTERS
    fan_down: float  # from one card of a fanned pile to the next
    gap: float  # between the pyramid and the piles


def _measures(large: bool, bare: bool) -> _Measures:
    margin = 0.12 if bare else 0.3
    header, footer = (0.19, 0.02) if bare else (0.65, 0.5)
    if large:
        return _Measures(1.04, 0.66, 1.4, margin, header, footer, 0.38, 1.15, 0.56, 0.23)
    return _Measures(COLUMN_STEP, ROW_STEP, 1.5, margin, header, footer, 0.38, 1.0, FAN_DOWN, GAP)


def layout(view: View, *, large: bool = False, bare: bool = False, traces: frozenset[str] = _NONE) -> Layout:
    """The layout of a position: title, pyramid, piles, and a last line with pass and score.

    Args:
        view: what lies open.
        large: cards fill more of the table, and piles stand beside the apex where they fit.
        bare: without title and last line, and with narrow margins: for a page that says these things itself.
        traces: spots whose empty pyramid places are drawn too, under all cards.
    """
    sizes = _measures(large, bare)
    grid = _grid(view, sizes)
    wide = (view.rules.rows - 1) * sizes.column_step + CARD_WIDTH
    width = max(wide, grid.width, 0 if bare else NARROWEST) + 2 * sizes.margin
    corners = _corners(view, width, grid, sizes) if large else None
    if corners is None:
        sizes = sizes._replace(row_step=ROW_STEP)  # piles below need the height
    foot = sizes.header + (view.rules.rows - 1) * sizes.row_step + CARD_HEIGHT
    spots = _traces(view, width / 2, sizes, traces) + _pyramid(view, width / 2, sizes)
    labels = [] if bare else _title(view, width, sizes)
    places = corners or _below(width, foot + sizes.gap, grid, sizes)
    bottom = foot + sizes.margin if corners or not grid.slots else foot + sizes.gap + grid.height
    room = CARD_WIDTH + 2 * sizes.margin if corners else grid.step
    for slot, (x, y) in enumerate(places):
        pile = slot - view.has_stock
        spots += _pile(view, pile, x, y, sizes) if pile >= 0 else [_stock(view, x, y)]
        middle, below = x + CARD_WIDTH / 2, y + grid.slot_height + sizes.label / 2
        labels.append(_fit(middle, below, _count(view, pile), 0, room, sizes.letters))
    if not bare:
        standing = f"{view.pass_text} · score {view.score} · cards left {view.cards_left}"
        room = width - 2 * sizes.margin
        labels.append(_fit(width / 2, bottom + sizes.footer / 2, standing, 0, room, sizes.letters))
    return Layout(width, bottom + sizes.footer, tuple(spots), tuple(labels))


class _Grid(NamedTuple):
    """The piles: stock first, then the waste piles, in rows."""

    slots: int
    a_row: int
    step: float
    slot_width: float
    slot_height: float
    width: float
    height: float


def _grid(view: View, sizes: _Measures) -> _Grid:
    rules = view.rules
    slots = (len(view.piles) if rules.stock_size else 0) + view.has_stock
    a_row = max(1, min(slots, max(PILES_A_ROW, rules.rows)))
    slot_width, slot_height = _slot(view, sizes)
    rows = -(-slots // a_row)
    step = sizes.wide_step if len(view.piles) == 1 else sizes.column_step
    width, height = (a_row - 1) * step + slot_width, rows * (slot_height + sizes.label)
    return _Grid(slots, a_row, step, slot_width, slot_height, width, height)


def _below(width: float, top: float, grid: _Grid, sizes: _Measures) -> list[tuple[float, float]]:
    """Upper left corners of the piles below the pyramid."""
    left = (width - grid.width) / 2
    return [
        (left + slot % grid.a_row * grid.step, top + slot // grid.a_row * (grid.slot_height + sizes.label))
        for slot in range(grid.slots)
    ]


def _corners(view: View, width: float, grid: _Grid, sizes: _Measures) -> list[tuple[float, float]] | None:
    """Upper left corners of a stock and one pile left and right of the apex; None where they do not fit."""
    if grid.slots != 2 or not view.has_stock:
        return None
    beside = -(-(grid.slot_height + sizes.label) // sizes.row_step)  # rows that begin above the labels of the piles
    reach = (min(beside, view.rules.rows) - 1) * sizes.column_step + CARD_WIDTH
    if sizes.margin + grid.slot_width + 0.1 > (width - reach) / 2:
        return None
    return [(sizes.margin, sizes.header), (width - sizes.margin - grid.slot_width, sizes.header)]


def _title(view: View, width: float, sizes: _Measures) -> list[Label]:
    y, room = sizes.header / 2, width - 2 * sizes.margin
    size = sizes.letters
    title = _fit(sizes.margin, y, view.title, -1, room - LETTER_STEP * size * (len(view.end_text) + 2), size)
    return [title, _fit(width - sizes.margin, y, view.end_text, 1, room, size)] if view.end_text else [title]


def _count(view: View, pile: int) -> str:
    """The line under a pile; -1 is the stock."""
    if pile < 0:
        return "recycle" if view.can_recycle and not view.over else f"stock {view.stock_count}"
    return f"{'waste ' if len(view.piles) == 1 else ''}{view.piles[pile].size}"


def _fit(x: float, y: float, text: str, anchor: int, room: float, size: float) -> Label:
    """A label whose letters are small enough for the room."""
    return Label(x, y, text, anchor, min(size, room / (LETTER_STEP * max(len(text), 1))))


def _fan(view: View, sizes: _Measures) -> tuple[float, float]:
    """How far a card of a waste pile lies right of and below the one under it."""
    return (0.0, sizes.fan_down) if len(view.piles) > 1 else (FAN_RIGHT, 0.0)


def _slot(view: View, sizes: _Measures) -> tuple[float, float]:
    """Width and height of the deepest pile that can be seen."""
    rules = view.rules
    deepest = 2 if rules.pair_waste_two else 1
    if rules.nothing_hidden:
        deepest = max(1, -(-rules.stock_size // rules.waste_piles))
    right, down = _fan(view, sizes)
    return CARD_WIDTH + (deepest - 1) * right, CARD_HEIGHT + (deepest - 1) * down


def _corner(centre: float, above: int, column: int, sizes: _Measures) -> tuple[float, float]:
    """Upper left corner of a pyramid place; row and column from 0."""
    left = centre - (above * sizes.column_step + CARD_WIDTH) / 2
    return left + column * sizes.column_step, sizes.header + above * sizes.row_step


def _traces(view: View, centre: float, sizes: _Measures, traces: frozenset[str]) -> list[Spot]:
    spots = []
    for key in traces:
        if key[0] != "r":
            continue
        row, column = int(key[1]), int(key[3])
        if column <= row <= len(view.rows) and view.rows[row - 1][column - 1].card is None:
            x, y = _corner(centre, row - 1, column - 1, sizes)
            spots.append(Spot(x, y, None, Style.EMPTY, f"row {row}, column {column}", key))
    return sorted(spots, key=lambda spot: (spot.y, spot.x))


def _pyramid(view: View, centre: float, sizes: _Measures) -> list[Spot]:
    spots = []
    for above, row in enumerate(view.rows):
        x, y = _corner(centre, above, 0, sizes)
        below = view.rows[above + 1] if above + 1 < len(view.rows) else ()
        for column, place in enumerate(row):
            if place.card is not None:
                style = Style.EXPOSED if place.exposed else Style.COVERED
                note = f"row {above + 1}, column {column + 1}"
                key = f"r{above + 1}c{column + 1}"
                covers = tuple(p.card for p in below[column : column + 2] if p.card is not None)
                spots.append(Spot(x + column * sizes.column_step, y, place.card, style, note, key, covers))
    return spots


def _stock(view: View, x: float, y: float) -> Spot:
    if view.stock_top:
        return Spot(x, y, view.stock_top, Style.EXPOSED, f"top of the stock of {view.stock_count}", STOCK)
    if view.stock_count:
        return Spot(x, y, None, Style.BACK, f"stock of {view.stock_count}", STOCK)
    return Spot(x, y, None, Style.EMPTY, "stock", STOCK)


def _pile(view: View, number: int, x: float, y: float, sizes: _Measures) -> list[Spot]:
    pile: Pile = view.piles[number]
    name = "waste" if len(view.piles) == 1 else f"waste {number + 1}"
    if not pile.cards:
        return [Spot(x, y, None, Style.EMPTY, name, waste_spot(number))]
    right, down = _fan(view, sizes)
    spots, top = [], len(pile.cards) - 1
    for at, card in enumerate(pile.cards):
        style, note = (Style.EXPOSED, f"top of {name} of {pile.size}") if at == top else (Style.COVERED, name)
        key, covers = waste_spot(number, top - at), pile.cards[at + 1 : at + 2]
        spots.append(Spot(x + at * right, y + at * down, card, style, note, key, covers))
    return spots
