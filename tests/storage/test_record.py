"""Records on disk: plain, whole or absent, and never overwritten."""

import dataclasses
import hashlib
import json
import math
import stat
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import dqd
from dqd.safe.text import MAX_LINES
from dqd.storage import durable, record
from dqd.storage.settings import differences
from dqd.storage.writer import Writer

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


def test_a_run_is_plain_files_that_others_may_read(tmp_path, result):
    folder = result.save(tmp_path / "run")
    step = folder / "steps" / "000000006"
    assert {path.name for path in folder.iterdir()} == {"config.json", "steps"}
    assert {path.name for path in step.iterdir()} == {"manifest.json", "metrics.jsonl", "archive.safetensors"}
    config = strictly((folder / "config.json").read_text())
    assert (config["format"], config["dqd"]) == (2, dqd.__version__)
    assert config["emitter"]["operator"] == {"type": "Gaussian", "sigma": 0.5}
    assert config["archive_minimum"] == "-inf"
    assert strictly((step / "manifest.json").read_text())["summary"]["evaluations"] == 8 + 6 * 4
    rows = [strictly(line) for line in (step / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([row["qd_score"] for row in rows], result.history["qd_score"])
    arrays = load_file(step / "archive.safetensors")
    np.testing.assert_array_equal(arrays["measures"], result.elites.measures)
    np.testing.assert_array_equal(arrays["found"], result.elites.found)
    assert (arrays["grid_lower"].tolist(), arrays["grid_shape"].tolist()) == ([-3, -2], [6, 5])
    for path in (folder, *folder.rglob("*")):
        assert path.stat().st_mode & stat.S_IROTH


@pytest.mark.parametrize("kind", list(durable.KINDS))
def test_arrays_are_written_as_safetensors_reads_them(tmp_path, kind):
    arrays = {
        "matrix": np.arange(6).reshape(2, 3).T.astype(kind),
        "empty": np.zeros((0, 4), kind),
        "one": np.ones((), kind),
    }
    arrays["byte"] = np.ones(3, np.int8)  # so that what follows a short array is aligned
    entry = durable.write_file(tmp_path / "x", arrays)
    read = load_file(tmp_path / "x")
    assert entry == {"size": (tmp_path / "x").stat().st_size, "sha256": durable.digest_of(tmp_path / "x")}
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)


def test_an_archive_without_elites_is_written_too(tmp_path):
    search = dqd.AskTell(dqd.cma_mega(1.0, batch_size=5), dqd.Grid([0], [1], [4]), x0=np.zeros(3))
    folder = search.result().save(tmp_path / "run")
    strictly((folder / "config.json").read_text())
    back = record.read(folder)
    assert (back.metrics, back.arrays["solutions"].shape) == ([], (0, 3))
    assert back.config["summary"]["best"] is None
    assert back.step == 0


def test_long_histories_are_thinned_and_keep_their_last_row(tmp_path, result):
    rows = record.read(result.save(tmp_path / "run", rows=2)).metrics
    assert [row["iteration"] for row in rows] == [3, 6]


def test_the_longest_history_stays_readable(tmp_path, result):
    longest = dataclasses.replace(result, history={name: np.arange(2**17) for name in result.history})
    rows = record.read(longest.save(tmp_path / "run", rows=2**17)).metrics
    assert 10_000 <= len(rows) <= MAX_LINES


@pytest.mark.parametrize("saved", [True, False])
def test_every_seed_is_read_by_a_name_of_its_own(tmp_path, saved):
    folder = tmp_path / "runs"
    results = run(seeds=[3, 8], out=None if saved else folder)
    if saved:
        results.save(folder)
    for each in results:
        back = record.read(folder / f"seed-{each.seed}")
        assert dqd.load(folder / f"seed-{each.seed}").objective.tolist() == back.arrays["objective"].tolist()
        assert back.config["summary"]["seed"] == each.seed
        assert back.config["seeds"] == [3, 8]
        np.testing.assert_array_equal(back.arrays["objective"], each.elites.objective)
    with pytest.raises(FileNotFoundError, match="read one: seed-3"):
        record.read(folder)
    with pytest.raises(ValueError, match=r"seed-4: no such seed; the run has seeds 3, 8"):
        record.read(folder / "seed-4")


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
    (tmp_path / "config.json").write_text('{"format": 1}')
    (tmp_path / "archive.safetensors").write_text("")
    for use in (record.read, record.read_config, lambda folder: run(out=folder)):
        with pytest.raises(ValueError, match="record format 1, this version reads 2"):
            use(tmp_path)


def test_a_config_that_is_lost_is_found_in_the_newest_checkpoint(tmp_path):
    folder = record.write(tmp_path / "run", CONFIG, METRICS, ARRAYS)
    asked = record.read_config(folder)
    for content in ("", "{", '{"dqd": 1}'):
        (folder / "config.json").write_text(content)
        assert record.read_config(folder) == asked
    assert asked["sigma"] == 0.1


def test_a_run_that_has_no_checkpoint_yet_is_not_an_empty_one(tmp_path):
    with Writer(tmp_path / "run") as writer:
        writer.configure(record.with_versions(CONFIG))
        with pytest.raises(FileNotFoundError, match="no checkpoint yet"):
            record.read(tmp_path / "run")


def test_descriptions_become_plain_json():
    described = record.describe({"emitter": dqd.cma_mega(0.5, 0.1), "list": (1, None, math.inf), "array": np.eye(2)})
    assert strictly(json.dumps(described)) == described
    assert described["emitter"]["type"] == "Arborescence"
    assert described["emitter"]["arguments"] == {"learning_rate": 0.1}
    assert described["emitter"]["optimizer"].endswith(".sgd")
    assert described["list"] == [1, None, "inf"]
    assert described["array"] == [[1.0, 0.0], [0.0, 1.0]]


def test_large_arrays_are_described_by_their_digest():
    numbers = np.arange(65.0)
    described = record.describe({"few": numbers[:64], "many": numbers, "jax": jnp.asarray(numbers)})
    assert described["few"] == numbers[:64].tolist()
    assert described["many"]["shape"] == [65]
    assert described["many"]["sha256"] == hashlib.sha256(numbers.tobytes()).hexdigest()
    assert described["jax"]["dtype"] == "float32"


class Model:
    def __call__(self, x, scale):
        return x


@pytest.mark.parametrize("name", ["seed", "seeds", "iterations", "emitter", "x0", "format", "dqd", "summary"])
def test_words_of_ones_own_may_not_take_the_name_of_a_setting(tmp_path, result, name):
    for use in (
        lambda about: result.save(tmp_path / "run", about=about),
        lambda about: run(out=dqd.Folder(tmp_path, about=about)),
    ):
        with pytest.raises(ValueError, match=f"about: .*got {name}; choose another name, such as my_{name}"):
            use({"note": "fine", name: 3})
    assert list(tmp_path.iterdir()) == []


def test_every_name_of_a_config_is_taken(tmp_path, result):
    config = json.loads((result.save(tmp_path / "run") / "config.json").read_text())
    for name in config:
        with pytest.raises(ValueError, match=f"got {name};"):
            result.save(tmp_path / "other", about={name: 1})


def test_what_has_no_name_is_described_alike_in_every_process():
    one, other = (record.describe([partial(Model(), scale=2.0), Model(), object()]) for _ in range(2))
    assert one == other
    assert one[0]["arguments"] == [[], {"scale": 2.0}]
    assert one[1].endswith(".Model")


def test_differences_name_what_changed():
    grid = dqd.Grid([-3, -2], [3, 2], [6, 5])
    there = record.describe({"emitter": dqd.cma_mega(0.5, 0.1), "grid": grid, "x0": np.zeros(99), "same": 1})
    here = record.describe({"emitter": dqd.cma_mega(0.2, 0.1), "grid": grid, "x0": np.ones(99), "same": 1, "seed": 3})
    sigma, x0, seed = differences(there, here)
    assert sigma == "emitter.strategy.sigma: 0.5 there, 0.2 here"
    assert x0.startswith("x0: float64 (99,) with digest ")
    assert seed == "seed: None there, 3 here"
    assert list(differences({"e": there["emitter"]}, {"e": record.describe(grid)})) == [
        "e: Arborescence there, Grid here"
    ]
