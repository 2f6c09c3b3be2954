"""``python -m pyramid_env play``: the table as a page on localhost."""

from __future__ import annotations

import argparse
import signal
import sys
import webbrowser
from collections.abc import Sequence

from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, serve until Ctrl-C, or until the program is told to end."""
    options = parser().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        return _play(options)
    except KeyboardInterrupt:
        print()
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def _play(options: argparse.Namespace) -> int:
    from pyramid_env.table.server import play

    try:
        server = play(
            options.rules, options.deal, port=options.port, browser=False, keep=options.keep, path=options.data
        )
    except PyramidError as error:
        print(f"pyramid_env play: {error}", file=sys.stderr)
        return 2
    try:
        message = server.session.message
        if message is not None and message.kind == "error":
            print(f"pyramid_env play: {message.text}", file=sys.stderr)
        print(f"The table: {server.address}\nCtrl-C ends it; the game goes on next time.", flush=True)
        if options.browser:  # now that the address stands there: it may be one without windows
            webbrowser.open(server.address)
        server.wait()
    finally:
        server.close()
    return 0


def _stop(*_: object) -> None:
    """As Ctrl-C does."""
    raise KeyboardInterrupt


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m pyramid_env", description="Pyramid solitaire.")
    commands = made.add_subparsers(dest="command", required=True)
    play = commands.add_parser(
        "play",
        help="the table as a page on localhost",
        description="Serve the table on localhost and open it in a browser. Games are saved after each move.",
    )
    play.add_argument(
        "rules",
        nargs="?",
        help=f"{', '.join(PRESETS)}, or as microsoft:passes=1; default: those chosen last, or pyramid",
    )
    play.add_argument("--deal", metavar="NUMBER", help="number of a deal, or its cards; default: go on, or any")
    play.add_argument("--port", type=int, default=0, help="default: any free one")
    play.add_argument("--no-browser", dest="browser", action="store_false", help="do not open a browser")
    play.add_argument("--no-save", dest="keep", action="store_false", help="keep no games, results and preferences")
    play.add_argument("--data", metavar="FILE", help="the database; default: in the user's data folder")
    return made


if __name__ == "__main__":
    sys.exit(main())
