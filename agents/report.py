"""Report: from records and bounds to one table, with every column defined below it, and a JSON summary."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from agents.bounds import DealBound
from agents.evaluation import GameRecord, replace_file
from agents.statistics import Estimate, mean_t, wilson
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules

BOUND: Final = "bound"
UNKNOWN: Final = "–"
FORMAT_VERSION: Final = 1

Counts = NDArray[np.int64]


class Span(NamedTuple):
    """A figure counted both ways where bounds are not proven; the ends are equal where all are."""

    low: float
    high: float


class Measured(NamedTuple):
    """A figure with its interval. An unproven bound is counted both ways: ``value`` has two ends, and the interval
    covers both."""

    value: Span
    interval: Span


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: the agent's name, or ``"bound"``.
        clairvoyant: it sees hidden cards: a bound, which no legal player has to reach.
        games: games played, or deals bounded.
        wins: share of games won, with Wilson's interval.
        score: mean score, with Student's t interval.
        match_total: mean total of a match, where the rules play matches: consecutive deals of the run, an
            incomplete last one left out.
        matches_at_par: share of these matches with a total of zero or more, with Wilson's interval; where par is
            scored.
        of_winnable: games won as a share of the deals that can be won.
        of_points: mean points above the lowest possible score, as a share of the bound's. The lowest score is
            -cards where par is scored (so the points are the cards removed plus the bonus), else 0.
        regret: mean over the deals of the bound's score less the score.
        truncated: games stopped by the step limit.
        seconds: time taken; the bound's is the solver's, whenever it ran.
    """

    name: str
    clairvoyant: bool
    games: int
    wins: Measured
    score: Measured
    match_total: Measured | None
    matches_at_par: Measured | None
    of_winnable: Span | None
    of_points: Span | None
    regret: Span | None
    truncated: int
    seconds: float


def agent_row(
    records: Sequence[GameRecord], rules: Rules, *, clairvoyant: bool = False, bounds: Sequence[DealBound] | None = None
) -> Row:
    """What one agent's games come to; ``bounds`` are those of the same deals in the same order.

    Raises:
        PyramidError: no records, or bounds of other deals.
    """
    won = np.array([record.won for record in records], np.int64)
    score = np.array([record.score for record in records], np.int64)
    of_winnable = of_points = regret = None
    if bounds is not None:
        if [bound.deal for bound in bounds] != [record.deal for record in records]:
            raise PyramidError("report: expected the bounds of the same deals in the same order")
        ends = _ends(bounds)
        of_winnable = _share(won, ends.win_low, ends.win_high)
        of_points = _share(score - _floor(rules), ends.score_low - _floor(rules), ends.score_high - _floor(rules))
        regret = Span(float(np.mean(ends.score_low - score)), float(np.mean(ends.score_high - score)))
    return Row(
        name=records[0].agent,
        clairvoyant=clairvoyant,
        games=len(records),
        wins=_share_won(won, won),
        score=_mean(score, score),
        **_match_figures(score, score, rules),
        of_winnable=of_winnable,
        of_points=of_points,
        regret=regret,
        truncated=sum(record.truncated for record in records),
        seconds=sum(record.seconds for record in records),
    )


def bound_row(bounds: Sequence[DealBound], rules: Rules) -> Row:
    """The bound's own line: what a player who sees every card is proven to reach."""
    ends = _ends(bounds)
    return Row(
        name=BOUND,
        clairvoyant=True,
        games=len(bounds),
        wins=_share_won(ends.win_low, ends.win_high),
        score=_mean(ends.score_low, ends.score_high),
        **_match_figures(ends.score_low, ends.score_high, rules),
        of_winnable=Span(1.0, 1.0) if ends.win_high.any() else None,
        of_points=Span(1.0, 1.0),
        regret=Span(0.0, 0.0),
        truncated=0,
        seconds=sum(bound.seconds for bound in bounds),
    )


class _Ends(NamedTuple):
    """Proven ends of the bounds, one number a deal."""

    win_low: Counts
    win_high: Counts
    score_low: Counts
    score_high: Counts


def _ends(bounds: Sequence[DealBound]) -> _Ends:
    return _Ends(*(np.array([getattr(bound, name) for bound in bounds], np.int64) for name in _Ends._fields))


def _floor(rules: Rules) -> int:
    """The lowest score a game can end with."""
    return -rules.cards if rules.scoring == "par" else 0


def _share(ours: Counts, low: Counts, high: Counts) -> Span | None:
    """Our sum as a share of the bound's sum, which lies from ``low`` to ``high``; None where that can be nothing."""
    return Span(float(ours.sum() / high.sum()), float(ours.sum() / low.sum())) if low.sum() > 0 else None


def _measured(low: Estimate, high: Estimate) -> Measured:
    return Measured(Span(low.value, high.value), Span(low.low, high.high))


def _share_won(low: Counts, high: Counts) -> Measured:
    return _measured(*(wilson(int(ends.sum()), ends.size) for ends in (low, high)))


def _mean(low: Counts, high: Counts) -> Measured:
    return _measured(mean_t(low), mean_t(high))


def _match_figures(low: Counts, high: Counts, rules: Rules) -> dict[str, Measured | None]:
    games = rules.match_games
    matches = low.size // games if games > 1 else 0
    if not matches:
        return {"match_total": None, "matches_at_par": None}
    totals = [ends[: matches * games].reshape(matches, games).sum(axis=1) for ends in (low, high)]
    at_par = _share_won(*((total >= 0).astype(np.int64) for total in totals)) if rules.scoring == "par" else None
    return {"match_total": _mean(*totals), "matches_at_par": at_par}


