"""Rules: the frozen switches that say which game is played, and the presets that name known games."""

from __future__ import annotations

import dataclasses
import difflib
import re
from dataclasses import dataclass, field
from typing import Any, Final

from pyramid_env.errors import RulesError

GOALS: Final = ("pyramid", "all")
SCORINGS: Final = ("par", "msc", "none")
UNLIMITED: Final = "unlimited"

MAX_STOCK: Final = 63
"""Stock cards are bits of a non-negative int64."""

PAR_BONUS: Final = (0, 50, 35, 20, 0)
"""Par points for the clear, indexed by the pass of the clear; 0 = never, 4 = any later pass."""

MSC_REMOVAL: Final = 5
MSC_ROWS: Final = (25, 50, 75, 100, 150, 250, 500)
"""msc points for emptying a row, from the bottom row up; rows above the seventh earn nothing (decided)."""

LAST_COUNTED_PASS: Final = 4
"""With unlimited passes the pass number stays here: no later pass changes a move or a score."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Which game is played. Every switch has the meaning of the rules document; the default is the preset ``pyramid``.

    Attributes:
        decks: 1 or 2.
        rows: rows of the pyramid, 2..9: rows * (rows + 1) / 2 cards; the rest is the stock, at most 63 cards.
        ranks: highest rank, odd, 5..13. Two cards whose ranks sum to it leave together; a card of it leaves alone.
        suits: 1..4.
        draw_count: cards turned by one draw, 1 or more.
        waste_piles: 1, or ``draw_count``; stock card k lies on pile k mod ``waste_piles``, in every pass (decided).
        predealt: stock cards turned to the waste before the first move.
        passes: passes through the stock in all: 1, 2, 3, or ``None`` (or ``"unlimited"``) for no limit.
        stock_top: the next stock card is face up and playable.
        pair_stock_waste: the stock's top and a waste top may leave together; needs ``stock_top``.
        pair_waste_two: the two uppermost cards of one waste pile may leave together.
        pair_waste_tops: the tops of two waste piles may leave together; needs two piles.
        overlap: a card may leave together with the only card that still covers it, if that one is exposed.
        goal: ``"pyramid"``: the clear wins and ends the game; ``"all"``: every card must leave, play goes on till then.
        end_on_exhausted: the game ends as soon as the stock of the last pass is empty.
        scoring: ``"par"``, ``"msc"`` or ``"none"`` (the score is then 1 for a win and 0 otherwise).
        match_games: games of a match; their scores are added.
        preset: the preset these rules come from, for printing; takes no part in comparisons.

    Raises:
        RulesError: for a switch of the wrong type or range, or switches that contradict each other, with the reason.
    """

    decks: int = 1
    rows: int = 7
    ranks: int = 13
    suits: int = 4
    draw_count: int = 1
    waste_piles: int = 1
    predealt: int = 0
    passes: int | None = 3
    stock_top: bool = False
    pair_stock_waste: bool = False
    pair_waste_two: bool = False
    pair_waste_tops: bool = False
    overlap: bool = False
    goal: str = "pyramid"
    end_on_exhausted: bool = False
    scoring: str = "par"
    match_games: int = 1
    preset: str = field(default="pyramid", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.passes, str) and self.passes == UNLIMITED:
            object.__setattr__(self, "passes", None)
        for switch in _COUNTS:
            _check_count(switch, getattr(self, switch))
        for switch in _FLAGS:
            if not isinstance(getattr(self, switch), bool):
                raise RulesError(f"{switch}: expected true or false, got {getattr(self, switch)!r}")
        for switch, values in (("goal", GOALS), ("scoring", SCORINGS)):
            if getattr(self, switch) not in values:
                raise RulesError(f"{switch}: expected one of {', '.join(values)}, got {getattr(self, switch)!r}")
        _check_consistent(self)

    @property
    def cards(self) -> int:
        """Cards of a deal."""
        return self.decks * self.ranks * self.suits

    @property
    def places(self) -> int:
        """Cards of the pyramid."""
        return self.rows * (self.rows + 1) // 2

    @property
    def stock_size(self) -> int:
        """Cards of the stock before the first move, those turned beforehand (``predealt``) included."""
        return self.cards - self.places

    @property
    def nothing_hidden(self) -> bool:
        """Every card lies face up from the first move on."""
        return self.predealt == self.stock_size

    @property
    def last_pass(self) -> int:
        """The highest pass number a position can have."""
        return LAST_COUNTED_PASS if self.passes is None else self.passes

    def replace(self, **switches: Any) -> Rules:
        """These rules with other values for some switches; unknown switches raise RulesError."""
        _check_names(switches)
        return dataclasses.replace(self, **switches)

    def to_dict(self) -> dict[str, Any]:
        """All switches and the preset's name, as JSON values; ``Rules(**d)`` reads them back."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """The preset's name and what differs from it, as :func:`rules` reads it: ``"microsoft:passes=1"``."""
        base = PRESETS.get(self.preset, Rules())
        changed = [
            f"{name}={_text(getattr(self, name))}" for name in _SWITCHES if getattr(self, name) != getattr(base, name)
        ]
        return f"{base.preset}:{','.join(changed)}" if changed else base.preset


