"""Widget: the table in a notebook, by anywidget: JupyterLab, Notebook 7, VS Code, Colab, marimo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import gymnasium as gym

from pyramid_env.deal import Deal
from pyramid_env.game import Game
from pyramid_env.rules import Rules
from pyramid_env.table.attached import AttachedEnv
from pyramid_env.table.keeper import open_store
from pyramid_env.table.session import Message, Session
from pyramid_env.table.store import Store

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:  # pragma: no cover - the tests have it
    raise ModuleNotFoundError(
        f"the notebook's table needs the notebook extra: {error}; pip install 'pyramid-env[notebook]'", name=error.name
    ) from None

STATIC: Final = Path(__file__).parent / "static"


class Table(anywidget.AnyWidget):
    """A table in a notebook, as the last line of a cell::

        table = pe.Table("till_dawn")            # or Table("pyramid", deal=42)
        table

    Click a card and then its partner, or drag one onto the other; a click takes a king, a click on the stock draws.
    ``table.game`` is the live :class:`pyramid_env.Game`: what Python plays shows on the table, and the reverse. The
    game is saved after each move, and the same rules go on with it later; results are kept (see
    :class:`pyramid_env.table.Store`).

    Args:
        rules: preset, text or Rules.
        deal: a Deal, a number or text; None: the unfinished game of these rules, or a random deal.
        keep: save games, results and preferences; False: nothing is kept.
        path: the database; None: in the user's data folder (or ``$PYRAMID_ENV_DATA``).
        session: a session of one's own instead of all these.

    Raises:
        ModuleNotFoundError: the notebook extra is missing.
        RulesError, DeckError: as :class:`pyramid_env.Game`.
    """

    _esm = STATIC / "table.js"
    _css = STATIC / "table.css"
    state = traitlets.Dict().tag(sync=True)
    _own_store: Store | None = None

    def __init__(
        self,
        rules: Rules | str = "pyramid",
        deal: Deal | int | str | None = None,
        *,
        keep: bool = True,
        path: str | os.PathLike[str] | None = None,
        session: Session | None = None,
    ) -> None:
        if session is None:
            store, trouble = open_store(path) if keep else (None, "")
            session = Session(rules, deal, store=store)
            self._own_store = store
            session.message = Message(trouble, "error") if trouble else session.message
        self.session: Final = session
        super().__init__(state=session.state())
        session.on_change = self._show
        self.on_msg(self._hear)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.game!r}>"

    @property
    def game(self) -> Game:
        """The live game; another one after each new deal."""
        return self.session.game

    @property
    def rules(self) -> Rules:
        """The rules of the running game."""
        return self.session.rules

    def new_game(self, deal: Deal | int | str | None = None, *, winnable: bool = False) -> Game:
        """Deal anew, see :meth:`pyramid_env.table.Session.new_game`; the live game."""
        self.session.new_game(deal, winnable=winnable)
        return self.game

    def attach(self, env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        """An environment whose steps and resets show on this table; step the returned one."""
        return AttachedEnv(env, self.session)

    def close(self) -> None:
        """Take the table away; the running game stays saved."""
        if session := getattr(self, "session", None):
            session.on_change = lambda: None
            session.close()
        if self._own_store is not None:
            self._own_store.close()
            self._own_store = None
        super().close()

    def _show(self) -> None:
        self.state = self.session.state()

    def _hear(self, _: object, event: Any, __: object) -> None:
        self.session.handle(event)
