"""Launching a suite: only what is missing runs, a record per trial, the same trials on any device."""

from __future__ import annotations

import dataclasses
import datetime
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from distributed import LocalCluster

from dqd.paper import launch, pools, presets, suites, trials
from dqd.paper.layout import trial_folder
from dqd.paper.suites import Suite
from dqd.storage import record

SAID: list[str] = []


def tiny(*ids: str, trials: int = 2, iterations: int = 20) -> Suite:
    """Two small entries of Table 1."""
    entries = [
        dataclasses.replace(entry, n=8, resolution=10, trials=trials, iterations=iterations)
        for entry in suites.suite("table1").entries
        if entry.id in ids
    ]
    return Suite("table1", "tiny", tuple(entries))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    suite = tiny("lp-sphere.cma-mega", "arm.map-elites")
    assert launch.reproduce(suite, folder, device="gpu", say=SAID.append)
    return suite, folder


def test_every_trial_leaves_a_record_and_one_keeps_solutions(finished):
    suite, folder = finished
    for entry in suite.entries:
        records = [record.read(trial_folder(folder, entry.id, trial)) for trial in range(2)]
        assert [("solutions" in each.arrays) for each in records] == [True, False]
        assert [each.config["summary"]["seed"] for each in records] == [0, 1]
        assert records[0].metrics[-1]["iteration"] == 20
        assert not np.array_equal(records[0].arrays["objective"], records[1].arrays["objective"])


def test_the_kept_solutions_are_those_of_their_trial(finished):
    suite, folder = finished
    for entry in suite.entries:
        arrays = record.read(trial_folder(folder, entry.id, 0)).arrays
        domain = presets.make_domain(entry.domain, entry.n)
        scores = domain.evaluate(arrays["solutions"])
        np.testing.assert_allclose(scores.objective, arrays["objective"], rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(scores.measures, arrays["measures"], rtol=1e-4, atol=1e-4)


def test_trials_side_by_side_choose_what_the_settings_left_out(tmp_path):
    squad = next(entry for entry in suites.suite("high-dimensional").entries if entry.algorithm == "squad")
    assert squad.describe()["settings"]["scale"] is None
    entry = dataclasses.replace(squad, n=8, cells=20, trials=2, iterations=2)
    assert launch.reproduce(Suite("high-dimensional", "tiny", (entry,)), tmp_path, device="gpu", say=SAID.append)
    found = [record.read(trial_folder(tmp_path, entry.id, trial)) for trial in range(2)]
    assert [each.config["summary"]["evaluations"] for each in found] == [2 * 128] * 2


def test_the_time_left_does_not_count_the_compilation(monkeypatch):
    now = 0.0
    monkeypatch.setattr(pools.time, "monotonic", lambda: now)
    entry, said = tiny("lp-sphere.cma-mega").entries[0], []
    progress = pools.Progress([(entry, trial) for trial in range(80)], said.append)
    for now in (100.0, 120.0):
        progress.done(entry, 20)
    assert said == ["dqd: 20 of 80 trials in 100 s", "dqd: 40 of 80 trials in 120 s, about 40 s left"]


def test_a_finished_suite_runs_nothing_again(finished, monkeypatch):
    suite, folder = finished
    monkeypatch.setattr(launch, "run_on_device", lambda *_: pytest.fail("ran again"))
    assert launch.reproduce(suite, folder, device="gpu")


def test_only_the_missing_trial_runs(finished, tmp_path, monkeypatch):
    suite, folder = finished
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    lost = copy / "arm.map-elites" / "trial-001"
    before = record.read(lost)
    shutil.rmtree(lost)
    ran = []
    original = trials.run_entry
    monkeypatch.setattr(
        trials, "run_entry", lambda entry, trials: ran.append((entry.id, trials)) or original(entry, trials)
    )
    assert launch.reproduce(suite, copy, device="gpu")
    assert ran == [("arm.map-elites", [1])]
    np.testing.assert_allclose(record.read(lost).arrays["objective"], before.arrays["objective"], rtol=1e-4)


def test_more_trials_are_added_to_a_finished_suite(finished, tmp_path):
    suite, folder = finished
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert launch.reproduce(suite.resized(trials=3, iterations=None), copy, device="gpu")
    assert (copy / "arm.map-elites" / "trial-002").is_dir()


def test_other_settings_are_refused_and_named(finished):
    suite, folder = finished
    with pytest.raises(launch.SuiteMismatchError, match="iterations"):
        launch.reproduce(suite.resized(trials=None, iterations=30), folder, device="gpu")


def test_processes_on_a_cpu_give_the_same_trials_and_a_trial_index_runs_one(finished, tmp_path):
    suite, folder = finished
    complete = launch.reproduce(suite, tmp_path, device="cpu", jobs=1, trial_index=1)
    assert not complete  # trial 0 is still missing
    for entry in suite.entries:
        assert not (tmp_path / entry.id / "trial-000").exists()
        ours = record.read(tmp_path / entry.id / "trial-001")
        theirs = record.read(folder / entry.id / "trial-001")
        assert ours.config["summary"]["evaluations"] == theirs.config["summary"]["evaluations"]
        assert ours.config["summary"]["qd_score"] == pytest.approx(theirs.config["summary"]["qd_score"], rel=0.2)


def test_a_dask_cluster_gives_the_same_trials_and_runs_what_is_missing(finished, tmp_path, monkeypatch):
    suite, folder = finished
    shutil.copytree(folder / "lp-sphere.cma-mega" / "trial-000", tmp_path / "lp-sphere.cma-mega" / "trial-000")
    ran = []
    original = trials.run_trial
    monkeypatch.setattr(trials, "run_trial", lambda *trial: ran.append(trial[1:]) or original(*trial))
    with LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        assert launch.reproduce(suite, tmp_path, cluster=cluster.scheduler_address)
        assert len(ran) == 3
        lost = tmp_path / "arm.map-elites" / "trial-001"
        found = record.read(lost).arrays["objective"]
        shutil.rmtree(lost)
        assert launch.reproduce(suite, tmp_path, cluster=cluster.scheduler_address)
        assert len(ran) == 4
    np.testing.assert_array_equal(record.read(lost).arrays["objective"], found)
    assert json.loads((tmp_path / "suite.json").read_text())["device"] == "a Dask cluster of 2 threads"


def test_a_trial_that_fails_on_a_cluster_is_named(tmp_path, monkeypatch):
    def fail(*_):
        raise ArithmeticError("no luck")

    monkeypatch.setattr(trials, "run_trial", fail)
    with (
        LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        pytest.raises(RuntimeError, match=r"arm.map-elites, trial 0: ArithmeticError: no luck"),
    ):
        launch.reproduce(tiny("arm.map-elites", trials=1), tmp_path, cluster=cluster.scheduler_address)


def test_workers_that_write_elsewhere_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "run_trial", lambda *_: None)
    monkeypatch.setattr(pools, "SHARED_SECONDS", 0.1)
    with (
        LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        pytest.raises(FileNotFoundError, match="all workers must see the same file system"),
    ):
        launch.reproduce(tiny("arm.map-elites", trials=1), tmp_path, cluster=cluster.scheduler_address)


