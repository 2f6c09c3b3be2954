"""Events: what a page sends, read with care; mistakes are PyramidErrors that say what was expected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pyramid_env.deal import MAX_NUMBER, Deal
from pyramid_env.errors import DeckError, PyramidError

Event = Mapping[str, Any]
"""What the page sends: ``type``, and what belongs to it."""

LONGEST_TEXT: Final = 1_000
"""Characters at most of a deal or of rules; two decks as text have 311."""

SHORTEST_DECK: Final = 10
"""Characters of the smallest deck as text; a shorter text is no deal, and its missing cards need not be listed."""

LONGEST_SPOT: Final = 20
"""Characters at most of a spot or a card."""

LONGEST_MISTAKE: Final = 400
"""Characters at most of a message about a mistake."""

_LONGEST_VALUE: Final = 80


def texts_of(event: Event, key: str) -> tuple[str, ...]:
    """Up to two short texts; none where the key is missing."""
    values = event.get(key, ())
    fits = isinstance(values, list | tuple) and len(values) <= 2
    if not fits or not all(isinstance(each, str) and len(each) <= LONGEST_SPOT for each in values):
        raise PyramidError(f"{key}: expected one or two short texts, got {shown(values)}")
    return tuple(values)


def text_of(event: Event, key: str) -> str:
    """A text."""
    value = event.get(key)
    if not isinstance(value, str):
        raise PyramidError(f"{key}: expected a text, got {shown(value)}")
    if len(value) > LONGEST_TEXT:
        raise PyramidError(f"{key}: expected a text of at most {LONGEST_TEXT} characters, got {len(value)}")
    return value


def flag_of(event: Event, key: str, default: bool | None = None) -> bool:
    """True or false; without a default it must be said."""
    value = event.get(key, default)
    if not isinstance(value, bool):
        raise PyramidError(f"{key}: expected true or false, got {shown(value)}")
    return value


def rules_of(event: Event) -> str:
    """The text of rules."""
    return text_of(event, "rules")


def deal_of(event: Event) -> int | str | None:
    """A deal's number or text; None where none is named."""
    value = event.get("deal")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if not isinstance(value, str):
        raise PyramidError(f"deal: expected a number or cards, got {shown(value)}")
    return text_of(event, "deal")


def read_deal_number(deal: Deal | int | str | None) -> Deal | int | str | None:
    """A deal as Game takes it: digits are a number, and a blank text is none. DeckError for a number too large."""
    if isinstance(deal, str):
        if not deal.strip():
            return None
        if not re.fullmatch("[0-9]+", deal.strip()):
            if len(deal.strip()) < SHORTEST_DECK:
                raise DeckError(f"deal: expected a number from 0 to {MAX_NUMBER}, or all cards as text, got {deal!r}")
            return deal
        digits = deal.strip().lstrip("0") or "0"
        deal = int(digits) if len(digits) <= len(str(MAX_NUMBER)) else MAX_NUMBER + 1
    if isinstance(deal, int) and deal > MAX_NUMBER:
        raise DeckError(f"deal number: expected a whole number from 0 to {MAX_NUMBER}, got a larger one")
    return deal


def shown(value: object) -> str:
    """A value in a message, or the beginning of it."""
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        text = f"a huge {type(value).__name__}"
    return _cut(text, _LONGEST_VALUE)


def short(text: str) -> str:
    """A message about a mistake: one line, and not a long one, whatever was in it."""
    return _cut(" ".join(text.split()), LONGEST_MISTAKE)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
