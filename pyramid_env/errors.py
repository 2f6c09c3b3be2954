"""The errors a caller can meet; all are ValueErrors, since all are mistakes in what was handed in."""


class PyramidError(ValueError):
    """Base of every error that pyramid_env raises for bad input."""


class RulesError(PyramidError):
    """Switches that contradict each other, or an unknown preset or switch."""


class DeckError(PyramidError):
    """A deck that is not the deck of the rules: cards missing, doubled or unreadable."""


class IllegalMoveError(PyramidError):
    """A move that the rules do not allow in this position; the position is unchanged."""


class HistoryError(IllegalMoveError):
    """There is no move to undo, or none to redo; the game is unchanged."""


class SaveError(PyramidError):
    """A saved game that cannot be read: damaged, of another version, or not a game."""
