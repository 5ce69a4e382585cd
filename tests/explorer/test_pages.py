"""The pages in a real browser: what is drawn is what is stored, and nothing is asked of anybody else."""

import csv
import dataclasses
import json

import httpx
import numpy as np
import pytest
from explorer.browsers import cell_centre, cell_corner, local, needs_browser, opened
from explorer.samples import archive, commit, make_run, served
from explorer.voronoi import PIXELS, Voronoi, voronoi_archive
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from typer.testing import CliRunner

from dqd.cli import app
from dqd.explorer import atlas
from dqd.storage.writer import Writer
from dqd.tessellations import kinds

pytestmark = needs_browser
EMPTY = (0xEC, 0xEA, 0xE4)


@pytest.fixture(scope="module")
def browser():
    with opened() as running:
        yield running


@pytest.fixture(scope="module")
def saved():
    return archive((12, 9))


@pytest.fixture(scope="module")
def server(tmp_path_factory, saved):
    root = tmp_path_factory.mktemp("runs")
    make_run(root / "flat", saved)
    make_run(root / "line", archive((30,), seed=1), domain={"type": "Other"}, command={"algorithm": "map-elites"})
    make_run(root / "deep", archive((6, 5, 4, 3), seed=2), domain={"type": "Other"}, seed=7)
    saved.save(root / "elites.csv")
    with served(root) as running:
        yield running


@pytest.fixture(autouse=True)
def quiet(browser):
    """No error in the console, and no request but to the server, whatever a test does."""
    yield
    assert browser.errors() == []
    allowed = ("http://127.0.0.1:", "data:", "blob:", "file:", "about:", "chrome")
    assert [url for url in browser.requests() if not url.startswith(allowed)] == []


def visit(browser, server, name):
    """The page of a run, by its name in the list."""
    browser.driver.get(server.guard.link)
    browser.until(lambda: browser.text("tbody"))
    links = browser.driver.find_elements("css selector", "td.name a")
    next(link for link in links if link.text == name).click()
    browser.until(lambda: browser.text("h1").startswith(name))
    browser.drawn()


def expected_colours(browser, values):
    """The colour of each value, on a straight scale from the least to the largest."""
    table = np.array(browser.import_("return [...(await import('/static/colours.js')).table('tide')]")).reshape(256, 3)
    low, high = float(values.min()), float(values.max())
    share = (values.astype(float) - low) / (high - low)
    return [tuple(table[index].tolist()) for index in np.floor(255 * share + 0.5).astype(int)]


def click(browser, x, y):
    browser.run("scrollTo(0, 0)")  # Selenium counts from the middle of what is in sight
    canvas = browser.driver.find_element("css selector", "canvas.map")
    width, height = canvas.size["width"], canvas.size["height"]
    ActionChains(browser.driver).move_to_element_with_offset(
        canvas, round(x - width / 2), round(y - height / 2)
    ).click().perform()


def facts(browser):
    """What the panel says of the chosen elite."""
    names = [cell.text for cell in browser.driver.find_elements("css selector", ".facts dt")]
    values = browser.run(
        "return [...document.querySelectorAll('.facts dd')].map((cell) => cell.firstChild.textContent)"
    )
    return {name: value.replace("−", "-").replace(",", "") for name, value in zip(names, values, strict=False)}


def test_the_list_shows_every_run_and_archive(browser, server):
    browser.driver.get(server.guard.link)
    browser.until(lambda: browser.text("tbody"))
    names = [cell.text for cell in browser.driver.find_elements("css selector", "td.name")]
    assert sorted(names) == ["deep", "elites.csv", "flat", "line"]
    browser.driver.find_element("css selector", "input[type=search]").send_keys("map-elites")
    assert [cell.text for cell in browser.driver.find_elements("css selector", "td.name")] == ["line"]


