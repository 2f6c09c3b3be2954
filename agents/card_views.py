"""CardViews: positions as graphs of the cards that are left, for the encoder in agents/card_graph.py.

A card is a node: where it lies, whether it is a king, and how many cards of its rank and of its partners' rank are left
in the pyramid, known in the stock, and not seen. Ranks themselves are not told: to the rules only pairs matter. Edges
say what a card has to do with others:

    beside      a partner, neither over nor under it
    over        a partner that must leave before it
    under       a partner that it must leave before
    like        a card of its rank, its rival for partners
    on, off     a card that lies directly upon it; that it lies upon
    next, last  the stock card that comes after it; before it

Cards that have not been seen are no nodes; how many are to come, the pass and the pass of the clear belong to the whole
position. All of it follows from the observation.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.pair_views import Numbers, numbers_of
from agents.tokens import compiled
from pyramid_env import kernels
from pyramid_env.geometry import geometry
from pyramid_env.moves import Kind, move_table
from pyramid_env.rules import Rules

RELATIONS: Final = 8
BESIDE, OVER, UNDER, LIKE, ON, OFF, NEXT, LAST = range(RELATIONS)

ENTRIES: Final = 7
"""Of a node: where it lies, three counts of its rank, three of its partners'."""

_NO_CARD: Final = -1
_STOCK_TOP: Final = 1_000
_PILE: Final = 2_000
_SECOND: Final = 3_000
"""The cards that a move is about: none; a place, by its number; the top of the stock, of a pile; the card under it."""


class Graph(NamedTuple):
    """B positions with M cards in all, the cards of a position one after the other."""

    starts: NDArray[np.int32]  # (B + 1,) the first card of each position
    looks: NDArray[np.int32]  # (M, ENTRIES) rows of the encoder's table
    wholes: NDArray[np.int32]  # (B, 4) and of the table for whole positions
    edge_starts: NDArray[np.int32]  # (M * RELATIONS + 1,) the first edge of each card and relation
    edges: NDArray[np.int32]  # (edges,) the cards at their other ends
    nodes: NDArray[np.int32]  # (B, places + stock cards) the card at each, -1 = none


