"""How fast the explorer is, measured in a real browser: python benchmarks/explore.py

A map of a million elites, from a run on disk, in headless Chromium without a GPU. Seconds are those of the browser's
own clock, from the start of a navigation; frames are counted while the map is panned and zoomed without a pause.
"""

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from explorer.browsers import CHROMIUM, cell_centre, opened
from explorer.samples import archive, commit, make_run, served

from dqd.explorer import atlas
from dqd.storage.writer import Writer

SIDE = 1000
TURNS = 5
FRAMES = """
const done = arguments[0], canvas = document.querySelector('canvas.map'), box = canvas.getBoundingClientRect();
const at = { clientX: box.left + 300, clientY: box.top + 300, bubbles: true, cancelable: true };
let frames = 0, begun = null;
function frame(now) {
  begun ??= now;
  if (now - begun > 3000) return done(1000 * frames / (now - begun));
  frames++;
  const phase = Math.floor((now - begun) / 500) % 2;
  canvas.dispatchEvent(new WheelEvent('wheel', { ...at, deltaY: phase ? 60 : -60 }));
  canvas.dispatchEvent(new PointerEvent('pointerdown', { ...at, pointerId: 1 }));
  const x = at.clientX + 9 * Math.cos(now / 90);
  canvas.dispatchEvent(new PointerEvent('pointermove', { ...at, clientX: x, pointerId: 1 }));
  canvas.dispatchEvent(new PointerEvent('pointermove', { ...at, clientX: at.clientX + 9, pointerId: 1 }));
  canvas.dispatchEvent(new PointerEvent('pointercancel', { ...at, pointerId: 1 }));
  requestAnimationFrame(frame);
}
canvas.setPointerCapture = () => {};
requestAnimationFrame(frame);
"""
CLICK = """
const [x, y, done] = arguments, canvas = document.querySelector('canvas.map'), box = canvas.getBoundingClientRect();
const before = document.querySelector('.solution');
const at = { clientX: box.left + x, clientY: box.top + y, bubbles: true, pointerId: 1 };
canvas.setPointerCapture = () => {};
const begun = performance.now();
canvas.dispatchEvent(new PointerEvent('pointerdown', at));
canvas.dispatchEvent(new PointerEvent('pointerup', at));
(function look() {
  const now = document.querySelector('.solution');
  if (now !== before && now?.querySelector('canvas')) requestAnimationFrame(() => done(performance.now() - begun));
  else setTimeout(look, 1);
})();
"""
FIRST_PICTURES = """
const done = arguments[0], canvas = document.querySelector('canvas.map'), box = canvas.getBoundingClientRect();
const draw = CanvasRenderingContext2D.prototype.drawImage, begun = performance.now();
let drawn = 0;
CanvasRenderingContext2D.prototype.drawImage = function (image, ...rest) {
  drawn += image instanceof ImageBitmap;
  return draw.call(this, image, ...rest);
};
(function frame() {
  if (drawn >= 100) return done(performance.now() - begun);
  drawn = 0;
  requestAnimationFrame(frame);
})();
const at = { clientX: box.left + 300, clientY: box.top + 300, bubbles: true, cancelable: true };
canvas.dispatchEvent(new WheelEvent('wheel', { ...at, deltaY: -1500 }));
"""


def main() -> None:
    found = {"command": "python benchmarks/explore.py", "python": platform.python_version()}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_run(root / "million", archive((SIDE, SIDE), filled=1.0, n=10), domain={"type": "Other"})
        found |= large(root / "million")
        found["new_checkpoint_seconds"] = live(root / "live")
        found |= pictures(root / "pictures")
    found["load_average"] = [round(each, 1) for each in os.getloadavg()]  # others may have been busy
    path = Path(__file__).parent / "results" / "explorer.json"
    path.write_text(json.dumps(found, indent=2) + "\n")
    print(path.read_text())


def large(run: Path) -> dict:
    """The first visit, when nothing is in memory; later ones; frames and clicks."""
    with served(run) as server, opened() as browser:
        browser.driver.set_script_timeout(60)
        visible = []
        for _ in range(TURNS):
            browser.driver.get(server.guard.link if not visible else server.address)
            browser.until(
                lambda: browser.run("return Boolean(document.querySelector('canvas.map')?.dataset.drawn)"), 60
            )
            visible.append(float(browser.run("return document.querySelector('canvas.map').dataset.drawn")) / 1000)
        frames = [browser.driver.execute_async_script(FRAMES) for _ in range(TURNS)]
        browser.driver.find_elements("css selector", ".zoomer button")[2].click()
        places = [cell_centre(browser, 100 + 150 * i, 800 - 120 * i, SIDE, SIDE) for i in range(TURNS)]
        clicks = [browser.driver.execute_async_script(CLICK, *place) for place in places]
        version = browser.driver.capabilities["browserVersion"]
    return {
        "browser": f"{Path(CHROMIUM).name} {version}, headless, no GPU, 1280 x 900",
        "elites": SIDE * SIDE,
        "visible_seconds_first": round(visible[0], 3),
        "visible_seconds_again": round(statistics.median(visible[1:]), 3),
        "frames_per_second": round(statistics.median(frames), 1),
        "frames_per_second_worst": round(min(frames), 1),
        "click_milliseconds": round(statistics.median(clicks), 1),
        "click_milliseconds_worst": round(max(clicks), 1),
    }


def pictures(run: Path) -> dict:
    """An atlas of 40,000 pictures: from the first zoom until 100 are seen at once, and frames among them."""
    saved = archive((200, 200), filled=1.0)
    make_run(run, saved, domain={"type": "Other"})
    random = np.random.default_rng(0)
    noise = random.integers(0, 255, (atlas.PAGE, 64, 64, 3), np.uint8)
    list(atlas.fill(atlas.folder_of(run), saved, lambda solutions: noise[: len(solutions)], 64))
    with served(run) as server, opened() as browser:
        browser.driver.set_script_timeout(60)
        browser.driver.get(server.guard.link)
        browser.drawn()
        first = browser.driver.execute_async_script(FIRST_PICTURES)
        frames = [browser.driver.execute_async_script(FRAMES) for _ in range(TURNS)]
    return {
        "pictures": len(saved),
        "first_100_pictures_milliseconds": round(first, 1),
        "pictures_frames_per_second": round(statistics.median(frames), 1),
        "pictures_frames_per_second_worst": round(min(frames), 1),
    }


def live(folder: Path) -> float:
    """From the commit of a checkpoint until the page shows it, the worst of some."""
    waited = []
    with Writer(folder) as writer, served(folder.parent / folder.name) as server, opened() as browser:
        commit(writer, 50, archive((100, 100)))
        browser.driver.get(server.guard.link)
        browser.until(lambda: "50 of 500" in browser.text(".figures"))
        for step in range(100, 100 + 50 * TURNS, 50):
            commit(writer, step, archive((100, 100), seed=step))
            begun = time.monotonic()
            browser.until(lambda step=step: f"{step} of 500" in browser.text(".figures"))
            waited.append(time.monotonic() - begun)
        browser.driver.get("about:blank")
    return round(max(waited), 2)


if __name__ == "__main__":
    main()
