"""Files and windows: pictures and films of games, Gymnasium's recorder, render_mode human and svg."""

from __future__ import annotations

import io
import pickle
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium as gym
import numpy as np
import pytest
from conftest import needs

import pyramid_env as pe
from pyramid_env import render
from pyramid_env.game import Game
from pyramid_env.render import Appearance, MissingPackage
from pyramid_env.render.window import Window

ID = "pyramid_env/Pyramid-v0"
EXTRA = "comes with the render extra"


@pytest.fixture
def game() -> Game:
    played = Game(42)
    for _ in range(6):
        played.play(played.hint() or "draw")
    return played


@pytest.fixture
def pygame(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    return needs("pygame", "render")


# ---- pictures --------------------------------------------------------------------------------------------------------


def test_an_svg_file_holds_the_drawing(game: Game, tmp_path: Path) -> None:
    look = Appearance("dark", large_cards=True)
    render.save_picture(game, tmp_path / "game.svg", appearance=look)
    assert (tmp_path / "game.svg").read_text(encoding="utf-8") == render.svg(game, appearance=look)
    assert [path.name for path in tmp_path.iterdir()] == ["game.svg"]


def test_a_png_has_the_width_asked_for_and_its_labels_need_no_font(game: Game, tmp_path: Path) -> None:
    needs("resvg_py", "render")
    image = needs("PIL.Image", "render")
    path = tmp_path / "game.PNG"
    render.save_picture(game, path, width=415, appearance=Appearance("light"))
    with image.open(path) as opened:
        picture = np.asarray(opened.convert("RGB")).astype(int)
    assert picture.shape[1] == 415
    ours = render.rgb_array(game, width=415, height=picture.shape[0], appearance=Appearance("light")).astype(int)
    assert (np.abs(picture - ours).max(axis=2) > 60).mean() < 0.03
    title = slice(0, round(0.6 * 50)), slice(20, 200)
    assert (picture[title].min(axis=2) > 200).sum() > 30  # letters


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("game.jpg", {}, r"path: expected a name that ends in \.svg or \.png, got"),
        ("game", {}, "path: expected a name that ends in"),
        ("game.svg", {"width": 100}, "width: expected none for an SVG"),
        ("game.png", {"width": 10}, "width: expected a whole number from 32"),
    ],
)
def test_pictures_that_can_not_be_are_refused(
    game: Game, tmp_path: Path, name: str, options: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        render.save_picture(game, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(game: Game, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="expected a folder 'nowhere'"):
        render.save_picture(game, tmp_path / "nowhere" / "game.svg")


# ---- films -----------------------------------------------------------------------------------------------------------


def test_a_gif_shows_every_position_and_rests_on_the_last(game: Game, tmp_path: Path) -> None:
    image = needs("PIL.Image", "render")
    told: list[tuple[int, int]] = []
    before = game.to_json()
    path = tmp_path / "game.gif"
    render.save_film(game, path, fps=4, width=200, height=150, progress=lambda done, total: told.append((done, total)))
    assert game.to_json() == before
    assert told == [(done, 7) for done in range(1, 8)]
    durations = []
    replay = Game(42)
    with image.open(path) as film:
        assert film.n_frames == 7
        assert film.size == (200, 150)
        for index in range(7):
            film.seek(index)
            durations.append(film.info["duration"])
            shown = np.asarray(film.convert("RGB")).astype(int)
            assert (np.abs(shown - render.rgb_array(replay, width=200, height=150)).max(axis=2) > 60).mean() < 0.01
            if index < 6:
                replay.play(game.history[index])
    assert durations == [250] * 6 + [2000]
    assert [path.name for path in tmp_path.iterdir()] == ["game.gif"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imageio-ffmpeg leaves its pipes open
def test_an_mp4_has_the_size_and_the_length_asked_for(game: Game, tmp_path: Path) -> None:
    ffmpeg = needs("imageio_ffmpeg", "render")
    path = tmp_path / "game.mp4"
    render.save_film(game, path, fps=2, width=200, height=150)
    reader = ffmpeg.read_frames(str(path))
    about = next(reader)
    frames = [np.frombuffer(frame, np.uint8).reshape(150, 200, 3) for frame in reader]
    assert about["size"] == (200, 150)
    assert about["fps"] == 2
    assert len(frames) == 7 + 3  # two seconds of the last
    last = render.rgb_array(game, width=200, height=150).astype(int)
    assert (np.abs(frames[-1] - last).max(axis=2) > 60).mean() < 0.03
    assert [path.name for path in tmp_path.iterdir()] == ["game.mp4"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("game.avi", {}, r"path: expected a name that ends in \.gif or \.mp4, got"),
        ("game.gif", {"fps": 0}, "fps: expected frames a second, more than 0 and at most 50, got 0"),
        ("game.gif", {"fps": float("nan")}, "fps: expected"),
        ("game.gif", {"fps": True}, "fps: expected"),
        ("game.mp4", {"width": 201}, r"width: expected an even number of pixels for \.mp4, got 201"),
        ("game.mp4", {"height": 8}, "height: expected a whole number"),
    ],
)
def test_films_that_can_not_be_are_refused(game: Game, tmp_path: Path, name: str, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render.save_film(game, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_a_film_that_breaks_off_leaves_the_old_file(game: Game, tmp_path: Path) -> None:
    needs("PIL.Image", "render")
    path = tmp_path / "game.gif"
    path.write_bytes(b"old")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render.save_film(game, path, width=64, height=48, progress=stop)
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["game.gif"]


@pytest.mark.parametrize(
    ("package", "name"), [("resvg_py", "game.png"), ("PIL.Image", "game.gif"), ("imageio_ffmpeg", "game.mp4")]
)
def test_a_missing_package_is_named_with_its_extra(
    game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    save = render.save_picture if name.endswith("png") else render.save_film
    with pytest.raises(MissingPackage, match=rf"expected the package {package}, .*pip install -e \"\.\[render\]\""):
        save(game, tmp_path / name)
    assert not list(tmp_path.iterdir())


# ---- environments ----------------------------------------------------------------------------------------------------


def test_gymnasium_records_a_video(tmp_path: Path) -> None:
    needs("moviepy", "render")
    from gymnasium.wrappers import RecordVideo

    env = RecordVideo(
        gym.make(ID, rules="mini", render_mode="rgb_array"), str(tmp_path / "films"), episode_trigger=lambda _: True
    )
    _, info = env.reset(seed=1)
    over, rng = False, np.random.default_rng(1)
    while not over:
        _, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
    env.close()
    films = list((tmp_path / "films").glob("*.mp4"))
    assert len(films) == 1
    assert films[0].stat().st_size > 1000


def test_svg_mode_returns_a_str_that_a_notebook_shows() -> None:
    env = gym.make(ID, render_mode="svg")
    env.reset(seed=3)
    drawn: Any = env.render()
    inner = env.unwrapped
    assert isinstance(inner, pe.PyramidEnv)
    assert drawn == render.svg(inner.rules, inner.deal, inner.state)
    assert drawn._repr_html_() == drawn
    ElementTree.fromstring(drawn)
    envs = pe.PyramidVectorEnv(2, render_mode="svg")
    envs.reset(seed=3)
    frames = envs.render()
    assert frames is not None
    assert [type(frame) for frame in frames] == [render.Drawing] * 2


def test_human_mode_shows_each_position_in_a_window(pygame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: list[float] = []
    real = pygame.time.Clock

    class Clock:
        def __init__(self) -> None:
            self.clock = real()

        def tick(self, fps: float) -> None:
            ticks.append(fps)

    monkeypatch.setattr(pygame.time, "Clock", Clock)
    env = pe.PyramidEnv("mini", render_mode="human")
    _, info = env.reset(seed=1)
    assert pygame.display.get_surface().get_size() == (800, 600)
    for shown in (1, 2, 3):
        screen = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        assert (screen == render.rgb_array(env.rules, env.deal, env.state)).all()
        assert len(ticks) == shown
        _, _, _, _, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert set(ticks) == {env.metadata["render_fps"]}
    assert env.render() is None
    twin = pickle.loads(pickle.dumps(env))  # a window does not travel
    assert twin._window is None
    env.close()
    env.close()
    assert not pygame.display.get_init()


def test_a_window_that_was_closed_stays_closed_and_play_goes_on(pygame: Any) -> None:
    env = pe.PyramidEnv("mini", render_mode="human")
    _, info = env.reset(seed=1)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    for _ in range(2):
        _, _, _, _, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        assert not pygame.display.get_init()
    env.close()


def test_human_mode_without_pygame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(MissingPackage, match=r"render_mode=\"human\": expected the package pygame.*\[render\]"):
        Window(4)


def test_a_vector_environment_has_no_window() -> None:
    with pytest.raises(
        pe.errors.PyramidError, match="render_mode: expected one of None, ansi, rgb_array, svg, got 'human'"
    ):
        pe.PyramidVectorEnv(2, render_mode="human")
    assert "human" not in pe.PyramidVectorEnv.metadata["render_modes"]


def test_nothing_but_numpy_is_needed_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("PIL", "resvg_py", "pygame", "imageio_ffmpeg", "moviepy"):
        monkeypatch.setitem(sys.modules, package, None)
    assert render.rgb_array(Game(1), width=64, height=64).any()
    assert io.StringIO(render.svg(Game(1))).readline().startswith("<svg")
