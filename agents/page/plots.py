"""Plots of a page: scores beside the bound, wins by class of the deal, clears by pass, regret, learning curves.

Each is drawn twice, for a desk and for a phone, and the style sheet shows the one that fits: text scaled down with its
picture could not be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from agents.bounds import DealBound
from agents.details import PASSES, Details
from agents.evaluation import GameRecord
from agents.page.svg import LETTER, Picture, colour, dash, spelt, ticks
from agents.regret import KINDS, Regret
from agents.report import Row

WIDE: Final = 520
NARROW: Final = 340
"""Widths in pixels."""

_BINS: Final = 40
_CLASSES: Final = ("easy", "medium", "hard")
_ROW: Final = 58.0
_BAR: Final = 9.0


class Plot(NamedTuple):
    """A plot: a heading, a sentence that says how to read it, the picture for a desk and for a phone, and the agents
    that need a legend."""

    heading: str
    said: str
    wide: str
    narrow: str
    legend: tuple[str, ...] = ()


def _both(draw: Callable[[float], Picture]) -> tuple[str, str]:
    return str(draw(WIDE)), str(draw(NARROW))


# ---- scores ----------------------------------------------------------------------------------------------------------


def score_plot(
    games: Mapping[str, Sequence[GameRecord]], bounds: Sequence[DealBound] | None, rows: Sequence[Row]
) -> Plot:
    """How the scores of each agent's games are spread, before those of the bound; means are those of the rows."""
    means = {row.name: row.score.value.low for row in rows}
    scores = {name: np.array([record.score for record in records]) for name, records in games.items()}
    best = None if bounds is None else np.array([bound.score_low for bound in bounds])
    every = np.concatenate([*scores.values(), *([] if best is None else [best])])
    low, high = int(every.min()), int(every.max())
    step = max(1, math.ceil((high - low + 1) / _BINS))
    edges = np.arange(low, high + step + 1, step)
    shares = {name: np.histogram(each, edges)[0] / each.size for name, each in scores.items()}
    behind = None if best is None else np.histogram(best, edges)[0] / best.size
    most = max(float(each.max()) for each in [*shares.values(), *([] if behind is None else [behind])])
    bins = f"{step} points wide" if step > 1 else "one point wide"

    def draw(width: float) -> Picture:
        left, right, top = 40.0, width - 12, 8.0
        height = top + _ROW * 1.35 * len(scores) + 44
        told = "; ".join(f"{name}: mean {means[name]:.1f}" for name in scores)
        picture = Picture(width, height, f"Distribution of scores. {told}")
        across = (right - left) / (edges[-1] - edges[0])
        marks = [(left + (tick - edges[0]) * across, spelt(tick)) for tick in ticks(low, high + 1, round(width / 75))]
        picture.across(marks, top, height - 44, "score at the end of the game, points")
        for number, (name, each) in enumerate(shares.items()):
            base = top + _ROW * 1.35 * (number + 1)
            tall = _ROW / most

            def points(values: Any, base: float = base, tall: float = tall) -> list[tuple[float, float]]:
                xs = left + (edges - edges[0]) * across
                way = [(xs[0], base)]
                for k, value in enumerate(values):
                    way += [(xs[k], base - value * tall), (xs[k + 1], base - value * tall)]
                return [*way, (xs[-1], base)]

            picture.path(points(each), f"area {colour(number)}", f"{name}: {len(scores[name]):,} games")
            if behind is not None:
                picture.path(points(behind), "outline", f"bound: {len(best) if best is not None else 0:,} deals")
            mean = left + (means[name] - edges[0]) * across
            picture.line(mean, base - _ROW, mean, base, f"mean {colour(number)}")
            picture.line(left, base, right, base, "axis")
            picture.text(left - 6, base + 3, "0", anchor="end")
            picture.text(left - 6, base - _ROW + 4, f"{100 * most:.0f} %", anchor="end")
            mean_text = f" · mean {means[name]:.1f}".replace("-", "−")
            picture.text(left + 4, base - _ROW - 4, shortened(name, right - left - 90) + mean_text, kind="name")
        return picture

    bound = "" if behind is None else " The grey outline is the bound: the best score of each deal, all cards known."
    said = f"Share of the games by final score, in bins {bins}; the upright line is the mean.{bound}"
    return Plot("Scores", said, *_both(draw))


# ---- wins by class ---------------------------------------------------------------------------------------------------


