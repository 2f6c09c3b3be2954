"""Splits: which numbered deals results are measured on, and the text that names some of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyramid_env.deal import FIRST_TRAINING_NUMBER, check_number
from pyramid_env.errors import PyramidError

SPLITS: Final[Mapping[str, range]] = MappingProxyType({"test": range(0, 10_000), "validation": range(10_000, 20_000)})
"""Deal numbers by purpose. Results are reported on ``test``; choices (which checkpoint, which setting) are made on
``validation``. Training takes random deals from FIRST_TRAINING_NUMBER (1,000,000) up and so never meets either."""

MAX_DEALS: Final = 1_000_000
"""More deals in one text are taken for a slip."""

_RANGE: Final = re.compile(r"(0|[1-9]\d*)(?:-(0|[1-9]\d*))?")
_FORMS: Final = "'test', 'validation:0-99' (places within the split), or deal numbers such as '123,456-460'"


def parse_deals(text: str) -> NDArray[np.int64]:
    """Read which deals are meant.

    A split's name alone is the whole split. After ``split:`` stand places within the split, from 0:
    ``validation:0-99`` is deals 10,000 to 10,099. Without a split stand deal numbers. Single numbers and ranges
    (both ends included) are joined by commas, and digits are not grouped.

    Args:
        text: for example ``"test"``, ``"test:0-999"``, ``"validation:5"``, ``"123,456-460"``.

    Returns:
        (D,) distinct deal numbers in the order of the text.

    Raises:
        PyramidError: an unknown split, an unreadable, backward or empty range, a place outside the split, a deal
            named twice.
    """
    if not isinstance(text, str):
        raise PyramidError(f"deals: expected text such as {_FORMS}, got {type(text).__name__}")
    before, colon, after = text.strip().partition(":")
    name = before.strip()
    if not colon and not name[:1].isalpha():
        return _distinct(_numbers(name, text), text)
    if name not in SPLITS:
        raise PyramidError(f"deals: unknown split {name!r} in {text!r}; known: {', '.join(SPLITS)}")
    split = SPLITS[name]
    if not colon:
        return np.arange(split.start, split.stop, dtype=np.int64)
    places = _distinct(_numbers(after, text), text)
    if places.max() >= len(split):
        raise PyramidError(
            f"deals: {name} has the places 0-{len(split) - 1}, got {int(places.max())} in {text!r}; "
            "deal numbers stand without a split's name"
        )
    return places + split.start


def format_deals(deals: ArrayLike) -> str:
    """The shortest text for some deal numbers; ``parse_deals`` reads it back, in the same order.

    Deals that all lie in one split are named as places within it.
    """
    numbers = np.asarray(deals, dtype=np.int64).reshape(-1)
    if not numbers.size:
        return ""
    for name, split in SPLITS.items():
        if numbers.min() >= split.start and numbers.max() < split.stop:
            whole = np.array_equal(numbers, np.arange(split.start, split.stop))
            return name if whole else f"{name}:{_ranges(numbers - split.start)}"
    return _ranges(numbers)


def may_be_training_deals(deals: ArrayLike) -> bool:
    """Does any of the numbers lie where training draws its deals, so that an agent may have met it?"""
    return bool(np.any(np.asarray(deals, dtype=np.int64) >= FIRST_TRAINING_NUMBER))


def _numbers(listed: str, text: str) -> list[range]:
    """The ranges of a list such as ``1,4-6``."""
    ranges = []
    for part in listed.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise PyramidError(f"deals: cannot read {part.strip()!r} in {text!r}; expected {_FORMS}")
        first = check_number(int(found[1]))
        last = check_number(int(found[2])) if found[2] is not None else first
        if last < first:
            raise PyramidError(f"deals: the range {part.strip()!r} in {text!r} runs backwards; expected {last}-{first}")
        if last - first >= MAX_DEALS:
            raise PyramidError(f"deals: at most {MAX_DEALS:,} at once, got {last - first + 1:,} in {text!r}")
        ranges.append(range(first, last + 1))
    if sum(map(len, ranges)) > MAX_DEALS:
        raise PyramidError(f"deals: at most {MAX_DEALS:,} at once, got {sum(map(len, ranges)):,} in {text!r}")
    return ranges


def _distinct(ranges: list[range], text: str) -> NDArray[np.int64]:
    numbers = np.concatenate([np.arange(len(r), dtype=np.int64) + r.start for r in ranges])
    values, counts = np.unique(numbers, return_counts=True)
    if counts.max() > 1:
        raise PyramidError(f"deals: {int(values[counts > 1][0])} is named twice in {text!r}")
    return numbers


def _ranges(numbers: NDArray[np.int64]) -> str:
    """Runs of neighbouring numbers as ``first-last``, joined by commas, in the given order."""
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    runs = [(int(run[0]), int(run[-1])) for run in np.split(numbers, cuts)]
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
