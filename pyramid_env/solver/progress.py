"""Progress: a bar on the terminal while many deals are solved."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

Progress = Callable[[int, int], object]
"""Called with (deals done, deals in all)."""

_LINE_EVERY_S: Final = 0.5


@contextmanager
def shown(progress: bool | Progress, total: int) -> Iterator[Progress]:
    """What to call on progress: the caller's function, or one that draws on stderr, where that is a terminal.

    The bar is rich's if it is installed, else one line of text.
    """
    if not isinstance(progress, bool):
        yield progress
    elif not progress or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
    else:
        try:
            import rich  # noqa: F401 (only asks whether it is there)
        except ImportError:
            with _line() as tell:
                yield tell
        else:
            with _bar(total) as tell:
                yield tell


@contextmanager
def _bar(total: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("solve"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("solve", total=total)
        yield lambda done, total: bar.update(task, completed=done)


@contextmanager
def _line() -> Iterator[Progress]:
    began = time.monotonic()
    told = -_LINE_EVERY_S

    def tell(done: int, total: int) -> None:
        nonlocal told
        seconds = time.monotonic() - began
        if done == total or seconds - told >= _LINE_EVERY_S:
            told = seconds
            print(f"\rsolve {done:,} of {total:,} deals, {seconds:.0f} s", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print(file=sys.stderr)
