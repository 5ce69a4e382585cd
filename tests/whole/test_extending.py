"""docs/extending.md: its code is that of the examples, which run, and keep what the library keeps."""

import re
import runpy
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.image import imread
from small import MEGA, score

import dqd
from dqd.conformance import check_emitter
from dqd.conformance.checks import check_ask_tell, check_order, check_precision

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "extending").glob("*.py"))


def names_of(name):
    """What an example defines."""
    return runpy.run_path(str(ROOT / "examples" / "extending" / f"{name}.py"))


def sunflower():
    return names_of("tessellation")["sunflower"](40, 3)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_page_shows_the_example_as_it_is(path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL)
    assert path.read_text() in blocks
    assert len(path.read_text().splitlines()) <= 80


@pytest.mark.parametrize(
    ("name", "said", "least"),
    [
        ("tessellation", r"coverage ([0-9.]+) %", [90]),
        ("strategy", r"coverage ([0-9.]+) %", [95, 90]),
        ("emitter", r"coverage ([0-9.]+) %", [70, 70]),
        ("domain", r"best return ([0-9.]+) %", [9, 9]),
        ("scorer", r"coverage ([0-9.]+) %", [70]),
    ],
)
def test_an_example_runs(name, said, least, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "extending" / f"{name}.py"), run_name="__main__")
    words = capsys.readouterr().out
    numbers = [float(number) for number in re.findall(said, words)]
    assert len(numbers) == len(least)
    assert all(number > bound for number, bound in zip(numbers, least, strict=True))
    assert all(imread(picture).std() > 0.1 for picture in tmp_path.glob("*.png"))
    assert "disagrees" not in words


def test_every_example_is_tested():
    assert [path.stem for path in EXAMPLES] == ["domain", "emitter", "scorer", "strategy", "tessellation"]


# A tessellation -------------------------------------------------------------------------------------------------------


def test_a_run_with_the_tessellation_is_kept_resumed_read_back_and_drawn(tmp_path):
    cells, options = sunflower(), {"iterations": 20, "chunk": 10}
    settings = {"function": score, "emitter": MEGA, "tessellation": cells, **options}
    whole = illuminate_on(**settings)
    illuminate_on(**settings | {"out": tmp_path / "run", "until": lambda metrics: metrics["iteration"] == 10})
    resumed = illuminate_on(**settings | {"out": tmp_path / "run"})
    saved = dqd.load(tmp_path / "run")
    assert type(saved.tessellation).__name__ == "Voronoi"
    for found in (resumed.elites, saved):
        np.testing.assert_array_equal(found.cell, whole.elites.cell)
        np.testing.assert_array_equal(found.solutions, whole.elites.solutions)
    for suffix in (".csv", ".npz", ".safetensors"):
        again = dqd.load(saved.save(tmp_path / f"archive{suffix}"))
        np.testing.assert_array_equal(again.tessellation.centroids, saved.tessellation.centroids)
    saved.plot(tmp_path / "map.png")
    assert imread(tmp_path / "map.png").std() > 0.1
    np.testing.assert_array_equal(saved.retrieve(saved.measures).solutions, saved.solutions)


def illuminate_on(tessellation, function, emitter, **options):
    return dqd.illuminate(function, emitter, tessellation, x0=jnp.zeros(6), progress=False, **options)


def test_the_tessellation_serves_numpy_and_jax_alike():
    cells, measures = sunflower(), np.random.default_rng(0).normal(0, 2, (500, 2)).astype(np.float32)
    cell = cells.index_of(measures)
    nearest = np.linalg.norm(measures[:, None] - cells.centroids, axis=-1).argmin(axis=-1)
    np.testing.assert_array_equal(cell, nearest)
    np.testing.assert_array_equal(cell, cells.index_of(jnp.asarray(measures)))
    np.testing.assert_array_equal(cells.index_of(cells.centers()), np.arange(40))
    assert not cells.misplaced(cell, measures).any()
    assert cells.misplaced((cell + 1) % 40, measures).all()


def test_ask_tell_takes_the_tessellation():
    search = dqd.AskTell(dqd.map_elites(0.5, batch_size=8, initial_population=0), sunflower(), x0=np.zeros(6))
    for _ in range(3):
        solutions = search.ask()
        search.tell(-np.sum(solutions**2, axis=1), solutions[:, :2])
    assert search.coverage > 0
    assert len(search.result().archive.to_numpy()) == len(search.archive)


def test_a_file_that_holds_no_such_tessellation_is_refused(tmp_path):
    saved = illuminate_on(sunflower(), score, MEGA, iterations=20, chunk=10).archive.to_numpy()
    arrays = saved.arrays() | {"voronoi_centroids": np.zeros(3)}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(dqd.UnreadableError, match="centroids: expected finite numbers"):
        dqd.load(tmp_path / "bad.npz")


# An emitter, and a strategy -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [check_ask_tell, check_order, pytest.param(check_emitter, marks=pytest.mark.long)])
def test_the_emitter_keeps_what_every_emitter_must(check):
    jumps = names_of("emitter")["Jumps"]
    check(lambda scale=1.0: jumps(5.0 * scale, jumps=12, initial_population=0))


def test_the_strategy_has_the_precision_of_the_search():
    es_mega = names_of("strategy")["es_mega"]
    check_precision(lambda scale=1.0: es_mega(1.0 * scale, batch_size=13))