def test_the_list_is_sorted_by_the_column_that_is_clicked(browser, server):
    browser.driver.get(server.guard.link)
    browser.until(lambda: browser.text("tbody"))
    for expected in ([7.0, 0.0, 0.0], [0.0, 0.0, 7.0]):
        next(b for b in browser.driver.find_elements("css selector", "th button") if b.text.startswith("Seed")).click()
        seeds = [cell.text for cell in browser.driver.find_elements("css selector", "td.seed")]
        assert [float(seed) for seed in seeds if seed != "–"] in (expected, expected[::-1])
        assert seeds[-1] == "–"  # what has no seed comes last either way


def test_every_cell_has_the_colour_of_its_value(browser, server, saved):
    visit(browser, server, "flat")
    browser.driver.find_element("css selector", "h1").click()  # the pointer leaves the map
    expected = expected_colours(browser, saved.objective)
    values = dict(zip(saved.cell.tolist(), expected, strict=True))
    picture = browser.picture()
    for cell in range(12 * 9):
        drawn = picture.at(cell_corner(browser, cell, 12, 9))
        assert drawn == values.get(cell, EMPTY), cell


def test_fields_of_the_users_give_colours_and_are_told_of_an_elite(browser, saved, tmp_path):
    own = dataclasses.replace(saved, fields={"energy": saved.objective[::-1].copy(), "forces": saved.measures})
    make_run(tmp_path / "own", own)
    make_run(tmp_path / "flat", saved)
    with served(tmp_path) as server:
        visit(browser, server, "own")
        choice = next(each for each in browser.driver.find_elements("css selector", "select") if "energy" in each.text)
        assert "forces" not in choice.text
        Select(choice).select_by_visible_text("energy")
        browser.drawn()
        browser.driver.find_element("css selector", "h1").click()
        values = dict(zip(own.cell.tolist(), expected_colours(browser, own.fields["energy"]), strict=True))
        picture = browser.picture()
        for cell in own.cell.tolist():
            assert picture.at(cell_corner(browser, cell, 12, 9)) == values[cell], cell
        click(browser, *cell_centre(browser, *divmod(int(own.cell[3]), 9), 12, 9))
        browser.until(lambda: "energy" in facts(browser))
        assert float(facts(browser)["energy"]) == pytest.approx(own.fields["energy"][3], rel=1e-5)


def test_a_click_shows_exactly_that_elite(browser, server, saved):
    visit(browser, server, "flat")
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    for row in (3, 40, len(saved) - 1):
        cell = int(saved.cell[row])
        click(browser, *cell_centre(browser, *divmod(cell, 9), 12, 9))
        browser.until(lambda cell=cell: facts(browser).get("cell") == str(cell))
        shown = facts(browser)
        assert float(shown["objective"]) == pytest.approx(saved.objective[row], rel=1e-7)
        assert float(shown["hand, x"]) == pytest.approx(saved.measures[row, 0], rel=1e-6)
        assert float(shown["hand, y"]) == pytest.approx(saved.measures[row, 1], rel=1e-6)
        assert shown["found"] == f"iteration {saved.found[row]}"
        browser.until(lambda: browser.text(".solution"))
        browser.driver.find_element("css selector", ".solution button").click()
        copied = browser.until(lambda: browser.run("const text = window.copied; window.copied = null; return text"))
        assert json.loads(copied) == saved.solutions[row].tolist()
        assert f"cell={cell}" in browser.driver.current_url


def test_a_click_draws_the_arm(browser, server, saved):
    """The hand is where the solution puts it."""
    visit(browser, server, "flat")
    row = int(np.argmax(saved.objective))
    browser.until(lambda: browser.text(".solution"))
    side = browser.run("return document.querySelector('.picture').clientWidth")
    height = browser.run("return document.querySelector('.picture').clientHeight")
    directions = np.cumsum(saved.solutions[row].astype(float))
    unit = min(side, height) * 0.92 / 12
    x, y = side / 2 + np.cos(directions).sum() * unit, height / 2 - np.sin(directions).sum() * unit
    assert browser.picture(".picture").at((x, y)) == (0xC8, 0x4A, 0x09)