def test_the_suite_file_tells_settings_and_time(finished):
    suite, folder = finished
    content = json.loads((folder / "suite.json").read_text())
    assert [entry["id"] for entry in content["cells"]] == [entry.id for entry in suite.entries]
    assert 0 < content["execution_seconds"] < content["seconds"]
    assert content["jax"] == jax.__version__
    age = datetime.date.today() - datetime.date.fromisoformat(content["date"])
    assert age.days in (0, 1)  # midnight may have passed
    assert "4 of 4 trials to run" in SAID[0]


def test_workers_end_with_a_parent_that_was_killed():
    script = (
        "import os, time\n"
        "from dqd.paper import pools\n"
        "if __name__ == '__main__':\n"
        "    pool = pools._pool(1)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline().strip().isdigit()
    parent.kill()
    parent.communicate(timeout=20)  # the worker holds this pipe, too: its end comes when the worker is gone


def test_ctrl_c_ends_the_workers_and_leaves_no_half_trial(tmp_path):
    script = (
        "import dataclasses, signal, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from test_launch import launch, tiny, Suite\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    short, long = tiny('arm.map-elites', 'lp-sphere.cma-mega', trials=1).entries\n"
        "    suite = Suite('table1', 'tiny', (short, dataclasses.replace(long, iterations=50_000_000)))\n"
        "    launch.reproduce(suite, sys.argv[2], device='cpu', jobs=2)\n"
    )
    arguments = [sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path)]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, start_new_session=True)
    done = tmp_path / "arm.map-elites" / "trial-000"
    while process.poll() is None and not done.exists():
        time.sleep(0.1)
    time.sleep(1)  # the other worker is now in its search, or about to begin it
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all processes get it
    _, words = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in words
    assert "stopping after this chunk" not in words  # the workers are not asked
    assert done.exists()
    assert not (tmp_path / "lp-sphere.cma-mega" / "trial-000").exists()
    assert json.loads((tmp_path / "suite.json").read_text())["seconds"] > 0


