"""Launching a suite: only what is missing runs, a record per trial, the same trials on any device."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from distributed import LocalCluster

from dqd import record
from dqd.experiments import launch, suites
from dqd.experiments.suites import Suite

SAID: list[str] = []


def tiny(*ids: str, trials: int = 2, iterations: int = 20) -> Suite:
    """Two small cells of Table 1."""
    cells = [
        dataclasses.replace(cell, n=8, resolution=10, trials=trials, iterations=iterations)
        for cell in suites.suite("table1").cells
        if cell.id in ids
    ]
    return Suite("table1", "tiny", tuple(cells))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    suite = tiny("lp-sphere.cma-mega", "arm.map-elites")
    assert launch.reproduce(suite, folder, device="gpu", say=SAID.append)
    return suite, folder


def test_every_trial_leaves_a_record_and_one_keeps_solutions(finished):
    suite, folder = finished
    for cell in suite.cells:
        records = [record.read(folder / cell.id / launch.trial_name(trial)) for trial in range(2)]
        assert [("solutions" in each.arrays) for each in records] == [True, False]
        assert [each.config["summary"]["seed"] for each in records] == [0, 1]
        assert records[0].metrics[-1]["iteration"] == 20
        assert not np.array_equal(records[0].arrays["objective"], records[1].arrays["objective"])


def test_a_finished_suite_runs_nothing_again(finished, monkeypatch):
    suite, folder = finished
    monkeypatch.setattr(launch, "_run_on_device", lambda *_: pytest.fail("ran again"))
    assert launch.reproduce(suite, folder, device="gpu")


def test_only_the_missing_trial_runs(finished, tmp_path, monkeypatch):
    suite, folder = finished
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    lost = copy / "arm.map-elites" / "trial-001"
    before = record.read(lost)
    shutil.rmtree(lost)
    ran = []
    original = launch._illuminate
    monkeypatch.setattr(
        launch, "_illuminate", lambda cell, trials: ran.append((cell.id, trials)) or original(cell, trials)
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
    for cell in suite.cells:
        assert not (tmp_path / cell.id / "trial-000").exists()
        ours = record.read(tmp_path / cell.id / "trial-001")
        theirs = record.read(folder / cell.id / "trial-001")
        assert ours.config["summary"]["evaluations"] == theirs.config["summary"]["evaluations"]
        assert ours.config["summary"]["qd_score"] == pytest.approx(theirs.config["summary"]["qd_score"], rel=0.2)


def test_a_dask_cluster_gives_the_same_trials_and_runs_what_is_missing(finished, tmp_path, monkeypatch):
    suite, folder = finished
    shutil.copytree(folder / "lp-sphere.cma-mega" / "trial-000", tmp_path / "lp-sphere.cma-mega" / "trial-000")
    ran = []
    original = launch.run_trial
    monkeypatch.setattr(launch, "run_trial", lambda *trial: ran.append(trial[1:]) or original(*trial))
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

    monkeypatch.setattr(launch, "run_trial", fail)
    with (
        LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        pytest.raises(RuntimeError, match=r"arm.map-elites, trial 0: ArithmeticError: no luck"),
    ):
        launch.reproduce(tiny("arm.map-elites", trials=1), tmp_path, cluster=cluster.scheduler_address)


def test_workers_that_write_elsewhere_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "run_trial", lambda *_: None)
    monkeypatch.setattr(launch, "SHARED_SECONDS", 0.1)
    with (
        LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        pytest.raises(FileNotFoundError, match="all workers must see the same file system"),
    ):
        launch.reproduce(tiny("arm.map-elites", trials=1), tmp_path, cluster=cluster.scheduler_address)


def test_the_suite_file_tells_settings_and_time(finished):
    suite, folder = finished
    content = json.loads((folder / "suite.json").read_text())
    assert [cell["id"] for cell in content["cells"]] == [cell.id for cell in suite.cells]
    assert content["seconds"] > 0
    assert "4 of 4 trials to run" in SAID[0]


def test_workers_end_with_a_parent_that_was_killed():
    script = (
        "import os, time\n"
        "from dqd.experiments import launch\n"
        "if __name__ == '__main__':\n"
        "    pool = launch._pool(1)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline().strip().isdigit()
    parent.kill()
    parent.communicate(timeout=20)  # the worker holds this pipe, too: its end comes when the worker is gone