def test_a_link_leads_to_its_cell(browser, server, saved):
    visit(browser, server, "flat")
    address = browser.driver.current_url.partition("?")[0]
    browser.driver.get("about:blank")
    browser.driver.get(f"{address}?cell={saved.cell[5]}")
    browser.until(lambda: facts(browser).get("cell") == str(saved.cell[5]))


def test_arrow_keys_go_from_cell_to_cell(browser, server, saved):
    visit(browser, server, "flat")
    occupied = set(saved.cell.tolist())
    here = int(saved.cell[np.argmax(saved.objective)])
    canvas = browser.driver.find_element("css selector", "canvas.map")
    for key, (du, dv) in ((Keys.ARROW_LEFT, (-1, 0)), (Keys.ARROW_UP, (0, 1)), (Keys.ARROW_RIGHT, (1, 0))):
        u, v = divmod(here, 9)
        ahead = [(u + i * du) * 9 + v + i * dv for i in range(1, 12) if 0 <= u + i * du < 12 and 0 <= v + i * dv < 9]
        here = next((cell for cell in ahead if cell in occupied), here)
        canvas.send_keys(key)
        browser.until(lambda here=here: facts(browser).get("cell") == str(here))


def test_the_nearest_elite_is_found(browser, server, saved):
    visit(browser, server, "flat")
    wanted = np.array([0.31, 1.4])
    row = int(np.argmin(np.sum(((saved.measures - wanted) / [1, 2]) ** 2, axis=1)))
    for field, value in zip(browser.driver.find_elements("css selector", ".finder input"), wanted, strict=True):
        field.send_keys(str(value))
    browser.driver.find_element("css selector", ".finder button[type=submit]").click()
    browser.until(lambda: facts(browser).get("cell") == str(saved.cell[row]))


def test_zooming_in_draws_pictures_into_the_cells(browser, server):
    visit(browser, server, "flat")
    before = browser.run("return document.querySelector('canvas.map').toDataURL()")
    for _ in range(4):
        browser.driver.find_element("css selector", ".zoomer button").click()
    asked = browser.until(lambda: [url for url in browser.requests() if "solutions?cells=" in url and "," in url])
    assert asked
    assert browser.run("return document.querySelector('canvas.map').toDataURL()") != before


def test_zooming_in_shows_the_pictures_that_were_drawn(browser, tmp_path):
    saved = archive((40, 40), filled=0.9)
    make_run(tmp_path / "run", saved, domain={"type": "Other"})
    shades = np.random.default_rng(1).integers(0, 255, (len(saved), 3)).astype(np.uint8)
    rows = {tuple(solution): row for row, solution in enumerate(saved.solutions)}

    def draw(solutions):
        return np.stack([np.broadcast_to(shades[rows[tuple(each)]], (8, 8, 3)) for each in solutions])

    list(atlas.fill(tmp_path / "run" / "atlas", saved, draw, 8))
    with served(tmp_path) as server:
        browser.driver.get(server.guard.link)
        browser.until(lambda: browser.text("h1").startswith("run"))
        browser.drawn()
        best = int(np.argmax(saved.objective))
        browser.until(lambda: browser.picture(".picture").at((100, 100)) == tuple(shades[best].tolist()))
        canvas = browser.driver.find_element("css selector", "canvas.map")
        for _ in range(4):
            canvas.send_keys("+")  # towards the chosen cell
        place = browser.until(lambda: _chosen_place(browser))
        browser.until(lambda: browser.picture().at(place) == tuple(shades[best].tolist()))
        run = httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"][0]["id"]
        page = httpx.get(f"{server.address}/api/runs/{run}/page.html", cookies=server.cookie).content
        browser.driver.get("about:blank")
    (tmp_path / "one.html").write_bytes(page)
    browser.driver.get(local(tmp_path / "one.html"))
    browser.drawn()
    browser.until(lambda: browser.picture(".picture").at((100, 100)) == tuple(shades[best].tolist()))


def _chosen_place(browser):
    """The middle of the picture that the chosen cell shows: the map keeps that cell in sight."""
    picture = browser.picture().pixels
    black = np.all(picture == (0x14, 0x16, 0x1A), axis=-1)
    rows, columns = np.flatnonzero(black.sum(1) > 20), np.flatnonzero(black.sum(0) > 20)
    return (columns.mean(), rows.mean()) if len(rows) and len(columns) else None


