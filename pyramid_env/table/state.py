"""State: what a page shows of a session, as JSON values; the page draws this and knows nothing else."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from pyramid_env import kernels
from pyramid_env.game import Game
from pyramid_env.moves import Move
from pyramid_env.render import marks_of, svg
from pyramid_env.render.spots import spots_of
from pyramid_env.render.view import look
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.table.store import Statistics

if TYPE_CHECKING:
    from pyramid_env.table.session import Session

SCORE_WORDS: Final = {"par": "par", "msc": "points", "none": ""}

TITLES: Final = {
    "pyramid": "Pyramid",
    "one_pass": "One pass",
    "solitaire13": "Solitaire 13",
    "solitaire13_three_piles": "Solitaire 13, three piles",
    "till_dawn": "Till Dawn",
    "double_pyramid": "Double pyramid",
    "microsoft": "Microsoft",
    "classic": "Classic",
    "pysol": "PySol",
    "double_pyramid_pysol": "Double pyramid, PySol",
    "tuts_tomb": "Tut's Tomb",
    "giza": "Giza",
    "overlap": "Overlap",
    "mini": "Mini",
    "mini_one_pass": "Mini, one pass",
}
"""What the list of presets calls them."""


def state_of(session: Session) -> dict[str, Any]:
    """What a page shows.

    Keys: ``version``, ``rules``, ``rules_text``, ``presets``, ``deal``, ``deal_text``, ``svg`` (empty in a pause, which
    hides the cards, as are moves and hint), ``moves`` (a list of ``spots`` and ``text``), ``draw`` (``"draw"``,
    ``"recycle"`` or null),
    ``can_undo``, ``can_redo``, ``over``, ``won``, ``score``, ``score_word``, ``pass_text``, ``cards_left``, ``made``
    (moves), ``elapsed_s``, ``running``, ``paused``, ``match``, ``message``, ``hint`` (spots), ``preferences``,
    ``statistics``, ``keeps``, ``watch``.
    """
    game = session.game
    view = look(game)
    legal = session.legal()
    paused = session.paused
    hint = () if session.hint is None or paused else spots_of(session.hint.move)
    marks = dataclasses.replace(marks_of(game), hinted=frozenset(hint))
    preferences = session.preferences
    match, statistics = _match(session), [_statistics(each) for each in session.statistics()]
    text, kind = _message(session)  # after what may fail to be read
    return {
        "version": session.version,
        "rules": str(session.rules),
        "rules_text": rules_words(session.rules),
        "presets": _presets(session),
        "deal": game.deal.deal_number if game.deal.deal_number is None else str(game.deal.deal_number),
        "deal_text": str(game.deal) if game.deal.deal_number is None else "",
        "svg": "" if paused else svg(game, appearance=preferences.appearance, marks=marks, interactive=True),
        "moves": [] if paused else [_move(session, move, spots) for move, spots in legal],
        "draw": game.describe(legal[-1][0]) if legal and legal[-1][0].is_draw else None,
        "can_undo": game.can_undo and not paused,
        "can_redo": game.can_redo and not paused,
        "over": game.is_over,
        "won": game.is_won,
        "score": game.score,
        "score_word": SCORE_WORDS[session.rules.scoring],
        "pass_text": view.pass_text,
        "cards_left": game.cards_left,
        "made": game.moves_made,
        "elapsed_s": session.clock.elapsed_s,
        "running": session.clock.is_running,
        "paused": paused,
        "match": match,
        "message": {"text": text.encode("utf-8", "replace").decode(), "kind": kind},  # paths may not be text
        "hint": list(hint),
        "preferences": {
            "theme": preferences.theme,
            "four_colours": preferences.four_colours,
            "large_cards": preferences.large_cards,
            "auto_pause": preferences.auto_pause,
            "favourites": list(preferences.favourites),
        },
        "statistics": statistics,
        "keeps": session.keeps and session.keeps_results,
        "watch": session.watching(),
    }


def rules_words(rules: Rules) -> str:
    """The rules in a sentence, for people who come from another game."""
    stock = "the stock's top card is face up and plays" if rules.stock_top else "the stock is face down"
    if rules.nothing_hidden and rules.passes == 1:
        stock = "all cards lie open"
    goal = "clear the pyramid" if rules.goal == "pyramid" else "remove all cards"
    passes = "as many passes as you like" if rules.passes is None else _count(rules.passes, "pass", "passes")
    through = "" if rules.nothing_hidden and rules.passes == 1 else f", {passes} through it"
    parts = [f"Make {rules.ranks}: {goal}", f"{stock}{through}"]
    if rules.draw_count > 1 and through:
        where = f"{rules.waste_piles} piles" if rules.waste_piles > 1 else "one pile"
        parts.append(f"a draw turns {rules.draw_count} cards onto {where}")
    if rules.pair_stock_waste:
        parts.append("it may pair with the waste's top")
    if rules.end_on_exhausted:
        parts.append("the game ends with the last card of the stock")
    if rules.pair_waste_two:
        parts.append("the two uppermost waste cards may pair")
    if rules.pair_waste_tops:
        parts.append("tops of two piles may pair")
    if rules.overlap:
        parts.append("a card may go with its only cover")
    return "; ".join(parts) + "."


def _message(session: Session) -> tuple[str, str]:
    """What to say where nothing special happened: how it ended, or that only drawing is left."""
    if session.message is not None:
        return session.message.text, session.message.kind
    game = session.game
    if session.paused:
        return "Paused. The board is hidden and the clock stands.", "info"
    if game.is_won:
        took = f"Won in {clock_words(session.clock.elapsed_s)} with {_count(game.moves_made, 'move')}."
        return took + _match_words(session), "good"
    if game.is_over:
        cleared = "The pyramid is cleared. " if game.cleared_in else ""
        next_steps = "Undo leads back, Restart deals the same cards again, New deals others."
        return f"{cleared}{_why_over(game)} {next_steps}{_match_words(session)}", "info"
    if _all_known(session) and game.is_stuck:
        return (
            "No removal is possible any more, whatever is drawn. Undo leads back, Restart or New begin again.",
            "info",
        )
    if not game.can_undo and not session.helped:
        return rules_words(session.rules), "info"
    return "", "info"


def _why_over(game: Game) -> str:
    """Why a game that is not won has ended."""
    left = f"{game.cards_left} {'card remains' if game.cards_left == 1 else 'cards remain'}"
    pyramid, stock, cursor, pass_number, _ = game.state.tolist()
    if kernels.is_finished(kernels.table(game.rules), pyramid, stock, cursor, pass_number):
        return f"The stock is exhausted, which ends the game: {left}."
    if game.rules.passes is None and stock:
        return f"No moves left, and no run through the stock would bring one: {left}."
    return f"No moves left, {left}."


def _match_words(session: Session) -> str:
    """How a match has ended, if it has with this game."""
    match = session.match()
    if match is None or not (match.is_complete and session.has_result):
        return ""
    return f" Match {match.number}: {match.total}, {'par or better' if match.is_par else 'below par'}."


def _all_known(session: Session) -> bool:
    """Has the player seen every card? Only then may be said that a game is lost."""
    game = session.game
    if game.rules.draw_count > game.rules.waste_piles:  # cards are turned under others
        return False
    return game.pass_number > 1 or int(game.state[kernels.CURSOR]) == game.rules.stock_size


def clock_words(seconds: float) -> str:
    """``"3:07"``, ``"1:02:09"``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _move(session: Session, move: Move, spots: tuple[str, ...]) -> dict[str, Any]:
    return {"spots": list(spots), "text": session.game.describe(move), "draw": move.is_draw}


