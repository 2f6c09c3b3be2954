"""LiveGame: the game on a table; whoever plays it, by hand or from Python, the table hears of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyramid_env.game import Game

Listener = Callable[[], None]


class LiveGame(Game):
    """A Game that tells a listener after every change of position. Copies and pickles are games of their own, which
    tell nobody."""

    _listener: Listener | None = None

    @classmethod
    def of(cls, game: Game, listener: Listener) -> LiveGame:
        """A live game that goes on from another one, with its moves and its redo path."""
        live = cls.__new__(cls)
        live.__setstate__(game.copy().__getstate__())
        live._listener = listener
        return live

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