_SWITCHES: Final = tuple(f.name for f in dataclasses.fields(Rules) if f.name != "preset")
_FLAGS: Final = ("stock_top", "pair_stock_waste", "pair_waste_two", "pair_waste_tops", "overlap", "end_on_exhausted")
_COUNTS: Final[dict[str, tuple[int, int]]] = {
    "decks": (1, 2),
    "rows": (2, 9),
    "ranks": (5, 13),
    "suits": (1, 4),
    "draw_count": (1, MAX_STOCK),
    "waste_piles": (1, MAX_STOCK),
    "predealt": (0, MAX_STOCK),
    "passes": (1, 3),
    "match_games": (1, 1000),
}


def _check_count(switch: str, value: object) -> None:
    low, high = _COUNTS[switch]
    if switch == "passes" and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        unlimited = f" or {UNLIMITED}" if switch == "passes" else ""
        raise RulesError(f"{switch}: expected a whole number from {low} to {high}{unlimited}, got {value!r}")


def _check_consistent(rules: Rules) -> None:
    """Raise for switches that are fine alone but not together; each line gives the reason."""
    stock = rules.stock_size
    reasons = (
        (rules.ranks % 2 == 0, f"ranks must be odd, so that no card pairs with its like; got {rules.ranks}"),
        (stock < 0, f"a pyramid of {rules.rows} rows needs {rules.places} cards, the deck has {rules.cards}"),
        (stock > MAX_STOCK, f"{rules.rows} rows leave a stock of {stock} cards; at most {MAX_STOCK} are supported"),
        (
            rules.waste_piles not in (1, rules.draw_count),
            f"waste_piles must be 1 or draw_count ({rules.draw_count}), got {rules.waste_piles}",
        ),
        (
            rules.draw_count > max(stock, 1),
            f"draw_count {rules.draw_count} is more than the stock of {stock} cards",
        ),
        (rules.predealt > stock, f"predealt {rules.predealt} is more than the stock of {stock} cards"),
        (rules.pair_stock_waste and not rules.stock_top, "pair_stock_waste needs stock_top: the stock is face down"),
        (rules.pair_waste_tops and rules.waste_piles < 2, "pair_waste_tops needs two waste piles or more"),
        (rules.end_on_exhausted and rules.passes is None, "end_on_exhausted needs a last pass: passes is unlimited"),
        (
            rules.end_on_exhausted and rules.passes == 1 and rules.nothing_hidden,
            f"end_on_exhausted would end the game before the first move: {rules.predealt} of {stock} stock cards are "
            "turned beforehand and there is one pass",
        ),
        (
            rules.end_on_exhausted and rules.goal == "all" and rules.passes == 1 and stock > 0 and not rules.stock_top,
            "end_on_exhausted with goal all and one pass can't be won: the last stock card is still on the waste when "
            "the game ends",
        ),
    )
    for wrong, reason in reasons:
        if wrong:
            raise RulesError(f"inconsistent rules: {reason}")


