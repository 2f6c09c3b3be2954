"""Pictures of a position, as text, SVG and pixels, and files of them; each takes a Game, or rules, cards and a
position row."""

from pyramid_env.render.appearance import Appearance
from pyramid_env.render.drawing import Drawing
from pyramid_env.render.export import save_film, save_picture
from pyramid_env.render.extra import MissingPackage
from pyramid_env.render.marks import Marks, marks_of
from pyramid_env.render.pixels import rgb_array
from pyramid_env.render.spots import spots_of
from pyramid_env.render.svg import svg
from pyramid_env.render.text import has_colour, one_line, text
from pyramid_env.render.view import View, look

__all__ = [
    "Appearance",
    "Drawing",
    "Marks",
    "MissingPackage",
    "View",
    "has_colour",
    "look",
    "marks_of",
    "one_line",
    "rgb_array",
    "save_film",
    "save_picture",
    "spots_of",
    "svg",
    "text",
]
