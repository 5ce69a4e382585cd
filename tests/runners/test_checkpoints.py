"""Runs that go on: the same result as undisturbed, whatever interrupted them, and only with the same settings."""

import os
import shutil
import signal
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small
from conformance.table import assert_same, quick_to_compile
from safetensors.numpy import load_file
from small import score

import dqd
from dqd.domains import FunctionDomain
from dqd.runners import checkpoints, compiled, loop
from dqd.runners.checkpoints import Checkpoints, from_arrays, to_arrays
from dqd.runners.progress import CompileClock
from dqd.runners.snapshot import Snapshot
from dqd.search.history import History
from dqd.search.search import Search
from dqd.storage import durable, manifest, record
from dqd.storage.settings import SettingsChangedError
from dqd.types import pytree


def illuminate(out, *problem, **options):
    return small.illuminate(*problem, out=out, **options)


def at(iteration):
    return lambda metrics: metrics["iteration"] >= iteration


def digests(folder):
    files = record.newest(folder, lambda checkpoint: checkpoint.manifest["files"])
    return {name: entry["sha256"] for name, entry in files.items() if name != record.TIMINGS}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    with quick_to_compile():
        return illuminate(folder), folder


# The same result ------------------------------------------------------------------------------------------------------


def test_a_run_in_pieces_is_the_run_in_one(undisturbed, tmp_path):
    result, folder = undisturbed
    for iteration in (10, 20, 30):
        assert illuminate(dqd.Folder(tmp_path / "run", 0), until=at(iteration)).iterations == iteration
    resumed = illuminate(tmp_path / "run")
    assert_same(resumed.state, result.state)
    assert_same(resumed.history, result.history)
    assert digests(tmp_path / "run") == digests(folder)


def test_a_run_that_is_made_longer_is_the_long_one(undisturbed, tmp_path):
    for iterations in (0, 10, 20, 40):
        illuminate(tmp_path / "run", iterations=iterations)
        assert record.read_config(tmp_path / "run")["iterations"] == iterations
    assert digests(tmp_path / "run") == digests(undisturbed[1])


def test_metrics_depend_on_the_iterations_alone(monkeypatch, tmp_path):
    monkeypatch.setattr("dqd.runners.checkpoints.ROWS", 7)
    monkeypatch.setattr(Snapshot.files, "__defaults__", (True, 7))
    illuminate(tmp_path / "whole")
    illuminate(tmp_path / "longer", iterations=10)
    illuminate(tmp_path / "longer")
    assert [row["iteration"] for row in record.read(tmp_path / "whole").metrics] == [5, 10, 15, 20, 25, 30, 35, 40]
    assert digests(tmp_path / "longer") == digests(tmp_path / "whole")


def pytree_score(x):
    return -jnp.sum(x["a"] ** 2), jnp.array([x["a"].sum(), x["b"].sum()])


THRESHOLDS = {"threshold": dqd.Threshold(0.1, -9.0), "qd_score_offset": -9.0}
PYTREE = {"function": pytree_score, "x0": {"a": np.zeros((2, 2)), "b": np.zeros(3)}, "bounds": (-1.0, 0.75)}


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        pytest.param({"seeds": [3, 8]}, "float32", id="several seeds"),
        pytest.param(PYTREE | THRESHOLDS, "float64", id="pytree, bounds and thresholds", marks=pytest.mark.x64),
    ],
)
def test_every_kind_of_run_goes_on(tmp_path, options, dtype):
    whole = illuminate(tmp_path / "whole", iterations=20, **options)
    illuminate(tmp_path / "parts", iterations=20, until=at(10), **options)
    resumed = illuminate(tmp_path / "parts", iterations=20, **options)
    assert str(whole.state.x0.dtype) == dtype
    assert_same(resumed.state, whole.state)
    assert_same(resumed.history, whole.history)
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")


def test_figures_of_all_sessions_add_up(tmp_path):
    first = illuminate(tmp_path / "run", until=at(20))
    second = illuminate(tmp_path / "run")
    assert (second.evaluations, second.gradients) == (40 * 9, 40)
    assert second.seconds > first.seconds
    rows = record.newest(tmp_path / "run", lambda checkpoint: checkpoint.lines(record.TIMINGS))
    assert [row["iteration"] for row in rows] == list(range(1, 41))
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds)
    counted = {row["iteration"]: row["evaluations"] for row in rows if "evaluations" in row}
    assert counted == {i: 9 * i for i in counted}
    assert {20, 40} <= counted.keys()
    assert rows[-1]["restarts"] == second.restarts


