"""Pictures of a position, as text, SVG and pixels; each takes a Game, or rules, cards and a position row."""

from pyramid_env.render.pixels import rgb_array
from pyramid_env.render.svg import svg
from pyramid_env.render.text import has_colour, one_line, text
from pyramid_env.render.view import View, look

__all__ = ["View", "has_colour", "look", "one_line", "rgb_array", "svg", "text"]
