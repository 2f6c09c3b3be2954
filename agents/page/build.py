"""Build: from what an evaluation found to the text of its page; nothing is counted anew here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from agents.base import Agent
from agents.bounds import DealBound
from agents.details import Comparison, Details, comparison_cells, comparison_notes, details_cells, details_notes
from agents.evaluation import GameRecord
from agents.page.meanings import COMPARISONS, DETAILS, HABITS, RESULTS, SPLIT
from agents.page.plots import Plot, difficulty_plot, learning_plot, pass_plot, regret_plots, score_plot
from agents.page.replays import DEAREST, Chosen, choose_games, replay_data, table_data
from agents.page.svg import colour, shape
from agents.regret import Regret, gap_notes, objective, regret_cells, regret_notes, unit
from agents.report import Row, footnotes, table_cells
from agents.seeds import Seeds, seeds_cells, seeds_notes
from pyramid_env.rules import Rules

_FOLDER: Final = Path(__file__).parent
_INTERVAL: Final = "95 %"


@dataclass(frozen=True)
class Report:
    """What a page tells: an evaluation that is complete.

    Attributes:
        rules: the game.
        rows, details, comparisons, regret: as the summary has them; regret is empty unless it was asked for.
        games: by agent, with their actions.
        bounds: of the deals, in their order; None without.
        lines: what was run, for people: the first says what, the second is the command.
        summary: the same as JSON values; the page carries it.
        agents: those that played, by the names of the games.
        curves: learning curves by agent, as far as there are any.
        replays: games to step through.
        seeds: the runs behind rows that stand for several.
        max_states, workers: of the solver, which rates their moves.
    """

    rules: Rules
    rows: Sequence[Row]
    details: Sequence[Details]
    comparisons: Sequence[Comparison]
    regret: Sequence[Regret]
    games: Mapping[str, Sequence[GameRecord]]
    bounds: Sequence[DealBound] | None
    lines: Sequence[str]
    summary: Mapping[str, Any]
    agents: Mapping[str, Agent]
    curves: Mapping[str, Sequence[Mapping[str, Any]]]
    replays: int
    seeds: Sequence[Seeds] = ()
    max_states: int | None = None
    workers: int | None = 1

    @property
    def best(self) -> dict[int, int]:
        """What each deal is worth by its bound, where that is proven."""
        wins = objective(self.rules) == "win"
        ends = {b.deal: (b.win_low, b.win_high) if wins else (b.score_low, b.score_high) for b in self.bounds or ()}
        return {deal: low for deal, (low, high) in ends.items() if low == high}


def page_text(report: Report) -> str:
    """The whole page."""
    chosen = choose_games(report.games, report.best, report.replays, report.rules)
    games = replay_data(
        chosen, report.rules, report.agents, max_states=report.max_states, workers=report.workers
    )  # fmt: skip
    parts = {
        "results": ("Results", _results(report)),
        "plots": ("Plots", _plots(report)),
        "details": ("Details", _details(report)),
        "pairs": ("Pairs of agents", _pairs(report)),
        "regret": ("Regret", _regret(report)),
        "replays": ("Replays", _replays(chosen, report, games)),
        "run": ("How it was run", _run(report)),
    }
    shown = {name: part for name, part in parts.items() if part[1]}
    deals = len(next(iter(report.games.values())))
    names = ", ".join(report.games)
    return Template(_read("template.html")).substitute(
        title=escape(f"{report.rules}: {names}"),
        heading=escape(names if len(names) < 80 else f"{len(report.games)} agents"),
        lead=escape(f"{deals:,} deals each · {report.lines[0]}"),
        nav="".join(f'<a href="#{name}">{escape(head)}</a>' for name, (head, _) in shown.items()),
        body="\n".join(_section(name, *part) for name, part in shown.items()),
        style=_read("style.css"),
        script=_read("page.js"),
        data=_json({"table": table_data(report.rules), "games": games}),
        summary=_json(report.summary),
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").rstrip()


def _json(value: Any) -> str:
    """JSON that no HTML parser takes for an end of the script it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _section(name: str, head: str, inside: str) -> str:
    return f'<section id="{name}"><h2>{escape(head)}</h2>\n{inside}\n</section>'


