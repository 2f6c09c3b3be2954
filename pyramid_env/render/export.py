"""Export: a position as a picture file, a game as a film; files are complete or not there at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyramid_env.errors import PyramidError
from pyramid_env.game import Game
from pyramid_env.render.appearance import Appearance
from pyramid_env.render.extra import needed
from pyramid_env.render.marks import Marks, marks_for
from pyramid_env.render.pixels import HEIGHT, WIDTH, check_pixels, rgb_array
from pyramid_env.render.svg import draw, svg
from pyramid_env.render.view import View, look

if TYPE_CHECKING:
    from pyramid_env.render.canvas import Picture

PICTURES: Final = (".svg", ".png")
FILMS: Final = (".gif", ".mp4")
FPS: Final = 2.0
FASTEST: Final = 50.0
"""Frames a second; a GIF counts in hundredths of a second, and viewers slow down what is faster."""

LAST_S: Final = 2.0
"""Seconds for which a film rests on its last position."""

_DEFAULT: Final = Appearance()
Progress = Callable[[int, int], None]
"""Told after each frame of a film: frames written, frames in all."""


def save_picture(
    game: Game | View,
    path: str | os.PathLike[str],
    *,
    width: int | None = None,
    appearance: Appearance = _DEFAULT,
    marks: Marks | None = None,
) -> None:
    """Write a position as a picture; a file of that name is replaced.

    Args:
        game: a Game, or a View.
        path: ends in ``.svg`` or ``.png``; a PNG needs the extra ``render`` (resvg), and has round corners.
        width: of a PNG in pixels, 1200 unless given; the height follows. An SVG has no size in pixels.
        appearance: theme (``"auto"`` is light in a PNG), number of colours, size of the cards.
        marks: what to point out, as :func:`pyramid_env.render.svg` takes it.

    Raises:
        PyramidError: another ending, or a width with an SVG.
        ValueError: a width that is none.
        MissingPackage: a PNG, and resvg_py is not installed.
        OSError: the file can't be written.
    """
    suffix = _suffix(path, PICTURES)
    if suffix == ".svg":
        if width is not None:
            raise PyramidError(f"width: expected none for an SVG, which fits any size, got {width!r}")
        data = svg(game, appearance=appearance, marks=marks).encode()
    else:
        data = _png(game, 1200 if width is None else width, appearance, marks)
    with _unfinished(path) as file:
        file.write_bytes(data)


def _png(game: Game | View, width: int, appearance: Appearance, marks: Marks | None) -> bytes:
    check_pixels("width", width)
    resvg = needed("resvg_py", "a PNG")
    view = look(game)
    # Letters are lines as well: the picture does not hang on the fonts of a system.
    picture = draw(view, marks_for(game, view, marks), appearance, outlined=True)
    return bytes(resvg.svg_to_bytes(svg_string=picture, width=int(width), skip_system_fonts=True))


def save_film(
    game: Game,
    path: str | os.PathLike[str],
    *,
    fps: float = FPS,
    width: int = WIDTH,
    height: int = HEIGHT,
    appearance: Appearance = _DEFAULT,
    progress: Progress | None = None,
) -> None:
    """Write a game as a film, from its start to where it stands, one frame a move; a file of that name is replaced.

    The last position stays for two seconds. The game is not changed.

    Args:
        game: the game.
        path: ends in ``.gif`` (needs Pillow) or ``.mp4`` (needs imageio-ffmpeg); both come with the extra ``render``.
        fps: frames a second, more than 0, at most 50.
        width: in pixels; for ``.mp4`` an even number.
        height: likewise.
        appearance: theme (``"auto"`` is light), number of colours, size of the cards.
        progress: called after each frame with the frames written and the frames in all.

    Raises:
        PyramidError: another ending, frames a second out of range, odd sizes of an MP4.
        ValueError: a size that is none.
        MissingPackage: the package is not installed.
        OSError: the file can't be written.
    """
    suffix = _suffix(path, FILMS)
    if isinstance(fps, bool) or not isinstance(fps, int | float) or not (isfinite(fps) and 0 < fps <= FASTEST):
        raise PyramidError(f"fps: expected frames a second, more than 0 and at most {FASTEST:g}, got {fps!r}")
    for name, size in (("width", width), ("height", height)):
        check_pixels(name, size)
        if suffix == ".mp4" and size % 2:
            raise PyramidError(f"{name}: expected an even number of pixels for .mp4, got {size}")
    write = _write_gif if suffix == ".gif" else _write_mp4
    total = game.moves_made + 1
    frames = _told(_frames(game, width, height, appearance), total, progress)
    with _unfinished(path) as file:
        write(file, frames, float(fps), total)


def _frames(game: Game, width: int, height: int, appearance: Appearance) -> Iterator[Picture]:
    """A picture of each position from the start of a game to where it stands."""
    replay, moves = game.copy(), game.moves_made
    while replay.can_undo:
        replay.undo()
    yield rgb_array(replay, width=width, height=height, appearance=appearance)
    for _ in range(moves):
        replay.redo()
        yield rgb_array(replay, width=width, height=height, appearance=appearance)


def _told(frames: Iterator[Picture], total: int, progress: Progress | None) -> Iterator[Picture]:
    for done, frame in enumerate(frames, 1):
        yield frame
        if progress is not None:
            progress(done, total)


def _write_gif(file: Path, frames: Iterator[Picture], fps: float, total: int) -> None:
    image = needed("PIL.Image", "a GIF")
    pictures = (image.fromarray(frame).quantize(256) for frame in frames)
    step = max(20, round(1000 / fps))
    durations = [step] * (total - 1) + [max(step, round(1000 * LAST_S))]
    first = next(pictures)
    with file.open("wb") as out:
        first.save(out, "GIF", save_all=True, append_images=pictures, duration=durations, loop=0, optimize=False)


def _write_mp4(file: Path, frames: Iterator[Picture], fps: float, total: int) -> None:
    ffmpeg = needed("imageio_ffmpeg", "an MP4")
    first = next(frames)
    size = first.shape[1], first.shape[0]
    writer = ffmpeg.write_frames(
        str(file), size, fps=fps, codec="libx264", quality=8, macro_block_size=2, ffmpeg_log_level="error"
    )
    writer.send(None)
    try:
        frame = first
        writer.send(frame)
        for frame in frames:
            writer.send(frame)
        for _ in range(round(LAST_S * fps) - 1):
            writer.send(frame)
    finally:
        writer.close()


def _suffix(path: str | os.PathLike[str], known: tuple[str, ...]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise PyramidError(f"path: expected a name that ends in {' or '.join(known)}, got {os.fspath(path)!r}")
    return suffix


@contextmanager
def _unfinished(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new name beside the wanted one; what was written there takes the wanted name, unless something went wrong."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: expected a folder {target.parent.name!r} to write to, got none")
    unfinished = target.with_name(f".{target.stem}.{secrets.token_hex(4)}.tmp{target.suffix}")
    try:
        yield unfinished
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
