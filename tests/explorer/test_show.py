"""A result in a notebook: its card, its picture and its page, as a browser shows what a cell returns."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from explorer.browsers import cell_corner, local, needs_browser, opened
from explorer.samples import archive, config, metrics, summary
from explorer.test_pages import EMPTY, facts

from dqd.explorer.show import in_notebook
from dqd.saved.archive import SavedArchive


@pytest.fixture(scope="module")
def saved():
    found = archive((12, 9))
    fields = ("cell", "objective", "measures", "solutions", "found", "tessellation")
    about = {**config(), "summary": summary(found)}
    return SavedArchive(*(getattr(found, name) for name in fields), config=about, metrics=metrics())


def notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object())))


def test_outside_a_notebook_a_file_is_written_and_named(saved, capfd, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    page = saved.show()
    (written,) = tmp_path.glob("dqd-*/page.html")
    assert written.read_bytes() == page.content
    said = capfd.readouterr().err
    assert written.as_uri() in said
    assert page.size in said


def test_in_a_notebook_nothing_is_written(saved, capfd, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notebook(monkeypatch)
    assert f"{saved.show().size} in this notebook" in saved.show()._repr_html_()
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr().err == ""


def test_a_notebook_is_told_from_a_terminal(monkeypatch):
    assert not in_notebook()
    monkeypatch.setitem(sys.modules, "marimo", SimpleNamespace(running_in_notebook=lambda: True))
    assert in_notebook()
    monkeypatch.delitem(sys.modules, "marimo")
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert not in_notebook()  # IPython in a terminal
    notebook(monkeypatch)
    assert in_notebook()


def test_without_its_solutions_a_page_is_smaller(saved, monkeypatch):
    notebook(monkeypatch)
    assert len(saved.show(solutions=False).content) < len(saved.show().content)


@needs_browser
def test_a_cell_shows_the_card_and_the_page_works_in_its_frame(saved, tmp_path, monkeypatch):
    notebook(monkeypatch)
    outputs = [saved._repr_html_(), saved.show()._repr_html_()]
    (tmp_path / "notebook.html").write_text("<!doctype html><title>notebook</title>" + "".join(outputs))
    with opened() as browser:
        browser.driver.get(local(tmp_path / "notebook.html"))
        assert browser.run("return document.querySelector('img').naturalWidth") == 12
        browser.driver.switch_to.frame(browser.driver.find_element("css selector", "iframe"))
        browser.drawn()
        best = int(np.argmax(saved.objective))
        browser.until(lambda: facts(browser).get("cell") == str(saved.cell[best]) and browser.text(".solution"))
        assert "QD-score" in browser.text(".figures")
        assert len(browser.driver.find_elements("css selector", ".curve")) == 3
        empty = next(cell for cell in range(108) if cell not in set(saved.cell.tolist()))
        assert browser.picture().at(cell_corner(browser, empty, 12, 9)) == EMPTY
        browser.driver.find_element("css selector", "canvas.map").send_keys("\ue012")  # arrow to the left
        browser.until(lambda: facts(browser).get("cell") != str(saved.cell[best]))
        browser.driver.find_element("css selector", ".brand").click()
        assert browser.text("h1").startswith("SavedArchive")
        assert browser.errors() == []
        assert {url.split(":")[0] for url in browser.requests()} <= {"file", "data", "blob", "about", "chrome"}