def test_a_finished_run_is_returned_without_running(undisturbed, monkeypatch):
    result, folder = undisturbed
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "lock"}
    for name in ("run_chunk", "start_seed"):
        assert hasattr(compiled, name)
        monkeypatch.setattr(compiled, name, lambda *_, **__: pytest.fail("it ran"))
    again = illuminate(folder, until=lambda metrics: pytest.fail("it ran"))
    assert_same(again.state, result.state)
    assert again.stopped is None
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "lock"} == before


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"emitter": dqd.cma_mega(0.2, batch_size=9)}, ["emitter.strategy.sigma: 0.5 there, 0.2 here"]),
        ({"emitter": dqd.map_elites(0.5)}, ["emitter: Arborescence there, Variation here"]),
        ({"seed": 4, "initial_sigma": 2.0}, ["seed: 0 there, 4 here", "initial_sigma: 1.0 there, 2.0 here"]),
        ({"seeds": [0, 1]}, ["seed: 0 there, None here", "seeds: None there, [0, 1] here"]),
        ({"x0": jnp.ones(6)}, ["x0[0]: 0.0 there, 1.0 here"]),
        ({"bounds": (-1, 1)}, ["bounds: None there"]),
        ({"function": lambda x: score(x)}, ["domain.function: small.score there"]),
        ({"threshold": dqd.Threshold(0.5, 0.0)}, ["archive_learning_rate: 1.0 there, 0.5 here"]),
        ({"iterations": 30}, ["has done 40 already; expected at least that, got 30"]),
    ],
)
def test_other_settings_are_named_and_refused(undisturbed, options, words):
    with pytest.raises(SettingsChangedError) as error:
        illuminate(undisturbed[1], **options)
    for word in words:
        assert word in str(error.value)
    assert record.read(undisturbed[1]).step == 40


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("jax_threefry_partitionable", False, "True there, False"),
        ("jax_default_prng_impl", "rbg", "threefry2x32 there"),
    ],
)
def test_other_random_numbers_are_refused(undisturbed, name, value, words):
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        with pytest.raises(SettingsChangedError, match=f"random_numbers.{name}: {words}"):
            illuminate(undisturbed[1])
    finally:
        jax.config.update(name, before)


def test_what_does_not_decide_the_result_may_change(undisturbed):
    result, folder = undisturbed
    again = illuminate(dqd.Folder(folder, 5.0, {"note": "second"}), chunk=7, progress=True)
    assert_same(again.state, result.state)


def test_settings_count_from_the_start_not_from_the_first_checkpoint(tmp_path):
    with pytest.raises(ZeroDivisionError):
        illuminate(tmp_path / "run", until=lambda metrics: 1 / 0)
    assert record.step_folders(tmp_path / "run") == []
    with pytest.raises(SettingsChangedError, match="seed: 0 there, 1 here"):
        illuminate(tmp_path / "run", seed=1)
    assert illuminate(tmp_path / "run").iterations == 40


def test_a_run_that_lost_its_checkpoints_begins_anew_and_says_so(undisturbed, tmp_path):
    folder = Path(shutil.copytree(undisturbed[1], tmp_path / "run"))
    shutil.rmtree(folder / "steps")
    (folder / "steps").mkdir()
    with pytest.warns(UserWarning, match="left no checkpoint; it begins anew"):
        again = illuminate(folder, until=at(10))
    assert again.iterations == 10
    assert max(int(view.stem) for view in (folder / "views").iterdir()) <= 10


