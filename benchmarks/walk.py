"""A newcomer's walk, timed in a real browser: see the demo's map, find an elite, save it, share the map.

    make demo && python benchmarks/walk.py runs/demo/run [--out benchmarks/results/walk.json]

`dqd view` is started as a newcomer would start it. Every step ends when its result is there: on the screen, or whole on
the disk. What a person needs to read and to decide is not in these seconds.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from explorer.browsers import Browser, local, opened

from device import today

WANTED = ("400", "-300")  # where the hand should be


@contextmanager
def viewer(place: Path) -> Iterator[str]:
    """The link that `dqd view` prints."""
    command = [sys.executable, "-m", "dqd", "view", str(place), "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                break
    finally:
        process.kill()


def press(browser: Browser, words: str) -> None:
    browser.run(
        "const all = [...document.querySelectorAll('button, summary, a')];"
        "all.find(one => one.textContent.startsWith(arguments[0])).click()",
        words,
    )


def downloaded(folder: Path, ending: str) -> Path | None:
    return next((path for path in folder.glob(f"*{ending}") if path.stat().st_size), None)


def walk(place: Path) -> dict[str, float]:
    seconds: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp(prefix="dqd-walk-"))

    def step(name: str, act: Callable[[], object], done: Callable[[], object], browser: Browser) -> None:
        began = time.perf_counter()
        act()
        browser.until(done)
        seconds[name] = round(time.perf_counter() - began, 2)

    began = time.perf_counter()
    with viewer(place) as link, opened() as browser:
        seconds["dqd view says its link"] = round(time.perf_counter() - began, 2)
        browser.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
        )

        def find() -> None:
            for field, value in zip(browser.driver.find_elements("css selector", ".finder input"), WANTED, strict=True):
                field.send_keys(value)
            press(browser, "Nearest elite")

        step("the map is on the screen", lambda: browser.driver.get(link), lambda: _shown(browser), browser)
        step("the elite nearest a wanted point", find, lambda: "objective" in browser.text("dl.facts"), browser)
        step("its numbers in a file", lambda: press(browser, "Download"), lambda: downloaded(folder, ".json"), browser)
        press(browser, "Save as one HTML file")
        browser.until(lambda: "with the solutions" in browser.text("main"))
        step(
            "the map as one file",
            lambda: press(browser, "with the solutions"),
            lambda: downloaded(folder, ".html"),
            browser,
        )
        page = downloaded(folder, ".html")
        assert page is not None
        step("that file opens anywhere", lambda: browser.driver.get(local(page)), lambda: _shown(browser), browser)
        assert browser.errors() == []
    return seconds


def _shown(browser: Browser) -> bool:
    return browser.run("return Boolean(document.querySelector('canvas.map')?.dataset.drawn)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    seconds = walk(given.run)
    print(json.dumps(seconds, indent=1))
    if given.out:
        given.out.write_text(json.dumps({"date": today(), "seconds": seconds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