# ---- the table -------------------------------------------------------------------------------------------------------


def table_cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells; columns that no row fills (no bound, no matches) are left out."""
    columns: list[tuple[str, list[str]]] = [
        ("agent", [row.name + (" (clairvoyant)" if row.clairvoyant else "") for row in rows]),
        ("wins %", [_percent(row.wins.value) for row in rows]),
        ("95 %", [_percent(row.wins.interval) for row in rows]),
        ("score", [_number(row.score.value) for row in rows]),
        ("95 %", [_number(row.score.interval) for row in rows]),
        ("match", [_number(row.match_total and row.match_total.value) for row in rows]),
        ("at par %", [_percent(row.matches_at_par and row.matches_at_par.value) for row in rows]),
        ("% of winnable", [_percent(row.of_winnable) for row in rows]),
        ("% of points", [_percent(row.of_points) for row in rows]),
        ("regret", [_number(row.regret) for row in rows]),
        ("games", [f"{row.games:,}" for row in rows]),
        ("seconds", [f"{row.seconds:.1f}" for row in rows]),
    ]
    shown = [(head, cells) for head, cells in columns if any(cell != UNKNOWN for cell in cells)]
    return [head for head, _ in shown], [list(line) for line in zip(*(cells for _, cells in shown), strict=True)]


def _percent(span: Span | None) -> str:
    return UNKNOWN if span is None else _between(*(f"{100 * end:.{2 if end < 0.01 else 1}f}" for end in span))


def _number(span: Span | None) -> str:
    if span is None or not (math.isfinite(span.low) and math.isfinite(span.high)):
        return UNKNOWN
    return _between(f"{span.low:.1f}", f"{span.high:.1f}")


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} .. {high}"


def footnotes(rows: Sequence[Row], rules: Rules, *, unproven: int) -> list[str]:
    """What the columns mean, and what a reader must know of these rows."""
    notes = ["95 %: intervals, Wilson's for wins, Student's t for means."]
    if any(row.match_total for row in rows):
        at_par = "; at par: matches of zero or more" if any(row.matches_at_par for row in rows) else ""
        notes.append(f"match: mean total of {rules.match_games} consecutive deals{at_par}.")
    if any(row.regret for row in rows):
        lowest = _floor(rules)
        notes += [
            "bound: the best play with every card known; no legal player has to reach it.",
            "% of winnable: games won, as a share of the deals that can be won.",
            f"% of points: mean score above the lowest possible ({lowest}), as a share of the bound's.",
            "regret: the bound's score less the agent's, mean over the deals.",
        ]
    if unproven:
        notes.append(
            f"{unproven:,} deals met the solver's limits; they are counted both ways: a figure 'a .. b' has both ends."
        )
    notes += [
        f"{row.name}: {row.truncated:,} games stopped by the step limit; not won, scored as they stood."
        for row in rows
        if row.truncated
    ]
    return notes


Cells = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Heads and lines of a table."""


def print_table(
    rows: Sequence[Row], notes: Sequence[str], *, more: Sequence[Cells] = (), console: Console | None = None
) -> None:
    """Print the table, more tables below it, and the notes; aligned plain text, unwrapped, where the output is no
    terminal."""
    console = console or Console()
    tables: list[Cells] = [table_cells(rows), *more]
    if not console.is_terminal:
        texts = [plain_table(heads, lines) for heads, lines in tables] + ["\n".join(notes)]
        console.file.write("\n\n".join(texts) + "\n")
        return
    for place, (heads, lines) in enumerate(tables):
        table = Table(box=box.SIMPLE_HEAD)
        for number, head in enumerate(heads):
            table.add_column(head, justify="right" if number else "left")
        for number, line in enumerate(lines):
            table.add_row(*line, style="dim" if not place and rows[number].clairvoyant else None)
        console.print(table)
    for note in notes:
        console.print(note, style="dim", markup=False, highlight=False)


def plain_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]

    def joined(cells: Sequence[str]) -> str:
        return "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))

    return "\n".join([joined(heads), "  ".join("-" * width for width in widths), *map(joined, lines)])


def markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table, as a leaderboard shows it."""

    def joined(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"

    return "\n".join([joined(heads), f"|{'---|' * len(heads)}", *map(joined, lines)])


# ---- the summary -----------------------------------------------------------------------------------------------------


def write_summary(path: Path, rows: Sequence[Row], run: dict[str, Any], **more: Any) -> None:
    """Write rows, what identifies the run, and more, as JSON, in one piece; an infinite end of an interval is null."""
    summary = {"format": FORMAT_VERSION, **run, "rows": [json_row(asdict(row)) for row in rows], **json_row(more)}
    replace_file(path, json.dumps(summary, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def read_summary(path: Path) -> dict[str, Any]:
    """Read what :func:`write_summary` wrote; PyramidError if there is none or it cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PyramidError(f"{path}: no such file; an evaluation writes it as soon as games have finished") from None
    except (OSError, ValueError) as error:
        raise PyramidError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT_VERSION:
        raise PyramidError(f"{path}: expected the summary of an evaluation, format {FORMAT_VERSION}")
    return found


def json_row(value: Any) -> Any:
    """The value with named tuples as objects and infinities as null."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: json_row(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_row(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