def test_views_of_a_future_that_was_lost_are_dropped(tmp_path):
    illuminate(tmp_path / "run", until=at(10))
    lost = tmp_path / "run" / "views" / "000000030.safetensors"  # of a run that was killed after its last checkpoint
    lost.touch()
    illuminate(tmp_path / "run", until=at(20))
    assert not lost.exists()


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        (record.STATE, lambda arrays: arrays.pop("history/iteration"), "history/iteration"),
        (record.STATE, lambda arrays: arrays.update({"history/best": np.float32(1)}), "too many indices"),
        (record.STATE, lambda arrays: arrays.update(iteration=np.int32(-5)), "not those of iteration 40"),
        (record.STATE, lambda arrays: arrays.pop("x0"), "missing x0"),
        (record.ARCHIVE, lambda arrays: arrays.pop("cell"), "cell"),
        (record.ARCHIVE, lambda arrays: arrays.update(cell=arrays["cell"] + 0.5), "integer"),
    ],
)
def test_a_checkpoint_that_is_whole_but_wrong_is_refused_by_name(undisturbed, tmp_path, file, change, words):
    folder = Path(shutil.copytree(undisturbed[1], tmp_path / "run"))
    (place,) = record.step_folders(folder)
    about, arrays = record.verify(place), load_file(place / file)
    change(arrays)
    (place / file).unlink()
    about["files"][file] = durable.write_file(place / file, {name: np.asarray(array) for name, array in arrays.items()})
    (place / manifest.MANIFEST).write_bytes(manifest._seal(about))
    with pytest.raises(dqd.UnreadableError, match=f"steps/000000040: .*{words}"):
        illuminate(folder, iterations=50)


def test_of_many_settings_that_changed_some_are_named(undisturbed):
    with pytest.raises(SettingsChangedError, match=r"x0\[4\].*; and 2 more\)"):
        illuminate(
            undisturbed[1],
            x0=jnp.ones(6),
            seed=4,
            initial_sigma=2.0,
            bounds=(-1, 1),
            qd_score_offset=1.0,
            threshold=dqd.Threshold(0.5, 0.0),
        )


def test_a_saved_result_is_no_run_to_go_on_with(undisturbed, tmp_path):
    result, _ = undisturbed
    with pytest.raises(FileExistsError, match="a saved result, without the state to go on from"):
        illuminate(result.save(tmp_path / "saved"))


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_seconds_between_checkpoints_are_checked(tmp_path, seconds):
    with pytest.raises(ValueError, match="checkpoint_seconds: expected seconds, at least 0"):
        illuminate(dqd.Folder(tmp_path / "run", checkpoint_seconds=seconds))
    assert not (tmp_path / "run").exists()


def test_words_of_ones_own_are_kept(tmp_path):
    illuminate(dqd.Folder(tmp_path / "run", about={"note": "mine", "weights": np.zeros(100)}), iterations=10)
    config = record.read(tmp_path / "run").config
    assert (config["note"], config["weights"]["shape"]) == ("mine", [100])


# Signals --------------------------------------------------------------------------------------------------------------


