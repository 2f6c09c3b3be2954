"""Page: the report of an evaluation as one HTML file that needs no network: tables, plots, games to step through."""

from agents.page.build import Report, page_text
from agents.page.curves import curve_of
from agents.page.replays import REPLAYS, Chosen, choose_games

__all__ = ["REPLAYS", "Chosen", "Report", "choose_games", "curve_of", "page_text"]