def difficulty_plot(details: Sequence[Details]) -> Plot | None:
    """Win rates by class of the deal; None where deals have no class."""
    kinds = [kind for kind in _CLASSES if any(kind in each.by_difficulty for each in details)]
    if not kinds:
        return None

    def draw(width: float) -> Picture:
        left, right, top, bottom = 40.0, width - 8, 34.0, 250.0
        told = "; ".join(
            f"{each.name}: " + ", ".join(f"{k} {100 * each.by_difficulty[k].wins.value:.1f} %" for k in kinds)
            for each in details
        )
        picture = Picture(width, bottom + 44, f"Wins by class of the deal. {told}")
        picture.upward(
            [(_y(v / 100, top, bottom), spelt(v)) for v in range(0, 101, 20)], left, right, "wins, % of games"
        )
        room = (right - left) / len(kinds)
        for place, kind in enumerate(kinds):
            centre = left + room * (place + 0.5)
            games = details[0].by_difficulty[kind].games
            picture.text(centre, bottom + 18, kind, anchor="middle", kind="name")
            picture.text(centre, bottom + 34, f"{games:,} deal{'s' * (games != 1)}", anchor="middle")
            step = min(26.0, room * 0.8 / len(details))
            for number, each in enumerate(details):
                wins = each.by_difficulty[kind].wins
                x = centre + (number - (len(details) - 1) / 2) * step
                said = f"{each.name}, {kind}: {_percent(wins.value)} % ({_percent(wins.low)} .. {_percent(wins.high)})"
                picture.line(x, _y(wins.low, top, bottom), x, _y(wins.high, top, bottom), f"whisker {colour(number)}")
                picture.marker(x, _y(wins.value, top, bottom), number, said)
        return picture

    said = "Share of the games won on easy, medium and hard deals, with 95 % intervals (Wilson's)."
    return Plot("Wins by difficulty", said, *_both(draw), tuple(each.name for each in details))


def _y(share: float, top: float, bottom: float) -> float:
    return bottom - share * (bottom - top)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


# ---- clears by pass --------------------------------------------------------------------------------------------------


def pass_plot(details: Sequence[Details]) -> Plot:
    """In which pass the pyramid was cleared: one bar an agent."""
    shown = [name for name in PASSES if any(each.cleared[name] for each in details)]

    def draw(width: float) -> Picture:
        left, right, top = 12.0, width - 14, 4.0
        height = top + 44 * len(details) + 44
        told = "; ".join(f"{each.name}: {_cleared(each)}" for each in details)
        picture = Picture(width, height, f"Clears by pass. {told}")
        wide = right - left
        marks = [(left + wide * v / 100, spelt(v)) for v in range(0, 101, 20)]
        picture.across(marks, top, height - 44, "share of all games, %")
        for number, each in enumerate(details):
            y, x = top + 44 * number, left
            picture.text(left, y + 14, shortened(each.name, wide), kind="name")
            left_over = 1.0 - sum(each.cleared.values())
            parts = [(f"pass {name}" if name != "later" else "later", each.cleared[name], f"p{name}") for name in shown]
            for name, share, kind in [*parts, ("not cleared", left_over, "pnone")]:
                said = f"{each.name}, {name}: {_percent(share)} %"
                picture.bar(x, y + 20, wide * share, 18, f"part {kind}", said)
                if wide * share > 40:
                    picture.text(x + wide * share / 2, y + 33, _percent(share), anchor="middle", kind=f"on-{kind}")
                x += wide * share
        return picture

    names = [f"pass {name}" if name != "later" else "later" for name in shown]
    keys = tuple(f"p{name}={label}" for name, label in zip(shown, names, strict=True))
    said = "Share of the games whose pyramid was cleared, by the pass in which its last card left."
    return Plot("Clears by pass", said, *_both(draw), (*keys, "pnone=not cleared"))


def _cleared(each: Details) -> str:
    return ", ".join(f"pass {name} {_percent(share)} %" for name, share in each.cleared.items() if share) or "none"


# ---- regret ----------------------------------------------------------------------------------------------------------


