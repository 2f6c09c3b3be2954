"""Saves: a game as JSON and back, every part of it checked."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pyramid_env.deal import Deal
from pyramid_env.errors import IllegalMoveError, PyramidError, SaveError
from pyramid_env.positions import POSITION_KEYS, Position
from pyramid_env.rules import Rules

if TYPE_CHECKING:
    from pyramid_env.game import Game

SAVE_FORMAT: Final = "pyramid_env.game"
SAVE_VERSION: Final = 1

_SAVED_KEYS: Final = ("format", "version", "rules", "deal", "start", "moves", "redo")


def start_to_json(start: Position) -> dict[str, Any]:
    """Bits as hexadecimal text: readers of JSON may round numbers beyond 2^53."""
    pyramid, stock, *rest = start
    return dict(zip(POSITION_KEYS, [hex(pyramid), hex(stock), *rest], strict=True))


def game_from_json(cls: type[Game], text: str) -> Game:
    saved = _read_json(text)
    if not isinstance(saved, dict) or saved.get("format") != SAVE_FORMAT:
        raise SaveError(f'expected a saved game, an object with "format": "{SAVE_FORMAT}", got something else')
    version = saved.get("version")
    if type(version) is not int or not 1 <= version <= SAVE_VERSION:
        raise SaveError(f"version: expected {SAVE_VERSION} at most, got {version!r}")
    _check_keys("saved game", saved, _SAVED_KEYS)
    _check_keys("rules", saved["rules"], tuple(Rules().to_dict()))
    _check_keys("deal", saved["deal"], ("number", "cards"))
    game = _saved_start(cls, saved)
    for key in ("moves", "redo"):
        _replay(game, key, saved[key])
    for _ in saved["redo"]:
        game.undo()
    return game


def _read_json(text: str) -> Any:
    if not isinstance(text, str):
        raise SaveError(f"expected a saved game as JSON text, got {type(text).__name__}")
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except SaveError:
        raise
    except (ValueError, RecursionError) as error:
        raise SaveError(f"damaged: expected JSON, got {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        names = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise SaveError(f"damaged: expected each key once, got {', '.join(map(repr, names))} several times")
    return read


def _check_keys(what: str, got: Any, keys: Sequence[str]) -> None:
    if not isinstance(got, dict):
        raise SaveError(f"{what}: expected an object, got {got!r}")
    unknown = [repr(key) for key in got if key not in keys]
    missing = [repr(key) for key in keys if key not in got]
    if unknown or missing:
        faults = [f"{word} {', '.join(names)}" for word, names in (("unknown", unknown), ("missing", missing)) if names]
        raise SaveError(f"{what}: expected the keys {', '.join(keys)}, got {'; '.join(faults)}")


def _saved_start(cls: type[Game], saved: dict[str, Any]) -> Game:
    number, cards, start = saved["deal"]["number"], saved["deal"]["cards"], saved["start"]
    where = "rules"
    try:
        if not isinstance(saved["rules"]["preset"], str):
            raise SaveError(f"preset: expected a name, got {saved['rules']['preset']!r}")
        chosen = Rules(**saved["rules"])
        where = "deal"
        deal = Deal.parse(cards, chosen)
        if number is not None:
            if Deal.number(number, chosen) != deal:
                raise SaveError(f"number: expected the number of these cards or null, got {number}")
            deal = Deal(deal.cards, number)
        if start is None:
            return cls(deal, chosen)
        where = "start"
        _check_keys("position", start, POSITION_KEYS)
        return cls.from_state(deal, chosen, np.array(_start_from_json(start), np.int64))
    except PyramidError as error:
        raise SaveError(f"{where}: {error}") from error


def _start_from_json(start: dict[str, Any]) -> list[int]:
    values = []
    for key in POSITION_KEYS:
        value = start[key]
        if key in ("pyramid", "stock"):
            if not isinstance(value, str) or not re.fullmatch(r"0x[0-7]?[0-9a-f]{1,15}", value):
                raise SaveError(f"{key}: expected bits such as '0xfffffff', got {value!r}")
            value = int(value, 16)
        elif type(value) is not int or not 0 <= value <= np.iinfo(np.int8).max:
            raise SaveError(f"{key}: expected a small whole number, got {value!r}")
        values.append(value)
    return values


def _replay(game: Game, key: str, moves: Any) -> None:
    if not isinstance(moves, list):
        raise SaveError(f"{key}: expected a list of moves, got {moves!r}")
    for at, text in enumerate(moves):
        if not isinstance(text, str):
            raise SaveError(f"{key}[{at}]: expected a move as text, got {text!r}")
        try:
            game.play(text)
        except IllegalMoveError as error:
            raise SaveError(f"{key}[{at}]: {error}") from error