def test_one_measure_is_a_strip_and_four_measures_have_sliders(browser, server):
    visit(browser, server, "line")
    assert browser.run("return document.querySelector('canvas.map').clientHeight") < 400
    visit(browser, server, "deep")
    assert len(browser.driver.find_elements("css selector", ".holder input")) == 2
    browser.run("const s = document.querySelector('.holder input'); s.value = 2; s.dispatchEvent(new Event('input'))")
    assert browser.text(".holder output") == "1.5 to 2.25"
    browser.drawn()


def test_the_best_over_all_others_is_shown(browser, server):
    visit(browser, server, "deep")
    browser.driver.find_element("css selector", "h1").click()
    saved = archive((6, 5, 4, 3), seed=2)
    position = np.stack(np.unravel_index(saved.cell, (6, 5, 4, 3)), axis=1)
    expected = expected_colours(browser, saved.objective)
    for u, v in ((0, 0), (2, 3), (5, 4)):
        here = np.flatnonzero((position[:, 0] == u) & (position[:, 1] == v))
        best = here[np.argmax(saved.objective[here])]
        assert browser.picture().at(cell_centre(browser, u, v, 6, 5)) == expected[best]


def test_cells_of_another_kind_are_drawn_by_their_pixels(browser, tmp_path, monkeypatch):
    monkeypatch.setitem(kinds.KINDS, Voronoi.kind, Voronoi)
    saved = voronoi_archive()
    make_run(tmp_path / "run", saved, domain={"type": "Other"})
    with served(tmp_path) as server:
        browser.driver.get(server.guard.link)
        browser.until(lambda: browser.text("h1").startswith("run"))
        browser.drawn()
        browser.driver.find_element("css selector", "h1").click()
        picture, colours = browser.picture(), expected_colours(browser, saved.objective)
        for row in range(0, len(saved), 5):
            column, line = (int(measure * PIXELS) for measure in saved.measures[row])
            drawn = saved.tessellation.raster().cells[line, column]
            if drawn == saved.cell[row] and row != np.argmax(saved.objective):
                assert picture.at(cell_centre(browser, column, line, PIXELS, PIXELS)) == colours[row]
        best = int(np.argmax(saved.objective))
        assert facts(browser)["cell"] == str(saved.cell[best])
        browser.driver.get("about:blank")


