"""Reading a suite back: what is whole is read exactly, what is not is named."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dqd.paper.report.collect import NotASuiteError, read_suite
from dqd.storage import record


def write_trial(place: Path, qd_score: float, steps=(10, 20, 30), iterations=30, seed=0) -> None:
    final = {"qd_score": qd_score, "coverage": 2 * qd_score, "best": 99.0, "mean": 50.0}
    metrics = [{"iteration": step, **{name: value * step / 30 for name, value in final.items()}} for step in steps]
    config = {"summary": {**final, "iterations": iterations, "seed": seed}}
    record.write(place, config, metrics, {"cell": np.arange(3), "objective": np.ones(3)})


def entry(domain="arm", algorithm="cma-mega", **changes) -> dict:
    variant = changes.get("variant", "base")
    name = f"{domain}.{algorithm}" + ("" if variant == "base" else f".{variant}")
    common = {"resolution": 100, "n": 1000, "iterations": 30, "precision": "float32", "trials": 3, "published": None}
    return {"id": name, "domain": domain, "algorithm": algorithm, "label": algorithm.upper(), **common, **changes}


def write_suite(folder: Path, *entries: dict, **about) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = {"suite": "small", "title": "A small suite", "device": "an abacus", "seconds": 12.5}
    (folder / "suite.json").write_text(json.dumps(content | {"cells": entries} | about))
    return folder


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = write_suite(tmp_path / "suite", entry())
    for trial, qd_score in enumerate((10.0, 12.0, 14.0)):
        write_trial(folder / "arm.cma-mega" / f"trial-{trial:03d}", qd_score, seed=trial)
    return folder


def test_final_metrics_and_description(suite):
    data = read_suite(suite)
    (only,) = data.entries
    assert (data.name, data.device, data.seconds, data.execution_seconds) == ("small", "an abacus", 12.5, 0)
    assert only.final["qd_score"].tolist() == [10, 12, 14]
    assert only.final["coverage"].tolist() == [20, 24, 28]
    assert (only.trials, only.seeds, only.expected, only.problems) == ((0, 1, 2), (0, 1, 2), 3, ())
    assert (only.key, only.name, data.rows) == ("cma-mega", "CMA-MEGA", {"cma-mega": "CMA-MEGA"})


def test_curves_are_aligned_on_common_iterations(suite):
    place = suite / "arm.cma-mega" / "trial-001"
    shutil.rmtree(place)
    write_trial(place, 12.0, steps=(5, 10, 15, 30), seed=1)
    (only,) = read_suite(suite).entries
    assert only.steps.tolist() == [10, 30]
    np.testing.assert_allclose(only.curves["qd_score"], [[10 / 3, 10], [4, 12], [14 / 3, 14]])


def test_a_missing_trial_is_left_out_and_counted(suite):
    shutil.rmtree(suite / "arm.cma-mega" / "trial-001")
    data = read_suite(suite)
    assert data.entries[0].trials == (0, 2)
    assert data.entries[0].final["qd_score"].tolist() == [10, 14]
    assert data.problems == ("arm.cma-mega/trial-001 is missing",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b"{"),
        ("manifest.json", b'{"format": 99}'),
        ("metrics.jsonl", b'{"iteration": 1, "qd_sc'),
        ("archive.safetensors", b"\x10\x00\x00\x00\x00\x00\x00\x00{}"),
    ],
)
def test_a_damaged_trial_is_left_out_and_named(suite, name, content):
    (suite / "arm.cma-mega" / "trial-002" / "steps" / "000000030" / name).write_bytes(content)
    data = read_suite(suite)
    assert data.entries[0].trials == (0, 1)
    assert len(data.problems) == 1
    assert data.problems[0].startswith("arm.cma-mega/trial-002 is left out: ")
    assert data.problems[0].endswith("`dqd reproduce` runs it again")


def test_a_trial_that_stopped_early_is_left_out(suite):
    place = suite / "arm.cma-mega" / "trial-000"
    shutil.rmtree(place)
    write_trial(place, 10.0, iterations=7)
    data = read_suite(suite)
    assert data.entries[0].trials == (1, 2)
    assert "7 iterations, the suite asks for 30" in data.problems[0]


def test_trials_beyond_those_asked_for_do_not_count(suite):
    write_trial(suite / "arm.cma-mega" / "trial-003", 100.0)
    assert len(read_suite(suite).entries[0].trials) == 3


def test_a_suite_without_trials_reads_as_empty(tmp_path):
    (only,) = read_suite(write_suite(tmp_path, entry())).entries
    assert only.trials == ()
    assert only.final["qd_score"].shape == (0,)
    assert only.curves["qd_score"].shape == (0, 0)
    assert len(only.problems) == 3


def test_an_entry_takes_from_the_suite_what_it_does_not_say(tmp_path):
    bare = {name: value for name, value in entry().items() if name not in ("trials", "precision", "iterations")}
    folder = write_suite(tmp_path, bare, trials=2, precision="float64", iterations=30)
    (only,) = read_suite(folder).entries
    assert (only.expected, only.precision, only.iterations) == (2, "float64", 30)


def test_variants_are_rows_of_their_own(tmp_path):
    folder = write_suite(tmp_path, entry(), entry(variant="released_budget"))
    data = read_suite(folder)
    assert data.rows == {"cma-mega": "CMA-MEGA", "cma-mega.released_budget": "CMA-MEGA (released budget)"}
    assert data.entry("cma-mega.released_budget", "arm") is data.entries[1]
    assert data.entry("cma-mega", "lp-sphere") is None


def test_no_suite_is_said_clearly(tmp_path):
    with pytest.raises(NotASuiteError, match=r"suite\.json is missing"):
        read_suite(tmp_path)
    (tmp_path / "suite.json").write_text("[1, 2")
    with pytest.raises(NotASuiteError, match="not JSON"):
        read_suite(tmp_path)
    (tmp_path / "suite.json").write_text("{}")
    with pytest.raises(NotASuiteError, match="'suite' and 'cells'"):
        read_suite(tmp_path)