def _presets() -> dict[str, Rules]:
    both_tops = {"stock_top": True, "pair_stock_waste": True}
    double = {"decks": 2, "rows": 9}
    mini = {"ranks": 7, "suits": 2, "rows": 3}
    switches: dict[str, dict[str, Any]] = {
        "pyramid": {},
        "one_pass": {"passes": 1},
        "solitaire13": {"passes": 1},
        "solitaire13_three_piles": {"passes": 1, "draw_count": 3, "waste_piles": 3, "pair_waste_tops": True},
        "till_dawn": {**both_tops, "pair_waste_two": True, "goal": "all", "match_games": 6},
        "double_pyramid": {**double},
        "microsoft": {**both_tops, "scoring": "msc"},
        "classic": {**both_tops, "passes": 1, "goal": "all"},
        "pysol": {**both_tops, "goal": "all", "predealt": 1},
        "double_pyramid_pysol": {**both_tops, **double, "goal": "all", "predealt": 1},
        "tuts_tomb": {"draw_count": 3, "passes": None},
        "giza": {
            "draw_count": 8,
            "waste_piles": 8,
            "predealt": 24,
            "pair_waste_tops": True,
            "passes": 1,
            "goal": "all",
        },
        "overlap": {"passes": None, "overlap": True},
        "mini": {**mini},
        "mini_one_pass": {**mini, "passes": 1},
    }
    return {name: Rules(**chosen, preset=name) for name, chosen in switches.items()}


PRESETS: Final[dict[str, Rules]] = _presets()
"""The presets by name; the rules document says which known game each stands for."""


def rules(preset: str | Rules = "pyramid", **switches: Any) -> Rules:
    """The rules of a preset, with some switches changed.

    Args:
        preset: a preset's name, a text such as ``"microsoft:passes=1"`` (what ``str(rules)`` gives), or Rules.
        **switches: switches to change, as in :class:`Rules`.

    Raises:
        RulesError: unknown preset or switch (the nearest known one is named), or inconsistent switches.
    """
    if isinstance(preset, Rules):
        return preset.replace(**switches) if switches else preset
    if not isinstance(preset, str):
        raise RulesError(f"rules: expected a preset's name or Rules, got {type(preset).__name__}")
    name, _, changes = preset.partition(":")
    if name not in PRESETS:
        raise RulesError(f"unknown preset {name!r}{_nearest(name, PRESETS)}; known: {', '.join(PRESETS)}")
    read: dict[str, Any] = {}
    for change in changes.split(","):
        if change:
            switch, value = _read_change(change, preset)
            if switch in read:
                raise RulesError(f"expected each switch once, got {switch} twice in {preset!r}")
            read[switch] = value
    return PRESETS[name].replace(**{**read, **switches})


def _read_change(change: str, text: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in change.partition("="))
    if not equals:
        raise RulesError(f"expected switch=value, got {change!r} in {text!r}")
    if name not in _SWITCHES:
        _check_names([name])
        raise RulesError(f"expected a switch, got {name!r} in {text!r}")
    words = {"true": True, "on": True, "false": False, "off": False, UNLIMITED: None}
    if value.lower() in words:
        return name, words[value.lower()]
    return name, int(value) if re.fullmatch(r"-?[0-9]{1,9}", value) else value


def _check_names(names: Any) -> None:
    for name in names:
        if name not in _SWITCHES and name != "preset":
            raise RulesError(f"unknown switch {name!r}{_nearest(name, _SWITCHES)}; known: {', '.join(_SWITCHES)}")


def _nearest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _text(value: object) -> str:
    if value is None:
        return UNLIMITED
    return str(value).lower() if isinstance(value, bool) else str(value)
