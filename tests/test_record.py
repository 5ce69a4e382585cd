"""Records on disk: plain, whole or absent, and never overwritten."""

import json
import math
import stat

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import dqd
from dqd import record

ARRAYS = {"cell": np.arange(3, dtype=np.int32), "solutions": np.arange(6.0).reshape(2, 3).T}  # not contiguous
METRICS = [{"iteration": i, "qd_score": i / 3} for i in range(1, 4)]
CONFIG = {"note": "two\nlines", "sigma": 0.1}


def score(x):
    return 50 - jnp.sum(x**2), x[:2]


def run(**options):
    grid = dqd.Grid([-3, -2], [3, 2], [6, 5])
    emitter = dqd.map_elites(0.5, batch_size=4, initial_population=8)
    settings = {"x0": jnp.zeros(3), "iterations": 6, "progress": False}
    return dqd.illuminate(score, emitter, grid, **{**settings, **options})


@pytest.fixture(scope="module")
def result():
    return run()


def strictly(text):
    """JSON as other languages read it, without NaN and Infinity."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_what_is_written_is_read(tmp_path):
    back = record.read(record.write(tmp_path / "deep" / "run", CONFIG, METRICS, ARRAYS))
    assert CONFIG.items() <= back.config.items()
    assert back.metrics == METRICS
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(back.arrays[name], array)
        assert back.arrays[name].dtype == array.dtype


def test_a_run_is_three_plain_files_that_others_may_read(tmp_path, result):
    folder = result.save(tmp_path / "run")
    assert sorted(path.name for path in folder.iterdir()) == ["archive.safetensors", "config.json", "metrics.jsonl"]
    config = strictly((folder / "config.json").read_text())
    assert (config["format"], config["dqd"]) == (1, dqd.__version__)
    assert config["emitter"]["operator"] == {"type": "Gaussian", "sigma": 0.5}
    assert config["archive_minimum"] == "-inf"
    assert config["summary"]["evaluations"] == 8 + 6 * 4
    rows = [strictly(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([row["qd_score"] for row in rows], result.history["qd_score"])
    arrays = load_file(folder / "archive.safetensors")
    np.testing.assert_array_equal(arrays["measures"], result.elites.measures)
    np.testing.assert_array_equal(arrays["found"], result.elites.found)
    assert (arrays["grid_lower"].tolist(), arrays["grid_shape"].tolist()) == ([-3, -2], [6, 5])
    for path in (folder, *folder.iterdir()):
        assert path.stat().st_mode & stat.S_IROTH


def test_an_archive_without_elites_is_written_too(tmp_path):
    search = dqd.AskTell(dqd.cma_mega(1.0, batch_size=5), dqd.Grid([0], [1], [4]), x0=np.zeros(3))
    folder = search.result().save(tmp_path / "run")
    strictly((folder / "config.json").read_text())
    back = record.read(folder)
    assert (back.metrics, back.arrays["solutions"].shape) == ([], (0, 3))
    assert back.config["summary"]["best"] is None


def test_long_histories_are_thinned_and_keep_their_last_row(tmp_path, result):
    rows = record.read(result.save(tmp_path / "run", rows=2)).metrics
    assert [row["iteration"] for row in rows] == [3, 6]


def test_every_seed_has_a_folder_of_its_own(tmp_path):
    results = run(seeds=[3, 8], out=tmp_path / "runs")
    for each in results:
        back = record.read(tmp_path / "runs" / f"seed-{each.seed}")
        assert back.config["summary"]["seed"] == each.seed
        np.testing.assert_array_equal(back.arrays["objective"], each.elites.objective)


@pytest.mark.parametrize("there", ["a file", "a folder with files"])
def test_what_is_there_is_never_overwritten(tmp_path, there, result):
    target = tmp_path / "run"
    if there == "a folder with files":
        target.mkdir()
    mine = target if there == "a file" else target / "mine"
    mine.write_text("mine")
    called = []
    with pytest.raises(FileExistsError, match="already exists"):
        result.save(target)
    with pytest.raises(FileExistsError, match="already exists"):
        run(out=target, until=called.append)
    assert called == []  # it was said before the run, not after
    assert mine.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_empty_folder_is_filled(tmp_path, result):
    (tmp_path / "run").mkdir()
    assert record.read(result.save(tmp_path / "run")).config["summary"]["iterations"] == 6


@pytest.mark.parametrize("broken", ["config", "metrics", "arrays"])
def test_a_record_is_whole_or_absent(tmp_path, broken):
    def failing():
        yield METRICS[0]
        raise OSError("disk full")

    given = {"config": CONFIG, "metrics": METRICS, "arrays": ARRAYS}
    given[broken] = {"config": {"x": object()}, "metrics": failing(), "arrays": {"x": np.array([object()])}}[broken]
    with pytest.raises(Exception, match=r"disk full|serializable|object"):
        record.write(tmp_path / "run", **given)
    assert list(tmp_path.iterdir()) == []


def test_another_format_is_refused_by_name(tmp_path):
    folder = record.write(tmp_path / "run", {"format": 99}, METRICS, ARRAYS)
    with pytest.raises(ValueError, match="record format 99, this version reads 1"):
        record.read(folder)


def test_half_a_record_says_what_is_missing(tmp_path):
    folder = record.write(tmp_path / "run", CONFIG, METRICS, ARRAYS)
    (folder / "metrics.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"metrics\.jsonl missing"):
        record.read(folder)


def test_descriptions_become_plain_json():
    described = record.describe({"emitter": dqd.cma_mega(0.5, 0.1), "list": (1, None, math.inf), "array": np.eye(2)})
    assert strictly(json.dumps(described)) == described
    assert described["emitter"]["type"] == "Arborescence"
    assert described["emitter"]["arguments"] == {"learning_rate": 0.1}
    assert described["emitter"]["optimizer"].endswith(".sgd")
    assert described["list"] == [1, None, "inf"]
    assert described["array"] == [[1.0, 0.0], [0.0, 1.0]]
