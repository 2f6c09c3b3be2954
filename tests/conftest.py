"""What several test files share: a Chromium."""

import importlib
import os
import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


def missing(what):
    """Skip with the reason; where everything should be there (CI), fail."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and this is CI")
    pytest.skip(what)


def needs(module, extra):
    """A module of an extra; skips with the reason without it, as :func:`missing`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return missing(f"the extra '{extra}' is not installed")


@pytest.fixture(scope="session", autouse=True)
def _own_data(tmp_path_factory):
    """Tables of tests keep nothing among the user's data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYRAMID_ENV_DATA", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def playwright():
    """Playwright's synchronous interface, once for all tests of a process."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing("the extra 'browser' is not installed")
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright):
    """A headless Chromium."""
    if CHROMIUM is None:
        missing("no Chromium is installed")
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
    yield chromium
    chromium.close()