def test_a_search_cut_short_is_not_written_as_a_trial(tmp_path, monkeypatch):
    import dqd

    original = dqd.illuminate

    def interrupted(*args, **options):
        result = original(*args, **options)
        result.stopped = "interrupted"
        return result

    monkeypatch.setattr(dqd, "illuminate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch.reproduce(tiny("arm.map-elites"), tmp_path, device="gpu")
    with pytest.raises(KeyboardInterrupt):
        trials.run_trial(tmp_path, tiny("arm.map-elites").entries[0], 0)
    assert not (tmp_path / "arm.map-elites").exists()


def test_a_folder_of_another_suite_is_refused_and_left_as_it_is(finished):
    _, folder = finished
    before = (folder / "suite.json").read_text()
    other = Suite("precision", "no entry in common", suites.suite("precision").entries)
    with pytest.raises(launch.SuiteMismatchError, match="holds trials of table1, not of precision"):
        launch.reproduce(other, folder)
    assert (folder / "suite.json").read_text() == before


@pytest.mark.parametrize("content", ["{}", "[]", '{"suite": "table1"}'])
def test_a_foreign_suite_file_is_named(tmp_path, content):
    (tmp_path / "suite.json").write_text(content)
    with pytest.raises(launch.SuiteMismatchError, match=r"suite\.json describes no suite"):
        launch.reproduce(tiny("arm.map-elites"), tmp_path)


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match=r"expected a folder, .*file is a file"):
        launch.reproduce(tiny("arm.map-elites"), tmp_path / "file")


def test_a_trial_that_another_machine_has_written_meanwhile_is_kept(finished, tmp_path):
    suite, folder = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    place = trial_folder(tmp_path, suite.entries[0].id, 0)
    (place / "config.json").write_text("theirs")
    trials.run_trial_once(tmp_path, suite.entries[0], 0)
    trials.run_trial(tmp_path, suite.entries[0], 0)
    assert (place / "config.json").read_text() == "theirs"
    assert {path.name for path in place.parent.iterdir()} == {"trial-000", "trial-001"}


def test_an_error_while_writing_counts(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(record, "write_step", fail)
    with pytest.raises(OSError, match="No space left"):
        trials.run_trial_once(tmp_path, tiny("arm.map-elites").entries[0], 0)


@pytest.mark.parametrize("damaged", ["archive", "manifest", "empty"])
def test_a_damaged_trial_is_named_and_run_again(finished, tmp_path, damaged):
    suite, folder = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    place, said = tmp_path / "arm.map-elites" / "trial-001", []
    before = record.read(place).arrays["objective"]
    if damaged == "empty":
        shutil.rmtree(place / "steps")
    else:
        next(place.glob(f"steps/*/{damaged}*")).write_text("damaged")
    assert launch.reproduce(suite, tmp_path, device="gpu", say=said.append)
    assert said[0].startswith("dqd: arm.map-elites/trial-001 is damaged (")
    assert said[0].endswith("it is run again")
    assert "1 of 4 trials to run" in said[1]
    np.testing.assert_allclose(record.read(place).arrays["objective"], before, rtol=1e-4)


def test_what_is_not_a_trials_is_not_removed(finished, tmp_path):
    suite, folder = finished
    for place, match in (("trial-000", "holds what is not a trial's"), ("trial-001", "record format 9, this version")):
        copy = shutil.copytree(folder, tmp_path / place)
        trial = copy / "arm.map-elites" / place
        shutil.rmtree(trial / "steps")
        if place == "trial-000":
            (trial / "notes.txt").write_text("mine")
        else:
            (trial / "config.json").write_text('{"format": 9}')
        before = sorted(trial.iterdir())
        with pytest.raises(Exception, match=match):
            launch.reproduce(suite, copy, device="gpu", say=print)
        assert sorted(trial.iterdir()) == before


@pytest.mark.parametrize("link", ["lock", "arm.map-elites", "arm.map-elites/trial-001", "suite.json"])
def test_nothing_is_written_through_a_link_in_a_suite(finished, tmp_path, link):
    suite, folder = finished
    ours, copy = tmp_path / "ours", tmp_path / "copy"
    shutil.copytree(folder, copy)
    if link == "suite.json":
        shutil.move(copy / link, ours)
    else:
        shutil.rmtree(copy / "arm.map-elites" / "trial-001")
        (copy / "lock").unlink()
        shutil.rmtree(copy / link, ignore_errors=True)
    (copy / link).symlink_to(ours)
    if link == "suite.json":
        before = ours.read_text()
        assert launch.reproduce(suite.resized(trials=3, iterations=None), copy, device="gpu")
        assert (ours.read_text(), (copy / link).is_symlink()) == (before, False)
    else:
        with pytest.raises(FileExistsError, match=f"{Path(link).name} is a link"):
            launch.reproduce(suite, copy, device="gpu", say=print)
        assert not ours.exists()