# ---- tables ----------------------------------------------------------------------------------------------------------


def _table(
    what: str,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    kinds: Sequence[str] = (),
    words: Iterable[str] = (),
) -> str:
    """A table; ``kinds`` are classes of its lines, ``words`` the heads of columns that hold words, not numbers."""
    left = {place for place, head in enumerate(heads) if head in set(words)}

    def cell(place: int, text: str) -> str:
        kind = "interval" if heads[place] == _INTERVAL else "words" if place in left else ""
        return f"<td{_class(kind)}>{escape(_minus(text))}</td>"

    top = "".join(
        f'<th scope="col"{_class("words" if place in left else "")}>{escape(head)}</th>'
        for place, head in enumerate(heads)
    )
    rows = []
    for number, (first, *others) in enumerate(lines):
        kind = _class(kinds[number] if kinds else "")
        cells = "".join(cell(place, text) for place, text in enumerate(others, 1))
        rows.append(f'<tr{kind}><th scope="row">{escape(first)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" role="region" aria-label="{escape(what)}" tabindex="0"><table>'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _minus(text: str) -> str:
    """With real minus signs, as wide as a plus."""
    return re.sub(r"(?<!\S)-(?=[0-9])", "−", text)


def _meanings(heads: Sequence[str], meanings: Mapping[str, str], notes: Sequence[str]) -> str:
    """A definition of every column, and what else there is to say. Notes that begin with what they are of,
    ``"regret: ..."``, are definitions too, before our own."""
    said, loose = {}, []
    for note in notes:
        of, colon, text = note.partition(": ")
        if colon and len(of) <= 40:
            said[of] = text
        else:
            loose.append(note)
    own = {head: meanings[head] for head in dict.fromkeys(heads) if head in meanings and head not in said}
    found = {**own, **said}
    every = {of: found[of] for of in [*dict.fromkeys(heads), *said] if of in found}  # in the order of the columns
    alike: dict[str, list[str]] = {}
    for of, text in every.items():
        if of in own or text not in own.values():
            alike.setdefault(text, []).append(of)
    terms = "".join(f"<dt>{escape(', '.join(ofs))}</dt><dd>{escape(text)}</dd>" for text, ofs in alike.items())
    return f'<dl class="meanings">{terms}</dl>' + "".join(f'<p class="note">{escape(note)}</p>' for note in loose)


def _results(report: Report) -> str:
    heads, lines = table_cells(report.rows)
    kinds = ["clairvoyant" if row.clairvoyant else "" for row in report.rows]
    unproven = sum(not bound.proven for bound in report.bounds or ())
    notes = footnotes(report.rows, report.rules, unproven=unproven)
    results = _table("Results", heads, lines, kinds=kinds)
    if report.seeds:
        results += "<h3>Training seeds</h3>" + _table("Training seeds", *seeds_cells(report.seeds))
    return results + _meanings(heads, RESULTS, [*notes, *seeds_notes(report.seeds)])


def _details(report: Report) -> str:
    heads, lines = details_cells(report.details)
    return _table("Details", heads, lines) + _meanings(heads, DETAILS, details_notes(report.details))


def _pairs(report: Report) -> str:
    if not report.comparisons:
        return ""
    heads, lines = comparison_cells(report.comparisons)
    return _table("Pairs of agents", heads, lines) + _meanings(heads, COMPARISONS, comparison_notes(report.comparisons))


def _regret(report: Report) -> str:
    proven = report.bounds is not None and all(bound.proven for bound in report.bounds)
    best = [bound.score_high for bound in report.bounds or ()] if proven else None
    gaps = gap_notes(report.games, best, report.rules)
    if not report.regret:
        return _meanings([], {}, gaps) if gaps else ""
    (split_heads, split), (habit_heads, habits) = regret_cells(report.regret)
    first = _table("Regret by pass and kind of move", split_heads, split)
    first += _meanings(split_heads, SPLIT, [*regret_notes(report.regret), *gaps])
    if not habits:
        return first
    words = ("made", "would have cost nothing")
    return (
        f"{first}<h3>Dear habits</h3>"
        + _table("Dear habits", habit_heads, habits, words=words)
        + _meanings(habit_heads, HABITS, [])
    )


def _run(report: Report) -> str:
    said, command, *more = report.lines
    switches = ", ".join(
        f"{name} {_spelt(value)}" for name, value in report.rules.to_dict().items() if name != "preset"
    )
    notes = "".join(f'<p class="note">{escape(line)}</p>' for line in [*more, f"Rules: {switches}."])
    return f"<p>{escape(said)}</p><pre>{escape(command)}</pre>{notes}"


def _spelt(value: object) -> str:
    return "unlimited" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ---- plots -----------------------------------------------------------------------------------------------------------


def _plots(report: Report) -> str:
    plots = [
        score_plot(report.games, report.bounds, [*report.rows, *(run for each in report.seeds for run in each.runs)]),
        difficulty_plot(report.details),
        pass_plot(report.details),
    ]
    plots += [*regret_plots(report.regret), learning_plot({name: report.curves.get(name, ()) for name in report.games})]
    order = list(report.games)
    return f'<div class="plots">{"".join(_figure(plot, order) for plot in plots if plot)}</div>'


def _figure(plot: Plot, order: Sequence[str]) -> str:
    legend = "".join(_key(each, order) for each in plot.legend)
    return (
        f"<figure><figcaption><h3>{escape(plot.heading)}</h3><p>{escape(plot.said)}</p></figcaption>"
        f'<div class="desk">{plot.wide}</div><div class="phone">{plot.narrow}</div>'
        + (f'<ul class="legend">{legend}</ul>' if legend else "")
        + "</figure>"
    )


def _key(each: str, order: Sequence[str]) -> str:
    """A line of a legend: an agent with its marker, or ``"class=words"``."""
    if each in order:
        kind, words, way = colour(order.index(each)), each, shape(order.index(each))
    else:
        kind, _, words = each.partition("=")
        way = "M-1-1H1V1H-1Z"
    icon = f'<svg viewBox="-1.3 -1.3 2.6 2.6" aria-hidden="true"><path d="{way}"/></svg>'
    return f'<li class="{kind}">{icon}<span>{escape(words)}</span></li>'


# ---- replays ---------------------------------------------------------------------------------------------------------


def _replays(chosen: Sequence[Chosen], report: Report, games: Sequence[Mapping[str, Any]]) -> str:
    if not chosen:
        return ""
    heads = ["game", "agent", "deal", "chosen for", "score", "bound", "moves"]
    lines = []
    for number, (each, told) in enumerate(zip(chosen, games, strict=True), 1):
        losses = [step[7] or 0 for step in told["steps"]]
        dearest = losses.index(max(losses)) + 1 if max(losses) and each.why == DEAREST else 1
        record = each.record
        bound = "–" if each.best is None else str(each.best)
        values = (record.deal, each.why, record.score, bound, record.steps)
        cells = "".join(
            f"<td{_class('words' if place == 1 else '')}>{escape(_minus(str(value)))}</td>"
            for place, value in enumerate(values)
        )
        link = f'<a href="#game={number}&amp;move={dearest}">game {number}</a>'
        lines.append(f'<tr><th scope="row">{link}</th><td class="words">{escape(record.agent)}</td>{cells}</tr>')
    left = ("agent", "chosen for")
    top = "".join(f'<th scope="col"{_class("words" if head in left else "")}>{head}</th>' for head in heads)
    return Template(_read("replays.html")).substitute(
        table=f'<div class="scroll games" role="region" aria-label="Chosen games" tabindex="0"><table><thead><tr>{top}'
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>",
        unit=unit(report.rules),
        hidden=" hidden" if report.rules.nothing_hidden else "",
    )
