"""The command line, in process where possible: small problems, so that little is compiled."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import dqd
from dqd.cli import app
from dqd.paper import launch, presets
from dqd.paper.presets import ALGORITHMS, PROBLEMS
from dqd.runners import progress
from dqd.storage import record

SMALL = ["--n", "8", "--resolution", "10", "--iterations", "20"]
CMA_MEGA = ["run", "--domain", "lp-sphere", "--algorithm", "cma-mega", *SMALL]
FIELDS = {
    *("domain", "algorithm", "n", "iterations", "evaluations", "gradients", "qd_score", "coverage", "best"),
    *("nonfinite", "restarts", "seconds", "compile_seconds"),
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DQD_NO_CACHE", "1")  # JAX keeps the setting for the rest of the process
    monkeypatch.delenv("DQD_TRACEBACK", raising=False)


def call(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def run_json(*arguments: str) -> dict:
    return json.loads(call(*arguments, "--json", "--quiet").stdout.splitlines()[-1])


# Results --------------------------------------------------------------------------------------------------------------


def test_json_is_the_last_line_and_has_the_documented_fields() -> None:
    found = run_json(*CMA_MEGA, "--seed", "3")
    assert found.keys() >= FIELDS
    assert (found["domain"], found["algorithm"], found["n"]) == ("lp-sphere", "cma-mega", 8)
    assert (found["iterations"], found["evaluations"], found["gradients"]) == (20, 20 * 36, 20)
    assert (found["seed"], found["resolution"], found["stopped"], found["nonfinite"]) == (3, 10, None, 0)
    assert 0 < found["coverage"] <= 100
    assert 0 < found["qd_score"] < found["best"] <= 100
    assert found["settings"]["rank_one"] == "dqd2021"


def test_the_initial_population_counts_as_evaluations() -> None:
    found = run_json("run", "--domain", "arm", "--algorithm", "map-elites", *SMALL)
    assert (found["evaluations"], found["gradients"]) == (100 + 20 * 36, 0)


def test_a_sigma_that_is_chosen_is_told_and_kept(tmp_path: Path) -> None:
    found = run_json(*CMA_MEGA, "--set", "sigma=auto", "--out", str(tmp_path / "run"))
    assert found["settings"]["sigma"] == "auto"
    assert found["chosen"]["unit gradients"] > 0
    assert record.read_config(tmp_path / "run")["chosen"] == found["chosen"]
    again = call("resume", tmp_path / "run", "--iterations", "25")
    assert f"{found['chosen']['unit gradients']:.3g} chosen, along unit gradients" in again.stdout
    wrong = call(*CMA_MEGA, "--set", "batch_size=auto", code=2)
    assert "batch_size" in wrong.output


def test_a_run_stops_after_its_seconds_and_goes_on_another_time(tmp_path: Path) -> None:
    long = ["--iterations", "100000000", "--seconds", "0.2", "--out", str(tmp_path / "run")]
    first = run_json(*CMA_MEGA, *long)
    assert first["stopped"] == "until"
    again = json.loads(
        call("resume", tmp_path / "run", "--seconds", "0.2", "--json", "--quiet").stdout.splitlines()[-1]
    )
    assert again["stopped"] == "until"
    assert again["iterations"] > first["iterations"] > 0


def test_a_seed_decides_the_result() -> None:
    first, again, other = (run_json(*CMA_MEGA, "--seed", seed)["qd_score"] for seed in ("1", "1", "2"))
    assert first == again != other


def test_settings_are_overridden_by_name() -> None:
    found = run_json(*CMA_MEGA, "--set", "batch_size=10", "--set", "sigma=3", "--set", "rank_one=textbook")
    assert found["evaluations"] == 200
    assert found["settings"]["sigma"] == 3
    assert found["settings"]["rank_one"] == "textbook"


def test_no_iterations_are_valid_json_too() -> None:
    found = run_json("run", "--domain", "arm", "--algorithm", "cma-mega", "--n", "4", "--iterations", "0")
    assert (found["evaluations"], found["coverage"], found["best"]) == (0, 0, None)


def test_a_record_is_written_and_can_be_read(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "run"
    found = run_json(*CMA_MEGA, "--x64", "--out", out)
    written = record.read(out)
    assert written.config["summary"]["qd_score"] == found["qd_score"]
    assert written.config["domain"] == {"type": "LinearProjection", "objective": "sphere", "n": 8, "measures": 2}
    assert written.metrics[-1]["iteration"] == 20
    assert {written.arrays[name].dtype for name in ("objective", "solutions")} == {np.dtype("float64")}
    assert written.arrays["objective"].sum() / 100 == pytest.approx(found["qd_score"], rel=1e-12)


def test_a_run_draws_its_map_and_says_how_to_see_it(tmp_path: Path) -> None:
    done = call(*CMA_MEGA, "--out", tmp_path / "run")
    assert (tmp_path / "run" / "heatmap.png").stat().st_size > 1000
    assert str(tmp_path / "run" / "heatmap.png") in done.stdout
    assert f"dqd view {tmp_path / 'run'}" in done.stderr


def test_the_table_says_what_was_found() -> None:
    words = call(*CMA_MEGA).stdout
    for expected in ("CMA-MEGA on lp-sphere, n = 8", "QD-score", "coverage", "evaluations             720"):
        assert expected in words


def test_quiet_says_nothing() -> None:
    assert call(*CMA_MEGA, "--quiet").output == ""


# Mistakes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--domain", "lp-shere", "--algorithm", "cma-mega"], ["'lp-shere'", "did you mean 'lp-sphere'", *PROBLEMS]),
        (["--domain", "arm", "--algorithm", "cmaes-me"], ["'cmaes-me'", "did you mean 'cma-me'", *ALGORITHMS]),
        (["--domain", "arm", "--algorithm", "cma-me", "--set", "sgima=1"], ["did you mean 'sigma'", "rank_one"]),
        (["--domain", "arm", "--algorithm", "cma-me", "--set", "sigma"], ["--set: expected name=value"]),
        (["--domain", "arm", "--algorithm", "cma-me", "--set", "sigma=wide"], ["sigma: expected a finite number"]),
        (["--domain", "arm", "--algorithm", "cma-me", "--set", "sigma=0"], ["sigma: expected a number above 0"]),
        (
            ["--domain", "lp-sphere", "--algorithm", "cma-me", "--n", "1"],
            ["2 measures need at least as many coordinates, got 1"],
        ),
        (["--domain", "arm", "--algorithm", "cma-me", "--resolution", "99999"], ["9,999,800,001 cells are more"]),
    ],
)
def test_wrong_usage_is_answered_in_one_line_with_code_2(arguments: list[str], words: list[str]) -> None:
    answer = call("run", *arguments, code=2).stderr
    assert answer.startswith("dqd: error: ")
    assert answer.count("\n") == 1
    for word in words:
        assert word in answer


@pytest.mark.parametrize("arguments", [["run"], ["rum"], [*CMA_MEGA, "--seed", str(2**31)], [*CMA_MEGA, "--jason"]])
def test_wrong_options_end_with_code_2(arguments: list[str]) -> None:
    call(*arguments, code=2)


def test_an_existing_record_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    assert "not an empty folder" in call(*CMA_MEGA, "--out", tmp_path, code=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failure_while_running_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    overflow = [*CMA_MEGA, "--iterations", "100", "--set", "sigma=1e30"]
    answer = call(*overflow, code=1).stderr
    assert answer.startswith("dqd: error: ")
    assert "NaN or infinite" in answer
    assert "Traceback" not in answer
    monkeypatch.setenv("DQD_TRACEBACK", "1")
    assert isinstance(call(*overflow, code=1).exception, dqd.NonFiniteError)


# Ctrl-C ---------------------------------------------------------------------------------------------------------------


def test_ctrl_c_shows_and_saves_what_was_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    update = progress.Progress.update

    def interrupted(self: progress.Progress, done: int, metrics: dict[str, float]) -> None:
        if 250 <= done < 500:
            signal.raise_signal(signal.SIGINT)
        update(self, done, metrics)

    monkeypatch.setattr(progress.Progress, "update", interrupted)
    out = tmp_path / "run"
    result = call(*CMA_MEGA, "--iterations", "5000", "--json", "--quiet", "--out", out, code=130)
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["stopped"] == "interrupted"
    assert 250 <= found["iterations"] < 5000
    assert record.read(out).config["summary"]["iterations"] == found["iterations"]


# The program as a whole -----------------------------------------------------------------------------------------------


def test_python_m_dqd_is_dqd() -> None:
    answer = subprocess.run([sys.executable, "-m", "dqd", "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout == f"dqd {dqd.__version__}\n"


def test_help_imports_nothing_heavy_and_names_everything() -> None:
    code = (
        "import sys; sys.argv = ['dqd', 'run', '--help']\n"
        "try:\n    import dqd.cli; dqd.cli.main()\n"
        "finally:\n    print([name for name in ('jax', 'numpy', 'matplotlib', 'rich') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert answer.splitlines()[-1] == "[]"
    for name in (*PROBLEMS, *ALGORITHMS, "--resolution", "--x64", "--set", "Exit codes: 0", "130"):
        assert name in answer


def test_lapack_gets_one_thread_unless_told_otherwise() -> None:
    code = "import dqd.cli, os; print(os.environ['OPENBLAS_NUM_THREADS'])"
    for given, expected in ((None, "1"), ("4", "4")):
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        environment |= {"OPENBLAS_NUM_THREADS": given} if given else {}
        answer = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert answer.stdout.strip() == expected


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "demo"
    words = call("demo", "--out", out, "--iterations", "20").stdout
    assert str(out / "heatmap.png") in words
    assert "720 evaluations and 20 gradients" in words
    assert (out / "poses.png").stat().st_size > 10_000
    return out


def names(out: Path) -> set[str]:
    return {path.name for path in out.iterdir()}


def test_the_demo_draws_pictures_and_can_be_repeated(demonstrated: Path, tmp_path: Path) -> None:
    out = shutil.copytree(demonstrated, tmp_path / "demo")
    (out / ".dqd-0123456789abcdef-steps" / "000000020").mkdir(parents=True)  # of a demo that was killed
    call("demo", "--out", out, "--iterations", "20")
    assert names(out) == {"config.json", "steps", "heatmap.png", "poses.png"}


def test_the_demo_of_digits_replaces_that_of_arms(demonstrated: Path, tmp_path: Path) -> None:
    out = shutil.copytree(demonstrated, tmp_path / "demo")
    words = call("demo", "--domain", "lsi-digits", "--out", out, "--iterations", "20").stdout
    assert names(out) == {"config.json", "steps", "heatmap.png", "collage.png", "disagreement.png"}
    assert "digits with 720 evaluations and 20 gradients" in words
    assert "the demo knows arm and lsi-digits" in call("demo", "--domain", "lp-sphere", code=2).stderr


def result_of_ones_own(out: Path) -> None:
    shutil.rmtree(out)
    dqd.AskTell(dqd.cma_mega(1.0), dqd.Grid([0], [1], [4]), x0=np.zeros(3)).result().save(out)


FOREIGN = {
    "a file": (lambda out: (out / "notes.txt").write_text("mine"), "notes.txt"),
    "a file among the steps": (lambda out: (out / "steps" / "notes.txt").write_text("mine"), "steps/notes.txt"),
    "a file in a step": (lambda out: (out / "steps" / "000000020" / "n.txt").write_text("mine"), "000000020/n.txt"),
    "a link": (lambda out: (out / "steps").rename(out.parent / "x") and (out / "steps").symlink_to("../x"), "steps"),
    "a folder": (lambda out: (out / "poses.png").unlink() or (out / "poses.png").mkdir(), "poses.png"),
    "a saved result": (result_of_ones_own, "that no demo has written"),
    "no config": (lambda out: (out / "config.json").unlink(), "that no demo has written"),
}


@pytest.mark.parametrize(("change", "words"), FOREIGN.values(), ids=FOREIGN)
def test_the_demo_replaces_nothing_but_a_demo(demonstrated: Path, tmp_path: Path, change: object, words: str) -> None:
    out = shutil.copytree(demonstrated, tmp_path / "demo")
    change(out)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    answer = call("demo", "--out", out, code=2).stderr
    assert words in answer
    assert "choose another folder" in answer
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


# Going on -------------------------------------------------------------------------------------------------------------


def shown(words: str) -> dict:
    """The line of JSON without times, which add up over sessions, and without the place of the pictures."""
    found = json.loads(words.splitlines()[-1])
    return {name: value for name, value in found.items() if "seconds" not in name and name != "pictures"}


def test_the_same_command_and_resume_go_on_and_a_finished_run_is_shown_again(tmp_path: Path) -> None:
    whole = shown(call(*CMA_MEGA, "--set", "sigma=3", "--x64", "--json", "-q", "--out", tmp_path / "whole").stdout)
    part = [*CMA_MEGA, "--set", "sigma=3", "--x64", "--json", "-q", "--out", tmp_path / "parts"]
    assert shown(call(*part, "--iterations", 10).stdout)["iterations"] == 10
    assert shown(call("resume", tmp_path / "parts", "--json", "-q").stdout)["iterations"] == 10  # as it was begun
    assert shown(call("resume", tmp_path / "parts", "--iterations", 20, "--json", "-q").stdout) == whole
    assert shown(call(*part).stdout) == whole
    ours, theirs = (record.read(tmp_path / name) for name in ("parts", "whole"))
    assert ours.metrics == theirs.metrics
    np.testing.assert_array_equal(ours.arrays["solutions"], theirs.arrays["solutions"])


def test_a_run_may_have_cells_around_centroids_and_resume_knows_it(tmp_path: Path) -> None:
    out = ["--out", tmp_path / "cvt", "--json", "-q"]
    assert shown(call(*CMA_MEGA, "--cells", "cvt:30", *out).stdout)["cells"] == "cvt:30"
    assert isinstance(dqd.load(tmp_path / "cvt").tessellation, dqd.CVT)
    found = shown(call("resume", tmp_path / "cvt", "--iterations", 21, "--json", "-q").stdout)
    assert (found["iterations"], found["cells"]) == (21, "cvt:30")
    assert "of different scales" in call("run", "--domain", "lsi-digits", "--cells", "cvt:30", code=2).stderr
    assert "expected a whole number after the colon" in call(*CMA_MEGA, "--cells", "cvt", code=2).stderr


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("dns:20", "DNS"),
        ("sliding:9", "SlidingBoundaries"),
        pytest.param("novelty:0.5", "Novelty", marks=pytest.mark.long),
        pytest.param("unbounded:9", "UnboundedGrid", marks=pytest.mark.long),
    ],
)
def test_archives_without_cells_or_with_moving_ones_are_measured_in_the_grid_of_the_problem(tmp_path, kind, name):
    found = shown(call(*CMA_MEGA, "--cells", kind, "--out", tmp_path / "run", "--json", "-q").stdout)
    saved = dqd.load(tmp_path / "run")
    assert isinstance(saved.tessellation, dqd.Grid)
    assert saved.config["grid"]["type"] == name
    assert name != "SlidingBoundaries" or saved.config["grid"]["lower"] == pytest.approx(saved.tessellation.lower)
    assert found["qd_score"] == pytest.approx(saved.qd_score, rel=1e-5)
    again = shown(call("resume", tmp_path / "run", "--iterations", 21, "--json", "-q").stdout)
    assert (again["iterations"], again["cells"]) == (21, kind)


def test_a_run_may_keep_elites_in_half_the_memory_and_resume_knows_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_json(*CMA_MEGA, "--solutions", "float16", "--out", str(out))
    assert json.loads((out / "config.json").read_text())["solutions"] == "float16"
    found = json.loads(call("resume", out, "--iterations", 22, "--json", "--quiet").stdout.splitlines()[-1])
    assert (found["iterations"], found["solutions"]) == (22, "float16")
    solutions = dqd.load(out).solutions
    np.testing.assert_array_equal(solutions, solutions.astype(np.float16).astype(np.float32))
    assert "float8" in call(*CMA_MEGA, "--solutions", "float8", code=2).output


def test_problems_with_many_measures_have_cells_around_centroids_and_resume_knows_them(tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "CELLS", 30)
    many = ["run", "--domain", "lp-rastrigin-k4", "--n", 20, "--iterations", 2, "--json", "-q"]
    assert "resolution" not in shown(call(*many, "--out", tmp_path / "k4").stdout)
    assert dqd.load(tmp_path / "k4").tessellation.num_cells == 30
    found = shown(call("resume", tmp_path / "k4", "--iterations", 3, "--json", "-q").stdout)
    assert (found["iterations"], found["domain"]) == (3, "lp-rastrigin-k4")
    assert shown(call(*many, "--resolution", 3).stdout)["resolution"] == 3


def test_a_run_begins_with_the_elites_of_another_and_resume_knows_it(tmp_path: Path) -> None:
    call(*CMA_MEGA, "--out", tmp_path / "first", "-q")
    further = [*CMA_MEGA, "--seed", 1, "--archive", tmp_path / "first", "--out", tmp_path / "second", "--json", "-q"]
    found = shown(call(*further, "--iterations", 1).stdout)
    there = dqd.load(tmp_path / "first")
    assert found["coverage"] >= there.coverage > 0
    assert (dqd.load(tmp_path / "second").found == 0).sum() > len(there) / 2
    assert shown(call("resume", tmp_path / "second", "--iterations", 2, "--json", "-q").stdout)["iterations"] == 2
    assert "no such run or file" in call(*CMA_MEGA, "--archive", tmp_path / "none", code=1).stderr


def test_changed_settings_are_wrong_usage_and_named(tmp_path: Path) -> None:
    call(*CMA_MEGA, "--out", tmp_path / "run", "-q")
    answer = call(*CMA_MEGA, "--out", tmp_path / "run", "--seed", 3, "--set", "sigma=2", code=2).stderr
    assert "emitter.strategy.sigma: 10.0 there, 2.0 here" in answer
    assert "seed: 0 there, 3 here" in answer
    assert "has done 20 already" in call("resume", tmp_path / "run", "--iterations", 10, code=2).stderr


def test_a_run_of_ones_own_function_is_resumed_by_the_call_that_began_it(tmp_path: Path) -> None:
    dqd.AskTell(dqd.cma_mega(1.0), dqd.Grid([0], [1], [4]), x0=np.zeros(3)).result().save(tmp_path / "run")
    answer = call("resume", tmp_path / "run", code=2).stderr
    assert "call dqd.illuminate again with the same arguments" in answer
    assert "is not the record of a run" in call("resume", tmp_path, code=2).stderr


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *(("seed", None), ("iterations", "x"), ("command", [1]), ("command", {"domain": "arm"})),
        *(("set", [1]), ("n", "20"), ("options", {"out": "elsewhere"}), ("options", {"bogus": 1})),
    ],
)
def test_resume_of_a_record_that_was_changed_says_so(tmp_path: Path, part: str, value: object) -> None:
    command = {"domain": "arm", "algorithm": "cma-mega", "n": 8, "resolution": 10, "x64": False, "set": {}}
    config = {"format": record.FORMAT, "seed": 0, "iterations": 20, "command": command}
    (config if part in config else command)[part] = value
    (tmp_path / "config.json").write_bytes(record.to_json(config))
    assert "does not name a command of `dqd run`" in call("resume", tmp_path, code=2).stderr


# The paper's tables ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tabel1"], ["did you mean 'table1'"]),
        (["table1", "--device", "tpu"], ["expected auto, cpu or gpu"]),
        (["table1", "--quick", "--trial-index", "2"], ["the trials of table1 are 0 to 1, got 2"]),
        (["table1", "--cluster", "head:8786"], ["--cluster"]),
    ],
)
def test_wrong_usage_of_reproduce_is_answered_in_one_line(
    arguments: list[str], words: list[str], tmp_path: Path
) -> None:
    answer = call("reproduce", *arguments, "--out", tmp_path / "out", code=2).stderr
    assert answer.count("\n") == 1
    for word in words:
        assert word in answer
    assert not (tmp_path / "out").exists()


def test_reproduce_on_a_gpu_needs_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "accelerator", lambda: False)
    answer = call("reproduce", "table1", "--device", "gpu", "--out", tmp_path / "out", code=2).stderr
    assert "JAX sees no accelerator" in answer


def test_a_folder_that_reproduce_cannot_use_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is a file" in call("reproduce", "table1", "--out", tmp_path / "file", code=2).stderr
    (tmp_path / "suite.json").write_text('{"suite": "million", "cells": [], "seconds": 0.0, "device": ""}')
    answer = call("reproduce", "table1", "--out", tmp_path, code=2).stderr
    assert "holds trials of million, not of table1" in answer


def test_reproduce_says_how_it_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "reproduce", interrupted)
    assert "the same command goes on" in call("reproduce", "table1", "--out", tmp_path, code=130).stderr
    monkeypatch.setattr(launch, "reproduce", lambda *_, **__: False)
    answer = call("reproduce", "table1", "--trial-index", 3, "--out", tmp_path)
    assert "other trials are still missing" in answer.stderr
    assert "Report" not in answer.stdout
