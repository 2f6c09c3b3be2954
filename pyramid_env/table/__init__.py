"""The table: games by hand, in a notebook (:class:`Table`, :func:`watch`) and on a page (:func:`play`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pyramid_env.table.session import Session
from pyramid_env.table.store import Statistics, Store, StoreError

if TYPE_CHECKING:
    from pyramid_env.table.server import TableServer, play
    from pyramid_env.table.watching import WatchSession, watch
    from pyramid_env.table.widget import Table

__all__ = [
    "Session",
    "Statistics",
    "Store",
    "StoreError",
    "Table",
    "TableServer",
    "WatchSession",
    "play",
    "watch",
]

_LATER: Final = {
    "Table": "widget",
    "TableServer": "server",
    "WatchSession": "watching",
    "play": "server",
    "watch": "watching",
}
"""Names that need a package of their own, or are seldom asked for; with the module that has them."""


def __getattr__(name: str) -> Any:
    """A name that is loaded when first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
