"""LiveGame: the game on a table; whoever plays it, by hand or from Python, the table hears of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyramid_env.game import Game
from pyramid_env.moves import Move

Listener = Callable[[], None]


class LiveGame(Game):
    """A Game that tells a listener after every change of position; moves from several threads come one after the other.
    Copies and pickles are games of their own, which tell nobody."""

    _listener: Listener | None = None
    _lock: threading.RLock = threading.RLock()  # of a copy: any will do

    @classmethod
    def of(cls, game: Game, listener: Listener, lock: threading.RLock) -> LiveGame:
        """A live game that goes on from another one, with its moves and its redo path; ``lock`` is held in a move."""
        live = cls.__new__(cls)
        live._lock = lock
        live.__setstate__(game.copy().__getstate__())
        live._listener = listener
        return live

    def play(self, move: Move | str | int) -> Move:
        """See :meth:`Game.play`."""
        with self._lock:
            return super().play(move)

    def undo(self) -> Move:
        """See :meth:`Game.undo`."""
        with self._lock:
            return super().undo()

    def redo(self) -> Move:
        """See :meth:`Game.redo`."""
        with self._lock:
            return super().redo()

    def restart(self) -> None:
        """See :meth:`Game.restart`."""
        with self._lock:
            super().restart()

    def detach(self) -> None:
        """Tell nobody any more: another game lies on the table."""
        self._listener = None

    def _go_to(self, index: int) -> None:
        super()._go_to(index)
        if self._listener is not None:
            self._listener()

    def __copy__(self) -> Game:
        twin = Game.__new__(Game)
        twin.__setstate__(self.__getstate__())
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain, (self.__getstate__(),)


def _plain(state: dict[str, Any]) -> Game:
    game = Game.__new__(Game)
    game.__setstate__(state)
    return game