def test_a_box_gives_a_table_of_its_elites(browser, server, saved):
    visit(browser, server, "flat")
    browser.run("scrollTo(0, 0)")
    canvas = browser.driver.find_element("css selector", "canvas.map")
    middle = np.array([canvas.size["width"], canvas.size["height"]]) / 2
    begin = np.array(cell_centre(browser, 3, 7, 12, 9)) - middle
    way = np.array(cell_centre(browser, 6, 2, 12, 9)) - middle - begin
    act = ActionChains(browser.driver).move_to_element_with_offset(canvas, *begin.round().astype(int).tolist())
    act.key_down(Keys.SHIFT).click_and_hold().move_by_offset(*way.round().astype(int).tolist()).release()
    act.key_up(Keys.SHIFT).perform()
    inside = [cell for cell in saved.cell.tolist() if 3 <= cell // 9 <= 6 and 2 <= cell % 9 <= 7]
    browser.until(lambda: browser.text(".selection h2").startswith(f"{len(inside)} elites"))
    cells = [int(button.text) for button in browser.driver.find_elements("css selector", ".selection button.link")]
    assert sorted(cells) == inside


def test_keys_alone_select_a_box(browser, server, saved):
    visit(browser, server, "flat")
    cell = 4 * 9 + 4
    click(browser, *cell_centre(browser, 4, 4, 12, 9))
    here = int(facts(browser)["cell"]) if cell not in saved.cell else cell
    u, v = divmod(here, 9)
    act = ActionChains(browser.driver).key_down(Keys.SHIFT)
    act.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN).key_up(Keys.SHIFT).perform()
    inside = [c for c in saved.cell.tolist() if u <= c // 9 <= min(u + 2, 11) and max(v - 1, 0) <= c % 9 <= v]
    browser.until(lambda: browser.text(".selection h2").startswith(f"{len(inside)} elites"))
    cells = [int(button.text) for button in browser.driver.find_elements("css selector", ".selection button.link")]
    assert sorted(cells) == inside
    assert browser.text("#say") == f"{len(inside)} elites in the box"


def test_everything_can_be_reached_by_the_tab_key_and_has_a_name(browser, server):
    visit(browser, server, "deep")
    wanted = browser.run(
        "return [...document.querySelectorAll('a, button:not(:disabled), select, input, summary, canvas.map')]"
        ".filter((each) => each.checkVisibility()).length"
    )
    browser.run("document.querySelector('.skip').focus()")
    script = """const e = document.activeElement;
        const label = e.closest('label')?.textContent ?? '';
        return [e.getAttribute('aria-label') || label || e.textContent, getComputedStyle(e).outlineStyle]"""
    names = ["Skip to the page"]
    for _ in range(wanted - 1):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        name, outline = browser.run(script)
        assert name.strip()
        assert outline != "none", name
        names.append(name)
    assert len(set(names)) == len(names) == wanted
    unnamed = "return [...document.querySelectorAll('canvas, svg')].filter((e) => !e.getAttribute('aria-label')).length"
    assert browser.run(unnamed) == 0


def test_the_comparison_shows_what_the_command_prints(browser, tmp_path):
    for i in range(6):
        make_run(tmp_path / f"run-{i}", archive(seed=i), command={"algorithm": "ab"[i % 2]}, seed=i)
    printed = CliRunner().invoke(app, ["compare", str(tmp_path), "--format", "csv"]).output
    reached, tested = (list(csv.DictReader(part.splitlines())) for part in printed.strip().split("\n\n"))
    with served(tmp_path) as server:
        runs = httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"]
        browser.driver.get(server.guard.link)
        browser.until(lambda: browser.text("tbody"))
        browser.run("location.hash = arguments[0]", "#/compare?runs=" + ",".join(run["id"] for run in runs))
        browser.until(lambda: browser.text("h1") == "Compare" and browser.text(".map-row figcaption"))
        shown = [cell.text for cell in browser.driver.find_elements("css selector", ".compare td")]
        browser.driver.get("about:blank")
    for row in reached:
        interval = f"{float(row['low']):.3f} to {float(row['high']):.3f}"
        expected = [row["group"], row["trials"], f"{float(row['mean']):.3f}", interval]
        at = [i for i in range(len(shown)) if shown[i : i + 4] == expected]
        assert at, expected
        assert shown[at[0] + 4 : at[0] + 6] == [f"{float(row['median']):.3f}", f"{float(row['iqm']):.3f}"]
    for row in tested:
        assert f"{100 * float(row['effect']):.0f} %" in shown


def test_an_exported_archive_opens(browser, server, saved):
    visit(browser, server, "elites.csv")
    assert f"{len(saved)}" in browser.text(".figures")


def test_a_new_checkpoint_of_a_live_run_appears_by_itself(browser, server, tmp_path):
    first, second = archive((12, 9), seed=3, filled=0.3), archive((12, 9), seed=4, filled=0.9)
    with Writer(tmp_path / "live") as writer, served(tmp_path) as live:
        commit(writer, 100, first)
        browser.driver.get(live.guard.link)
        browser.until(lambda: "100 of 500" in browser.text(".figures"))
        assert browser.text(".badge") == "running"
        commit(writer, 200, second)
        browser.until(lambda: "200 of 500" in browser.text(".figures"))
        browser.driver.find_element("css selector", "h1").click()
        browser.drawn()
        assert (
            browser.picture().at(cell_corner(browser, int(second.cell[0]), 12, 9))
            == expected_colours(browser, second.objective)[0]
        )
        writer.__exit__()
        browser.until(lambda: browser.text(".badge") == "stopped")
        browser.driver.get("about:blank")


def test_curves_go_against_iterations_evaluations_and_seconds(browser, tmp_path):
    with Writer(tmp_path / "run") as writer:
        commit(writer, 400, archive((12, 9)))
    with served(tmp_path) as server:
        browser.driver.get(server.guard.link)
        browser.until(lambda: len(browser.driver.find_elements("css selector", ".curve")) == 4)
        assert browser.text(".curve:last-child .name") == "restarts"
        ends = {"iterations": [20, 400], "evaluations": [820, 14_500], "seconds": [0, 16]}
        for button in browser.driver.find_elements("css selector", ".curves .segment"):
            button.click()
            label = browser.run("return document.querySelector('.curve').getAttribute('aria-label')")
            assert label.startswith(f"QD-score against {button.text}: QD-score ends at 40")
            assert _ends_of_axis(browser) == pytest.approx(ends[button.text], abs=0.5)
        browser.driver.get("about:blank")


def _ends_of_axis(browser):
    """What the ends of the horizontal axis mean, from where its labels stand."""
    marks = browser.run(
        "return [...document.querySelector('.curve').querySelectorAll('text[text-anchor=middle]')]"
        ".map((text) => [Number(text.getAttribute('x')), Number(text.textContent.replaceAll(',', ''))])"
    )
    slope, start = np.polyfit(*np.array(marks).T, 1)
    return [slope * x + start for x in (48, 320 - 24)]


def test_a_replay_shows_the_map_as_it_was(browser, tmp_path):
    first, second = archive((12, 9), seed=3, filled=0.3), archive((12, 9), seed=4, filled=0.9)
    with Writer(tmp_path / "live") as writer:
        commit(writer, 100, first)
        commit(writer, 500, second)
    with served(tmp_path) as live:
        browser.driver.get(live.guard.link)
        browser.until(lambda: browser.run("return document.querySelector('.replay')?.hidden === false"))
        go = "const s = document.querySelector('.replay input'); s.value = 0; s.dispatchEvent(new Event('input'))"
        browser.run(go)
        empty = next(cell for cell in second.cell.tolist() if cell not in set(first.cell.tolist()))
        at = cell_centre(browser, *divmod(empty, 9), 12, 9)
        browser.until(lambda: browser.picture().at(at) == EMPTY)
        assert "iteration 100" in browser.text(".replay-words")
        browser.driver.get("about:blank")


def test_a_page_in_one_file_works_alone(browser, server, saved, tmp_path):
    run = next(
        r for r in httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"] if r["name"] == "flat"
    )
    answer = httpx.get(f"{server.address}/api/runs/{run['id']}/page.html?solutions=1", cookies=server.cookie)
    (tmp_path / "one.html").write_bytes(answer.content)
    browser.requests()
    browser.driver.get(local(tmp_path / "one.html"))
    browser.drawn()
    cell = int(saved.cell[7])
    click(browser, *cell_centre(browser, *divmod(cell, 9), 12, 9))
    browser.until(lambda: facts(browser).get("cell") == str(cell) and browser.text(".solution"))
    assert float(facts(browser)["objective"]) == pytest.approx(saved.objective[7], rel=1e-7)
    assert {url.split(":")[0] for url in browser.requests()} <= {"file", "data", "blob"}


def test_the_theme_is_the_systems_and_follows_it(browser, server):
    visit(browser, server, "flat")
    for wish in ("dark", "light"):
        feature = {"name": "prefers-color-scheme", "value": wish}
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        browser.until(lambda wish=wish: browser.run("return document.documentElement.dataset.theme") == wish)
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) > 382) == (wish == "light")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_both_themes_and_a_narrow_screen_draw(browser, server):
    visit(browser, server, "flat")
    browser.driver.find_element("css selector", "#top button").click()
    browser.driver.find_element("css selector", "#top button").click()
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.driver.set_window_size(500, 900)
    browser.drawn()
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    browser.driver.find_element("css selector", "#top button").click()
    browser.driver.set_window_size(1280, 900)
