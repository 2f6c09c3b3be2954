"""The README's pictures of the table, from a page in Chromium: python docs/pictures.py, from the repository's root."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from agents import make_agent  # noqa: E402 - the folder above is not installed
from pyramid_env.table import Session, Store, TableServer, WatchSession  # noqa: E402 - as above

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")


def main() -> None:
    """Take both."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))

        def take(name: str, session: Session, scheme: str, height: int) -> None:
            with TableServer(session) as server:
                page = browser.new_page(viewport={"width": 1100, "height": height}, color_scheme=scheme)
                page.goto(server.address)
                page.wait_for_selector(".pt-board [data-spot]")
                play(page, name)
                page.locator(".pt").screenshot(path=HERE / name)
                page.close()

        take("table.png", Session("till_dawn", 42, store=Store(":memory:")), "light", 860)
        take("watch.png", WatchSession(make_agent("shipped", "pyramid"), 8, "pyramid"), "dark", 820)
        browser.close()


def play(page: Page, name: str) -> None:
    """A position worth looking at."""
    if name == "watch.png":
        for _ in range(4):
            page.click("[data-control=watch-next]")
            page.wait_for_timeout(300)
    else:
        page.click("[data-spot=r7c4]")  # a king
        for _ in range(3):
            page.keyboard.press("d")
            page.wait_for_timeout(400)
        page.click("[data-control=hint]")
    page.wait_for_timeout(900)


if __name__ == "__main__":
    main()