def _presets(session: Session) -> list[dict[str, Any]]:
    """Favourites first; rules that are no preset stand in the list while they are played."""
    names = list(PRESETS)
    liked = [name for name in session.preferences.favourites if _is_rules(name)]
    others = [name for name in names if name not in liked]
    now = str(session.rules)
    if now not in liked and now not in others:
        others.insert(0, now)
    return [{"rules": name, "title": TITLES.get(name, name), "favourite": name in liked} for name in (*liked, *others)]


def _is_rules(text: str) -> bool:
    try:
        read_rules(text)
    except ValueError:
        return False
    return True


def _match(session: Session) -> dict[str, Any] | None:
    """The match that the running game belongs to: a new one begins with the first deal after a complete one."""
    match = session.match()
    if match is None:
        return None
    begins = match.is_complete and not session.has_result
    scores = [] if begins else list(match.scores)
    return {
        "number": match.number + begins, "games": match.games, "game": max(1, len(scores) + (not session.has_result)),
        "scores": scores, "total": sum(scores), "complete": match.is_complete and not begins, "par": match.is_par,
    }  # fmt: skip


def _statistics(each: Statistics) -> dict[str, Any]:
    return {
        "rules": each.rules,
        "title": TITLES.get(each.rules, each.rules),
        "played": each.played,
        "won": each.won,
        "helped": each.helped,
        "share": each.share,
        "best_time": None if each.best_time_s is None else clock_words(each.best_time_s),
        "current_streak": each.current_streak,
        "longest_streak": each.longest_streak,
        "average_par": each.average_par,
        "average_msc": each.average_msc if _scoring(each.rules) == "msc" else None,
    }


def _scoring(text: str) -> str:
    return read_rules(text).scoring if _is_rules(text) else "par"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
