"""Picture benchmark: drawings of a game a second on one core, by our own pixels, by SVG, and by SVG and a rasteriser.

    python benchmarks/bench_render.py [--rules TEXT ...] [--seconds S]

The positions of one random game are drawn again and again; each column is the fastest of three rounds. ``svg`` makes
the text, ``interactive`` that of a table in a page, ``rgb_array`` a (600, 800, 3) array with numpy, ``resvg`` the SVG
and of it an array of about that size (with the PNG between that resvg_py makes), which is what rgb_array would cost
through a rasteriser.
"""

from __future__ import annotations

import argparse
import io
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pyramid_env as pe
from pyramid_env import render
from pyramid_env.render.pixels import HEIGHT
from pyramid_env.render.svg import draw

PRESETS = ("pyramid", "till_dawn", "solitaire13_three_piles", "giza", "double_pyramid")
ROUNDS = 3


def positions(rules: str) -> list[pe.Game]:
    """A random game, position by position."""
    choose, game = random.Random(1), pe.Game(42, rules)
    games = [game.copy()]
    while not game.is_over and len(games) < 60:
        removals = [move for move in game.legal_moves if not move.is_draw]
        game.play(choose.choice(removals or list(game.legal_moves)))
        games.append(game.copy())
    return games


def rate(work: Callable[[pe.Game], Any], games: Sequence[pe.Game], seconds: float) -> float:
    """Calls a second, the fastest of some rounds, after one call for each game that warms the caches."""
    for game in games:
        work(game)
    best = 0.0
    for _ in range(ROUNDS):
        done, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds:
            work(games[done % len(games)])
            done += 1
        best = max(best, done / spent)
    return best


def rasterised() -> Callable[[pe.Game], Any] | None:
    """SVG to array by resvg; None where it is not installed."""
    try:
        import resvg_py
        from PIL import Image
    except ImportError:
        return None
    look = render.Appearance("light")

    def work(game: pe.Game) -> Any:
        text = draw(render.look(game), render.marks_of(game), look, outlined=True)
        data = bytes(resvg_py.svg_to_bytes(svg_string=text, height=HEIGHT, skip_system_fonts=True))
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rules", nargs="+", default=PRESETS, help="presets, or presets with switches")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each round")
    args = parser.parse_args()
    columns: dict[str, Callable[[pe.Game], Any] | None] = {
        "svg": render.svg,
        "interactive": lambda game: render.svg(game, interactive=True),
        "rgb_array": render.rgb_array,
        "resvg": rasterised(),
    }
    print(f"{'a second, one core':26}" + "".join(f"{name:>13}" for name in columns))
    for rules in args.rules:
        games = positions(rules)
        few = games[:: max(1, len(games) // 10)]
        cells = []
        for name, work in columns.items():
            told = "-" if work is None else f"{rate(work, few if name == 'resvg' else games, args.seconds):,.0f}"
            cells.append(f"{told:>13}")
        print(f"{rules:26}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
