"""What a notebook shows of a result: its map, its figures, and no markup of anybody's."""

import base64
import io
import re

import matplotlib
import numpy as np
import pytest
from explorer.samples import archive, config
from PIL import Image

import dqd
from dqd.figures import card, draw


def picture(html):
    (content,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    with Image.open(io.BytesIO(base64.b64decode(content))) as image:
        return np.asarray(image.convert("RGBA"))


def test_the_map_has_the_colours_of_its_elites_and_empty_cells_let_the_page_through():
    saved = archive((5, 4), filled=0.5)
    pixels = picture(saved._repr_html_())[::-1]
    values = np.full(20, np.nan)
    values[saved.cell] = saved.objective
    values = values.reshape(5, 4).T
    best = np.unravel_index(np.nanargmax(values), values.shape)
    assert tuple(pixels[best]) == tuple((255 * np.array(matplotlib.colormaps[draw.COLORS](1.0))).round().astype(int))
    assert np.array_equal(pixels[..., 3] < 255, np.isnan(values))


def test_the_figures_are_those_of_the_archive():
    saved = archive((30, 20), config={**config(), "summary": {"iterations": 500, "evaluations": 18_000}})
    html = saved._repr_html_()
    for part in (f"{saved.qd_score:,.6g}", f"{saved.coverage:.2f} %", f"{len(saved):,} of 600 cells", "18,000"):
        assert part in html
    assert 'alt="Map of 420 elites in 600 cells"' in html


def test_large_archives_have_small_cards():
    assert len(archive((400, 300), n=1)._repr_html_()) < 30_000


@pytest.mark.parametrize("shape", [(40,), (4, 3, 2), (2,) * 7])
def test_any_number_of_measures_has_a_card(shape):
    assert picture(archive(shape)._repr_html_()).size


def test_words_of_others_are_no_markup():
    saved = archive(config={"summary": {"iterations": "<script>alert(1)</script>"}, "domain": {"type": "<b>"}})
    assert "<script" not in saved._repr_html_()
    assert "&lt;i&gt;" in card._table("<i>", {"<i>": "<i>"})


def test_live_ones_and_seeds_have_cards(results):
    assert "Results of 2 seeds" in results._repr_html_()
    assert re.findall('alt="Map of seed (\\d)"', results._repr_html_()) == ["3", "5"]
    for each in (results[0], results[0].archive):
        assert f"<strong>{type(each).__name__}</strong>" in each._repr_html_()
    empty = dqd.Archive.empty(dqd.Grid([0, 0], [1, 1], [6, 5]), 2)
    assert "0 of 30 cells" in empty._repr_html_()
    assert results.state.archive._repr_html_() == f"<code>{results.state.archive!r}</code>"


def test_of_several_seeds_the_best_is_shown(results, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    best = max(results, key=lambda result: result.qd_score)
    assert results.show(solutions=False).content == best.show(solutions=False).content
