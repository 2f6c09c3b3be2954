"""A word about compiling: the first call after an install takes seconds, and nobody should wonder why.

Numba tells its listeners when it compiles, not when it loads machine code from disk. So there is one line for the
rules and one for the solver where something is compiled, and none at later starts.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from numba.core import event

logger: Final = logging.getLogger("pyramid_env")

_PACKAGE: Final = __name__.rpartition(".")[0]
_PARTS: Final = ((f"{_PACKAGE}.solver.", "the solver (about a minute)"), (f"{_PACKAGE}.", "the rules (some seconds)"))
"""What is compiled, by the beginning of the module's name."""


class CompilingNotice(event.Listener):
    """Logs a line, once a process for each part of the package, when Numba starts to compile a kernel of it.

    The level is WARNING, so that the line is seen where logging has not been set up: Python then writes warnings, and
    nothing below, to stderr. ``logging.getLogger("pyramid_env").setLevel("ERROR")`` silences it.
    """

    def __init__(self) -> None:
        self._told: set[str] = set()

    def on_start(self, event: Any) -> None:
        """Numba begins to compile ``event.data["dispatcher"]``."""
        dispatcher = event.data["dispatcher"]
        module = getattr(getattr(dispatcher, "py_func", None), "__module__", None) or ""
        part = next((what for beginning, what in _PARTS if module.startswith(beginning)), None)
        if part is None or part in self._told:
            return
        self._told.add(part)
        folder = dispatcher.stats.cache_path
        kept = f"kept in {folder} for later starts" if folder else "at every start: no folder for it can be written"
        logger.warning("pyramid_env: compiling %s, %s", part, kept)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def announce() -> None:
    """Have compiling announced from now on, in this process."""
    event.register("numba:compile", CompilingNotice())  # type: ignore[no-untyped-call]  # numba has no type information