def regret_plots(every: Sequence[Regret]) -> list[Plot]:
    """Where regret comes from: by pass, and by kind of the move made."""
    passes = sorted({name for each in every for name in each.by_pass})
    kinds = [name for name in KINDS.values() if any(name in each.by_kind for each in every)]
    if not passes:
        return []
    by_pass = [(f"pass {name}", [each.by_pass.get(name, 0.0) for each in every]) for name in passes]
    by_kind = [(name, [each.by_kind.get(name, 0.0) for each in every]) for name in kinds]
    names, unit = [each.name for each in every], every[0].unit
    return [
        _bars("Regret by pass", f"What moves lost for good, in {unit} a game, by the pass they were made in.",
              by_pass, names, unit),
        _bars("Regret by kind of move", f"The same {unit}, by the kind of the move that lost them.",
              by_kind, names, unit),
    ]  # fmt: skip


def _bars(
    heading: str, said: str, groups: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], unit: str
) -> Plot:
    """Groups of horizontal bars, one an agent."""
    most = max(value for _, values in groups for value in values)

    def draw(width: float) -> Picture:
        each = 26 + (_BAR + 3) * len(names)
        left, right, top = 12.0, width - 52, 2.0
        height = top + each * len(groups) + 44
        told = "; ".join(f"{group}: " + ", ".join(f"{n} {v:.2f}" for n, v in zip(names, values, strict=True))
                         for group, values in groups)  # fmt: skip
        picture = Picture(width, height, f"{heading}, {unit} a game. {told}")
        scale = (right - left) / most
        marks = [(left + tick * scale, spelt(tick)) for tick in ticks(0, most, 6)]
        picture.across(marks, top, height - 44, f"{unit} a game")
        for place, (group, values) in enumerate(groups):
            y = top + each * place
            picture.text(left, y + 15, group, kind="name")
            for number, (name, value) in enumerate(zip(names, values, strict=True)):
                at = y + 20 + (_BAR + 3) * number
                picture.bar(left, at, value * scale, _BAR, f"part {colour(number)}", f"{name}, {group}: {value:.2f}")
                picture.text(left + value * scale + 4, at + _BAR - 0.5, f"{value:.2f}", kind="small")
        return picture

    return Plot(heading, said, *_both(draw), tuple(names))


# ---- learning --------------------------------------------------------------------------------------------------------


def learning_plot(curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> Plot | None:
    """How win rates grew in training; None without a curve. A curve is a list of evaluations (agents.run_folder)."""
    drawn = {name: curve for name, curve in curves.items() if curve}
    if not drawn:
        return None
    order = list(curves)
    last = max(point["steps"] for curve in drawn.values() for point in curve)
    best = max(point["win_rate"] for curve in drawn.values() for point in curve)
    unit, scale = ("million steps", 1e6) if last >= 1e6 else ("thousand steps", 1e3) if last >= 1e3 else ("steps", 1.0)

    def draw(width: float) -> Picture:
        left, right, top, bottom = 40.0, width - 16, 34.0, 250.0
        told = "; ".join(f"{name}: {_percent(curve[-1]['win_rate'])} % at the end" for name, curve in drawn.items())
        picture = Picture(width, bottom + 44, f"Learning curves. {told}")
        across = (right - left) / max(last, 1)
        levels = ticks(0, max(100 * best, 1e-6), 6)
        levels.append(round(2 * levels[-1] - levels[-2], 10) if levels[-1] < 100 * best else levels[-1])
        high = levels[-1]
        picture.upward([(_y(v / high, top, bottom), spelt(v)) for v in dict.fromkeys(levels)], left, right, "wins, %")
        marks = [(left + v * scale * across, spelt(v)) for v in ticks(0, last / scale, round(width / 75))]
        picture.across(marks, top, bottom, f"trained for, {unit}")
        for name, curve in drawn.items():
            number = order.index(name)
            points = [(left + p["steps"] * across, _y(100 * p["win_rate"] / high, top, bottom)) for p in curve]
            picture.path(points, f"curve {colour(number)}", name, dash=dash(number))
            for point, (x, y) in zip(curve, points, strict=True):
                said = f"{name}: {point['steps']:,} steps, {_percent(point['win_rate'])} % of {point['games']:,} games"
                picture.marker(x, y, number, said, 3)
        return picture

    said = "Share of the evaluation deals won during training, as each run measured it."
    return Plot("Learning curves", said, *_both(draw), tuple(drawn))


def shortened(name: str, width: float) -> str:
    """A name cut to so many pixels."""
    most = max(4, int(width / LETTER))
    return name if len(name) <= most else f"{name[: most - 1]}…"