def test_sigterm_leaves_a_checkpoint_and_ends_the_program_with_143(undisturbed, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as end:
        illuminate(tmp_path / "run", until=lambda metrics: os.kill(os.getpid(), signal.SIGTERM))
    assert (end.value.code, end.value.result.stopped) == (143, "terminated")
    assert signal.getsignal(signal.SIGTERM) is before
    assert record.read(tmp_path / "run").step == end.value.result.iterations < 40
    assert_same(illuminate(tmp_path / "run").state, undisturbed[0].state)


def test_without_a_folder_sigterm_is_left_alone():
    seen = []
    illuminate(None, until=lambda metrics: seen.append(signal.getsignal(signal.SIGTERM)), iterations=10)
    assert seen == [signal.getsignal(signal.SIGTERM)]


def test_launches_are_as_long_as_signals_may_wait_and_recover_after_a_pause():
    pace = loop.Pace()
    lengths = []
    for seconds in [0.01] * 4 + [60.0] + [0.01] * 4:  # per launch of any length
        lengths.append(pace.length)
        pace.took(seconds, pace.length)
    assert lengths == [1, 16, 250, 250, 250, 4, 64, 250, 250]


def test_a_launch_whose_length_is_part_of_the_program_changes_no_bit():
    """What a GPU runs, here on a CPU."""
    search, domain = Search(small.MEGA), FunctionDomain(score)
    archive = dqd.Archive.empty(small.GRID, 6)
    states = [compiled.start_seed(search, jax.tree.map(jnp.array, archive), jnp.zeros(6), 0, domain) for _ in range(2)]
    one, rows, _ = compiled.run_chunk(search, states[0], domain, 25, batched=False)
    other, counted, _ = compiled.run_chunk(search, states[1], domain, 25, batched=False, counted=25)
    assert_same(one, other)
    assert_same(jax.tree.map(lambda values: values[:25], rows), jax.tree.map(lambda values: values[:25], counted))


# When and what --------------------------------------------------------------------------------------------------------


class Folder:
    """Counts what is written."""

    def __init__(self, seconds_per_commit):
        self.seconds, self.commits, self.views = seconds_per_commit, [], []

    def commit(self, step, *_):
        time.sleep(self.seconds)
        self.commits.append(step)

    def view(self, step, _):
        self.views.append(step)

    def place(self, step):
        return Path(str(step))


@pytest.mark.parametrize(("seconds", "cost", "wait"), [(0.0, 0.1, 0.0), (60.0, 0.1, 60.0), (2.0, 0.1, 10.0)])
def test_checkpoints_become_rarer_when_they_are_slow(undisturbed, seconds, cost, wait):
    result, _ = undisturbed
    folder = Folder(cost)
    kept = Checkpoints(folder, {"iterations": 40, "seed": 0}, seconds, CompileClock(), result.search)
    kept.keep(result.state, History(), last=True)
    assert folder.commits == [40]
    assert kept.next - time.monotonic() == pytest.approx(wait, abs=0.6 * max(wait, 1))
    kept.keep(result.state, History(), last=True)
    assert folder.commits == [40]  # it is there already


def test_views_show_the_archive_over_time(undisturbed):
    result, folder = undisturbed
    steps = sorted(int(path.stem) for path in (folder / "views").iterdir())
    assert steps == list(range(1, 41))
    last = load_file(folder / "views" / "000000040.safetensors")
    np.testing.assert_array_equal(last["cell"], result.elites.cell)
    np.testing.assert_array_equal(last["objective"], result.elites.objective)
    earlier = load_file(folder / "views" / "000000010.safetensors")
    assert len(earlier["cell"]) < len(last["cell"])


# Pytrees as arrays ----------------------------------------------------------------------------------------------------


@pytree
class Part:
    key: jax.Array
    number: jax.Array


def everything(seed):
    return {
        "part": Part(jax.random.key(seed), jnp.asarray(3, jnp.int32)),
        "list": [jnp.array([True, False]), jnp.array([1.0, -0.0, jnp.nan, jnp.inf], jnp.float32), 0.1],
        "keys": jax.random.split(jax.random.key(seed), 3),
        "empty": jnp.zeros((0, 4)),
    }


@pytest.mark.x64
def test_any_pytree_comes_back_bit_for_bit():
    tree = jax.jit(everything)(5)
    arrays = to_arrays(tree)
    assert arrays["part/key"].dtype == np.uint32
    assert arrays.keys() == {"part/key", "part/number", "list/0", "list/1", "list/2", "keys", "empty"}
    back = from_arrays(jax.eval_shape(everything, 5), arrays)
    assert_same(back, tree)
    assert (back["list"][1].weak_type, back["list"][2].weak_type) == (False, True)
    assert np.signbit(back["list"][1][1])
    assert back["list"][2].dtype == jnp.float64
    np.testing.assert_array_equal(jax.random.normal(back["part"].key), jax.random.normal(tree["part"].key))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"list/0": None}, "missing list/0; unknown nothing"),
        ({"more": np.zeros(1)}, "missing nothing; unknown more"),
        ({"list/0": np.zeros(3, bool)}, r"list/0: expected bool \(2,\), got bool \(3,\)"),
        ({"list/1": np.zeros(4, np.int32)}, r"list/1: expected float32 \(4,\), got int32 \(4,\)"),
        ({"part/key": np.zeros(3, np.uint32)}, "part/key|key"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, words):
    arrays = {name: array for name, array in (to_arrays(everything(5)) | change).items() if array is not None}
    with pytest.raises((ValueError, TypeError), match=words):
        from_arrays(jax.eval_shape(everything, 5), arrays)


def test_elites_of_another_archive_are_refused(undisturbed):
    result, _ = undisturbed
    elites = result.archive.arrays()
    for name, wrong in (("cell", elites["cell"] + 144), ("cell", elites["cell"] - 144), ("measures", np.zeros((3, 2)))):
        with pytest.raises(ValueError, match="the checkpoint does not fit"):
            checkpoints._filled(result.archive, elites | {name: wrong})
