"""AttachedEnv: an environment whose game is seen on a table."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import gymnasium as gym

from pyramid_env import kernels
from pyramid_env.env import PyramidEnv
from pyramid_env.errors import PyramidError
from pyramid_env.positions import Position, position_of
from pyramid_env.table.session import Session


class AttachedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Steps and resets go through to the environment, and the table follows. While it follows, results are not kept.

    A move by hand at the table changes the table alone; the next step puts the environment's position back on it.

    Args:
        env: a PyramidEnv, wrapped or not.
        session: the table's.
    """

    def __init__(self, env: gym.Env[Any, Any], session: Session) -> None:
        super().__init__(env)
        if not isinstance(env.unwrapped, PyramidEnv):
            raise PyramidError(f"attach: expected a PyramidEnv, got {type(env.unwrapped).__name__}")
        self._inner: Final = env.unwrapped
        self._session: Final = session
        session.follow()
        with contextlib.suppress(PyramidError):  # not reset yet: nothing to show
            self._show()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """See :meth:`PyramidEnv.reset`."""
        result = super().reset(seed=seed, options=options)
        self._show()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """See :meth:`PyramidEnv.step`."""
        before = position_of(self._inner.state)
        result = super().step(action)
        after = position_of(self._inner.state)
        if after == before:  # illegal: nothing changed
            return result
        with self._session.lock:
            move = self._move(before, after)
            if move is None:
                self._show()
            else:
                self._session.game.play(move)
        return result

    def _move(self, before: Position, after: Position) -> int | None:
        """The move of the table's game that makes the environment's step; None where another game lies there.

        It is looked for by its outcome: other wrappers may give actions another meaning.
        """
        game, rules = self._session.game, self._inner.rules
        if game.rules != rules or game.deal != self._inner.deal or position_of(game.state) != before:
            return None
        table = kernels.table(rules)
        return next((each for each in game.legal_actions if kernels.apply(table, *before, each) == after), None)

    def _show(self) -> None:
        self._session.show(self._inner.game)
