"""Style sheet of the SVG: colours of a theme by class names, which all begin with ``pyr-``.

An SVG inside a page shares its style sheet with the page and with every other SVG there. So nothing is set by id or by
element name, and all rules of a theme hang on the class of the root: pictures of several looks can stand side by side.
Selectors are simple enough for rasterisers: classes, children and descendants.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pyramid_env.render.appearance import DARK, Appearance, Palette

FONT: Final = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',Verdana,Arial,sans-serif"

_SHAPES: Final = f"""\
.pyr-label{{font-family:{FONT};font-weight:500}}
.pyr-rank,.pyr-pen,.pyr-strokes{{fill:none;stroke-linecap:round;stroke-linejoin:round}}
.pyr-suit{{stroke:none}}
.pyr-ring,.pyr-inner,.pyr-focus{{fill:none;stroke:none}}
.pyr-star,.pyr-dot{{display:none}}
.pyr-playable>.pyr-ring{{stroke-width:.05}}
.pyr-hinted>.pyr-ring{{stroke-width:.085;stroke-dasharray:.17 .09}}
.pyr-selected>.pyr-ring{{stroke-width:.1;stroke-dasharray:none}}
.pyr-selected>.pyr-inner{{stroke-width:.03}}
.pyr-hinted>.pyr-star,.pyr-last>.pyr-dot{{display:inline}}
.pyr-empty>.pyr-star,.pyr-empty>.pyr-dot{{display:none}}
.pyr-outline{{fill:none;stroke-width:.025;stroke-dasharray:.09 .07}}
.pyr-last>.pyr-outline{{stroke-width:.035}}
.pyr-trace>.pyr-outline{{stroke-opacity:.75;stroke-dasharray:.03 .09;stroke-linecap:round}}
"""

_TOUCH: Final = """\
.pyr-card:focus{outline:none}
.pyr-card[role=button]{cursor:pointer}
.pyr-card:focus-visible>.pyr-focus{stroke-width:.05}
.pyr-selected[role=button]{translate:0 -.07px}
.pyr-trace{pointer-events:none}
"""


@lru_cache(maxsize=32)
def style(appearance: Appearance, interactive: bool) -> str:
    """The whole style sheet of a look; of the same look always the same."""
    parts = [_SHAPES]
    name = root_class(appearance).split()[-1]
    if interactive:
        parts.append(_TOUCH)
    parts.append(_colours(name, appearance.palette, appearance.four_colours))
    if appearance.theme == "auto":
        dark = _colours(name, DARK, appearance.four_colours)
        parts.append(f"@media (prefers-color-scheme:dark){{\n{dark}}}\n")
    return "".join(parts)


def root_class(appearance: Appearance) -> str:
    """Classes of the root: ``pyr-svg``, and one that names the theme and the number of colours, ``pyr-auto-2``."""
    return f"pyr-svg pyr-{appearance.theme}-{4 if appearance.four_colours else 2}"


def _colours(root: str, palette: Palette, four_colours: bool) -> str:
    p = palette
    rules = {
        ".pyr-table": f"fill:{p.table}",
        ".pyr-label": f"fill:{p.letter}",
        ".pyr-strokes": f"stroke:{p.letter}",
        ".pyr-shadow": f"fill:{p.shadow}",
        ".pyr-face": f"fill:{p.covered};stroke:{p.edge}",
        ".pyr-exposed>.pyr-face": f"fill:{p.exposed}",
        ".pyr-back>.pyr-face": f"fill:{p.back};stroke:{p.edge}",
        ".pyr-figure": f"fill:{p.back_figure}",
        ".pyr-border": f"fill:none;stroke:{p.back_figure}",
        ".pyr-outline": f"stroke:{p.empty}",
        ".pyr-pen": f"stroke:{p.empty}",
        ".pyr-playable>.pyr-ring": f"stroke:{p.playable}",
        ".pyr-hinted>.pyr-ring": f"stroke:{p.hinted}",
        ".pyr-selected>.pyr-ring": f"stroke:{p.selected}",
        ".pyr-selected>.pyr-inner": f"stroke:{p.selected}",
        ".pyr-star": f"fill:{p.hinted};stroke:{p.black}",
        ".pyr-dot": f"fill:{p.last};stroke:{p.exposed}",
        ".pyr-last>.pyr-outline": f"stroke:{p.letter}",
        ".pyr-focus": "",
        ".pyr-card:focus-visible>.pyr-focus": f"stroke:{p.letter}",
    }
    inks = zip("cdhs", p.inks(four_colours), strict=True)
    rules |= {f".pyr-{suit}": f"fill:{ink};stroke:{ink}" for suit, ink in inks}
    return "".join(f".{root} {part}{{{text}}}\n" for part, text in rules.items() if text)
