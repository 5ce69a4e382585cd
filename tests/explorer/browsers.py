"""A real browser for the tests, with every way out closed."""

import base64
import contextlib
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no browser: install chromium and chromium-driver to test the explorer's pages"
)
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--force-device-scale-factor=1", "--hide-scrollbars"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Picture:
    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels

    def at(self, place: tuple[float, float]) -> tuple[int, ...]:
        """The colour at a place, x and y from the upper left corner."""
        return tuple(self.pixels[round(place[1]), round(place[0])].tolist())


class Browser:
    """Chromium. `errors` and `requests` are those since they were last asked for."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self.home = tempfile.mkdtemp(prefix="dqd-browser-")
        options = Options()
        options.binary_location = CHROMIUM
        for option in (*OPTIONS, f"--user-data-dir={self.home}", f"--window-size={width},{height}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))

    def close(self) -> None:
        self.driver.quit()
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def import_(self, script: str) -> Any:
        """What an asynchronous script answers."""
        return self.driver.execute_async_script(f"const done = arguments[0]; (async () => {{{script}}})().then(done)")

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def until(self, condition: Callable[[], Any], seconds: float = 20) -> Any:
        """What the condition answers, as soon as it is true."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, f"did not come: {self.text('main')[:500]}"
            time.sleep(0.05)
        return found

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def picture(self, selector: str = "canvas.map") -> Picture:
        """What a canvas shows."""
        address = self.run("return document.querySelector(arguments[0]).toDataURL()", selector)
        with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as image:
            return Picture(np.asarray(image.convert("RGB")))

    def drawn(self) -> None:
        """Wait until the map is on the screen."""
        self.until(lambda: self.run("return Boolean(document.querySelector('canvas.map')?.dataset.drawn)"))
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


@contextlib.contextmanager
def opened(width: int = 1280, height: int = 900) -> Iterator[Browser]:
    browser = Browser(width, height)
    try:
        yield browser
    finally:
        browser.close()


def cell_centre(
    browser: Browser, column: int, row: int, columns: int, rows: int, along: float = 0.5, up: float = 0.5
) -> tuple[float, float]:
    """Where the middle of a cell, or another place in it, lies on the canvas: a square with margins for the axes."""
    width, height = browser.run(
        "const c = document.querySelector('canvas.map'); return [c.clientWidth, c.clientHeight]"
    )
    side = min(width - 66 - 14, height - 12 - 46)
    return 66 + (column + along) * side / columns, 12 + side - (row + up) * side / rows


def cell_corner(browser: Browser, cell: int, columns: int, rows: int) -> tuple[float, float]:
    """A place in a cell beside its picture; cells are numbered upward, then to the right."""
    return cell_centre(browser, *divmod(cell, rows), columns, rows, along=0.1, up=0.93)


def local(path: Path) -> str:
    return path.resolve().as_uri()
