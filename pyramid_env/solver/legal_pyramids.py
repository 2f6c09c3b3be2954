"""Visible pyramids: every way to deal the pyramid, up to what changes no value: mirroring, and renaming ranks.

Ranks matter through what makes the highest rank with what, and nothing else. So pairs of ranks may change places, and
the two ranks of a pair as well; the highest rank stays. A pyramid is named by the order in which its ranks are first
met: the first pair met is (1, n - 1) with 1 met first, the next one (2, n - 2), and so on. Of it and its mirror image
the smaller name is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import perm

from pyramid_env.geometry import place
from pyramid_env.rules import Rules

Pyramid = tuple[int, ...]  # (places,) ranks


def visible_pyramids(rules: Rules) -> Iterator[tuple[Pyramid, int]]:
    """Each pyramid once, with the number of ways to deal it or one like it.

    The ways count cards, not ranks, so that all of them are equally likely; together they are
    cards! / (cards - places)!.
    """
    copies, pairs = rules.decks * rules.suits, (rules.ranks - 1) // 2
    mirrored = mirror(rules.rows)
    for named, met in _named_pyramids(rules.places, rules.ranks, copies):
        image = renamed([named[i] for i in mirrored], rules.ranks)
        if image < named:
            continue
        ways = 1 if image == named else 2
        for pair in range(met):
            ways *= 2 * (pairs - pair)
        for rank in range(1, rules.ranks + 1):
            ways *= perm(copies, named.count(rank))
        yield named, ways


def mirror(rows: int) -> list[int]:
    """The place that each place has in the mirror image."""
    return [place(row, row + 1 - column) for row in range(1, rows + 1) for column in range(1, row + 1)]


def renamed(ranks: list[int], king: int) -> Pyramid:
    """The same pyramid under the names in the order of meeting."""
    names = {king: king}
    for rank in ranks:
        if rank not in names:
            names[rank] = len(names) // 2 + 1
            names[king - rank] = king - names[rank]
    return tuple(names[rank] for rank in ranks)


def _named_pyramids(places: int, king: int, copies: int) -> Iterator[tuple[Pyramid, int]]:
    """All pyramids that bear their own names, and how many pairs of ranks each has met."""
    pairs = (king - 1) // 2
    ranks: list[int] = []
    left = [copies] * (king + 1)

    def deal(met: int) -> Iterator[tuple[Pyramid, int]]:
        if len(ranks) == places:
            yield tuple(ranks), met
            return
        for rank in (*range(1, min(met + 1, pairs) + 1), *range(king - met, king + 1)):
            if left[rank]:
                left[rank] -= 1
                ranks.append(rank)
                yield from deal(max(met, rank) if rank <= pairs else met)
                ranks.pop()
                left[rank] += 1

    yield from deal(0)
