"""Results of finished games, and what is made of them: statistics and matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from pyramid_env.errors import PyramidError


@dataclass(frozen=True)
class Result:
    """How one attempt at a deal ended. Attempts are told apart by a text that their maker chose."""

    attempt: str
    rules: str
    deal: str
    won: bool
    score: int
    par: int
    msc: int
    seconds: float
    moves: int
    helped: bool
    """The solver or an agent helped."""
    finished: float
    """Unix time, s."""

    def betters(self, other: Result) -> bool:
        """A win betters a loss, whatever the scores, and a win without help one with help; else the higher score."""
        return self._worth > other._worth

    @property
    def _worth(self) -> tuple[bool, bool, int]:
        return self.won, self.won and not self.helped, self.score


@dataclass(frozen=True)
class Statistics:
    """All results of one game's rules, in sum. A mean or a best of nothing is None."""

    rules: str
    played: int
    won: int
    helped: int
    """Wins with the help of the solver or an agent; they count as won, also in streaks."""
    best_time_s: float | None
    """Of the wins without help."""
    current_streak: int
    """Wins in a row up to the newest result."""
    longest_streak: int
    average_par: float | None
    average_msc: float | None

    @property
    def share(self) -> float | None:
        """Won of played, 0..1."""
        return self.won / self.played if self.played else None


@dataclass(frozen=True)
class Match:
    """Several games in a row whose par scores are added up, as in Till Dawn."""

    number: int
    """1 is the first match."""
    scores: tuple[int, ...]
    """Par scores of the games that are finished, in order."""
    games: int
    """Length of a match."""

    @property
    def total(self) -> int:
        """Of the games that are finished."""
        return sum(self.scores)

    @property
    def is_complete(self) -> bool:
        """All games are finished."""
        return len(self.scores) == self.games

    @property
    def is_par(self) -> bool:
        """Complete, with a total of zero or more."""
        return self.is_complete and self.total >= 0


def statistics_of(rules: str, results: Sequence[Result]) -> Statistics:
    """Of these results, in their order."""
    wins = [result for result in results if result.won]
    streaks = _streaks(result.won for result in results)
    return Statistics(
        rules=rules,
        played=len(results),
        won=len(wins),
        helped=sum(win.helped for win in wins),
        best_time_s=min((win.seconds for win in wins if not win.helped), default=None),
        current_streak=streaks[-1],
        longest_streak=max(streaks),
        average_par=fmean(result.par for result in results) if results else None,
        average_msc=fmean(result.msc for result in results) if results else None,
    )


def _streaks(won: Iterable[bool]) -> list[int]:
    """The streak before the first game and after every game."""
    streaks = [0]
    for win in won:
        streaks.append(streaks[-1] + 1 if win else 0)
    return streaks


def match_of(scores: Sequence[int], games: int) -> Match:
    """The running match: a complete one runs until the next result."""
    if games < 1:
        raise PyramidError(f"games of a match: expected 1 or more, got {games}")
    complete = max(0, len(scores) - 1) // games  # before the running one
    return Match(complete + 1, tuple(scores[complete * games :]), games)