class CardTables:
    """What the encoder needs of some rules and a level.

    Attributes:
        rows: of the encoder's table for cards.
        whole_rows: of its table for whole positions.
        kinds: (A,) the kind of each action.
    """

    def __init__(self, rules: Rules, level: str) -> None:
        n = self.numbers = numbers_of(rules, level)
        if n.known < 0:
            raise ValueError(f"cards as a graph: expected a level that shows what has been seen, got {level!r}")
        self.rows: Final = n.places * 6 + n.piles * n.depth * 2 + n.stock * 2 + 6 * (n.copies + 3)
        self.whole_rows: Final = 2 * (n.passes + 1) + 2 * (n.stock + 1)
        self.kinds: Final = np.array([int(move.kind) for move in move_table(rules)], np.int64)
        self._ancestors: Final = np.array(geometry(rules.rows).ancestors, np.int64)
        self._covers: Final = np.array(kernels.table(rules).covers, np.int64)
        self._cards: Final = _cards(rules)
        most = 2 * n.copies - 1 + 4 + 2
        self._most_edges: Final = (n.places + n.stock) * most

    def graph(self, tokens: NDArray[np.int8]) -> Graph:
        """The graph of (B, F) observation rows."""
        n, count = self.numbers, len(tokens)
        cards = n.places + n.stock
        graph = Graph(
            starts=np.zeros(count + 1, np.int32),
            looks=np.empty((count * cards, ENTRIES), np.int32),
            wholes=np.empty((count, 4), np.int32),
            edge_starts=np.zeros(count * cards * RELATIONS + 1, np.int32),
            edges=np.empty(count * self._most_edges, np.int32),
            nodes=np.empty((count, cards), np.int32),
        )
        _write_graph(tokens, n, self._ancestors, self._covers, graph)
        found = int(graph.starts[-1])
        edge_starts = graph.edge_starts[: found * RELATIONS + 1]
        return graph._replace(looks=graph.looks[:found], edge_starts=edge_starts, edges=graph.edges[: edge_starts[-1]])

    def moved(
        self, tokens: NDArray[np.int8], graph: Graph, legal: NDArray[np.int16]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Rows, columns and cards (L, 2) of the L moves of (B, K) ``legal``; for no card M, the number of cards."""
        rows, columns = np.nonzero(legal >= 0)
        cards = np.empty((len(rows), 2), np.int64)
        _write_moved(tokens, self.numbers, graph, self._cards, legal, rows, columns, cards)
        return rows, columns, cards


def _cards(rules: Rules) -> NDArray[np.int64]:
    """(A, 2) the cards that each action is about, as numbered above."""
    cards = np.full((len(move_table(rules)), 2), _NO_CARD, np.int64)
    for action, (kind, first, second) in enumerate(move_table(rules)):
        match kind:
            case Kind.PLACE_PAIR:
                cards[action] = first, second
            case Kind.PLACE_WASTE:
                cards[action] = first, _PILE + second
            case Kind.PLACE_STOCK:
                cards[action] = first, _STOCK_TOP
            case Kind.STOCK_WASTE:
                cards[action] = _STOCK_TOP, _PILE + first
            case Kind.WASTE_TWO:
                cards[action] = _PILE + first, _SECOND + first
            case Kind.WASTE_TOPS:
                cards[action] = _PILE + first, _PILE + second
            case Kind.PLACE_KING:
                cards[action, 0] = first
            case Kind.WASTE_KING:
                cards[action, 0] = _PILE + first
            case Kind.STOCK_KING:
                cards[action, 0] = _STOCK_TOP
            case Kind.DRAW:
                cards[action] = _PILE, _STOCK_TOP
    return cards


@compiled
def _write_graph(
    tokens: NDArray[np.int8], n: Numbers, ancestors: NDArray[np.int64], covers: NDArray[np.int64], graph: Graph
) -> None:
    cards = n.places + n.stock
    rank = np.zeros(cards, np.int64)  # 0 = gone
    counts = np.zeros((3, n.ranks + 1), np.int64)  # in the pyramid, known in the stock, not seen
    piled = np.zeros(n.piles, np.int64)
    here = np.zeros(cards, np.int64)
    m: Any = 0
    e: Any = 0
    for b in range(tokens.shape[0]):
        row = tokens[b]
        counts[:] = 0
        for i in range(n.places):
            rank[i] = row[n.pyramid + i]
            counts[0, rank[i]] += 1
        _read_stock(row, n, rank, counts)
        if n.unseen >= 0:
            for r in range(1, n.ranks + 1):
                counts[2, r] = row[n.unseen + r - 1]
        first = m
        for c in range(cards):
            graph.nodes[b, c] = -1
            if rank[c] > 0:
                here[m - first] = c
                graph.nodes[b, c] = m
                m += 1
        graph.starts[b + 1] = m
        _write_places(n, rank, covers, graph.nodes[b], graph.looks)
        _write_stock(row, n, rank, piled, graph.nodes[b], graph.looks, graph.wholes[b])
        _write_counts(n, rank, counts, graph.nodes[b], graph.looks)
        e = _write_edges(n, rank, ancestors, covers, here[: m - first], first, graph, e)


@compiled
def _read_stock(row: NDArray[np.int8], n: Numbers, rank: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Ranks of the stock cards that are left and seen."""
    stock = n.clairvoyant_stock if n.clairvoyant_stock >= 0 else n.known
    for k in range(n.stock):
        r: Any = np.int64(row[stock + k])
        rank[n.places + k] = r if r <= n.ranks else 0
        if 0 < r <= n.ranks:
            counts[1, r] += 1


@compiled
def _write_places(
    n: Numbers, rank: NDArray[np.int64], covers: NDArray[np.int64], nodes: NDArray[np.int32], looks: NDArray[np.int32]
) -> None:
    for i in range(n.places):
        if rank[i] > 0:
            upon: Any = 0
            for c in range(i + 1, n.places):
                upon += ((covers[i] >> c) & 1) & (rank[c] > 0)
            looks[nodes[i], 0] = i * 6 + upon * 2 + (rank[i] == n.ranks)


@compiled
def _write_stock(
    row: NDArray[np.int8],
    n: Numbers,
    rank: NDArray[np.int64],
    piled: NDArray[np.int64],
    nodes: NDArray[np.int32],
    looks: NDArray[np.int32],
    whole: NDArray[np.int32],
) -> None:
    stock = n.clairvoyant_stock if n.clairvoyant_stock >= 0 else n.known
    cursor = np.int64(row[n.cursor])
    first: Any = n.places * 6
    piled[:] = 0
    for turned in range(cursor):
        k = cursor - 1 - turned
        c: Any = n.places + k
        if rank[c] > 0:
            pile = k % n.piles
            looks[nodes[c], 0] = first + (pile * n.depth + piled[pile]) * 2 + (rank[c] == n.ranks)
            piled[pile] += 1
    first += n.piles * n.depth * 2
    coming: Any = 0
    unseen: Any = 0
    for ahead in range(cursor, n.stock):
        c = n.places + ahead
        if rank[c] > 0:
            looks[nodes[c], 0] = first + coming * 2 + (rank[c] == n.ranks)
        if row[stock + ahead] != 0:
            coming += 1
            unseen += rank[c] == 0
    number: Any = np.int64(row[n.pass_number])
    cleared: Any = 0
    if n.cleared >= 0:
        cleared = np.int64(row[n.cleared])
    whole[0] = min(number, n.passes)
    first = n.passes + 1
    whole[1] = first + min(cleared, n.passes)
    first += n.passes + 1
    whole[2] = first + coming
    whole[3] = first + n.stock + 1 + unseen


@compiled
def _write_counts(
    n: Numbers, rank: NDArray[np.int64], counts: NDArray[np.int64], nodes: NDArray[np.int32], looks: NDArray[np.int32]
) -> None:
    values = n.copies + 3  # a king's are told apart, as the last two
    first: Any = n.places * 6 + n.piles * n.depth * 2 + n.stock * 2
    for c in range(len(nodes)):
        r = rank[c]
        if r > 0:
            for where in range(3):
                own, others = first + where * values, first + (3 + where) * values
                if r == n.ranks:
                    looks[nodes[c], 1 + where] = own + n.copies + 1
                    looks[nodes[c], 4 + where] = others + n.copies + 2
                else:
                    looks[nodes[c], 1 + where] = own + counts[where, r]
                    looks[nodes[c], 4 + where] = others + counts[where, n.ranks - r]


@compiled
def _write_edges(
    n: Numbers,
    rank: NDArray[np.int64],
    ancestors: NDArray[np.int64],
    covers: NDArray[np.int64],
    here: NDArray[np.int64],
    first: int,
    graph: Graph,
    e: int,
) -> int:
    """The edges of the cards ``here`` of a position, the nodes from ``first`` on; the number of edges so far."""
    edges, starts = graph.edges, graph.edge_starts
    count = len(here)
    inside = 0  # the cards of the pyramid come first
    while inside < count and here[inside] < n.places:
        inside += 1
    for p in range(count):
        i = here[p]
        r = rank[i]
        at = (first + p) * RELATIONS
        under = ancestors[i] if p < inside else np.int64(0)
        for relation in (BESIDE, OVER, UNDER, LIKE):
            wanted = r if relation == LIKE else n.ranks - r
            if r < n.ranks:
                for q in range(count):
                    j = here[q]
                    if rank[j] != wanted or q == p:
                        continue
                    found = relation
                    if relation != LIKE:
                        found = BESIDE
                        if p < inside and q < inside:
                            if (under >> j) & 1:
                                found = OVER
                            elif (ancestors[j] >> i) & 1:
                                found = UNDER
                    if found == relation:
                        edges[e] = first + q
                        e += 1
            starts[at + relation + 1] = e
        for q in range(p + 1, inside):
            if (covers[i] >> here[q]) & 1:
                edges[e] = first + q
                e += 1
        starts[at + ON + 1] = e
        if p < inside:
            for q in range(p):
                if (covers[here[q]] >> i) & 1:
                    edges[e] = first + q
                    e += 1
        starts[at + OFF + 1] = e
        if inside <= p < count - 1:
            edges[e] = first + p + 1
            e += 1
        starts[at + NEXT + 1] = e
        if p > inside:
            edges[e] = first + p - 1
            e += 1
        starts[at + LAST + 1] = e
    return e


@compiled
def _write_moved(
    tokens: NDArray[np.int8],
    n: Numbers,
    graph: Graph,
    cards: NDArray[np.int64],
    legal: NDArray[np.int16],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    for m in range(len(rows)):
        b = rows[m]
        for side in range(2):
            node = _find(tokens[b], n, graph.nodes[b], cards[legal[b, columns[m]], side])
            out[m, side] = node if node >= 0 else len(graph.looks)


@compiled
def _find(row: NDArray[np.int8], n: Numbers, nodes: NDArray[np.int32], card: int) -> int:
    """The node of a card that a move is about, -1 = none or not seen."""
    stock = n.clairvoyant_stock if n.clairvoyant_stock >= 0 else n.known
    cursor: Any = np.int64(row[n.cursor])
    found: Any = -1
    if 0 <= card < _STOCK_TOP:
        found = nodes[card]
    elif card == _STOCK_TOP:
        for k in range(n.stock - 1, cursor - 1, -1):
            if row[stock + k] != 0:
                found = nodes[n.places + k]
    elif card > _STOCK_TOP:
        pile = (card - _PILE) % (_SECOND - _PILE)
        wanted: Any = 1 if card < _SECOND else 2
        for turned in range(cursor):
            k = cursor - 1 - turned
            if k % n.piles == pile and row[stock + k] != 0:
                wanted -= 1
                if wanted == 0:
                    found = nodes[n.places + k]
    node: int = found
    return node
