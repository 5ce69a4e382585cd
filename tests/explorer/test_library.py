"""What the explorer finds in a folder, and what it says of it."""

import json
import os
import subprocess
import sys

import httpx
import jax.numpy as jnp
import numpy as np
import pytest
from explorer.samples import archive, commit, make_run, metrics, served, summary
from typer.testing import CliRunner

import dqd
from dqd.cli import app
from dqd.domains import FunctionDomain, Problem
from dqd.explorer import describe
from dqd.explorer.library import Library, NotThereError
from dqd.explorer.places import find
from dqd.safe import load_safetensors
from dqd.saved.agreement import Opinion
from dqd.storage import record
from dqd.storage.writer import Writer


def states(root):
    return {line["name"]: line["state"] for line in Library(root).lines()}


def test_a_run_is_running_then_stopped_or_finished(tmp_path):
    with Writer(tmp_path / "run") as writer:
        assert states(tmp_path) == {"run": "running"}
        commit(writer, 100, archive())
        assert states(tmp_path) == {"run": "running"}
    assert states(tmp_path) == {"run": "stopped"}
    with Writer(tmp_path / "run") as writer:
        commit(writer, 500, archive())
    assert states(tmp_path) == {"run": "finished"}


def test_looking_at_a_run_takes_no_lock(tmp_path):
    """A writer that begins while somebody looks is never turned away."""
    make_run(tmp_path / "run")
    library = Library(tmp_path)
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    library.lines()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before
    with Writer(tmp_path / "other"):
        library.lines()


def test_a_run_without_a_checkpoint_has_begun(tmp_path):
    with Writer(tmp_path / "run") as writer:
        writer.configure(record.with_versions({"iterations": 5}))
        assert states(tmp_path) == {"run": "running"}
    assert states(tmp_path) == {"run": "stopped"}


def test_a_damaged_run_is_broken_and_says_why_without_the_path(tmp_path):
    make_run(tmp_path / "run")
    file = tmp_path / "run" / record.STEPS / "000000500" / record.ARCHIVE
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    (line,) = Library(tmp_path).lines()
    assert line["state"] == "broken"
    assert "SHA-256" in line["why"]
    assert str(tmp_path.parent) not in line["why"]


def test_every_seed_of_a_run_is_listed(tmp_path):
    first, second = archive(seed=1), archive(seed=2)
    parts = {"seed-3": first, "seed-4": second}
    files = {f"{part}/{record.METRICS}": record.to_lines(metrics()) for part in parts}
    files |= {f"{part}/{record.ARCHIVE}": saved.arrays() for part, saved in parts.items()}
    summaries = {part: summary(saved, seed=int(part[-1])) for part, saved in parts.items()}
    record.write_run(tmp_path / "run", 500, {"seeds": [3, 4], "iterations": 500}, summaries, files)
    library = Library(tmp_path)
    lines = library.lines()
    assert [(line["name"], line["seed"]) for line in lines] == [("run/seed-3", 3), ("run/seed-4", 4)]
    assert lines[1]["best"] == pytest.approx(second.best)
    assert np.array_equal(library.archive(library.place(lines[1]["id"])).cell, second.cell)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv", ".safetensors"])
def test_exported_archives_open(tmp_path, suffix):
    saved = archive()
    saved.save(tmp_path / f"elites{suffix}")
    for root in (tmp_path, tmp_path / f"elites{suffix}"):
        library = Library(root)
        (line,) = library.lines()
        assert (line["kind"], line["name"]) == ("file", f"elites{suffix}")
        assert line["qd_score"] == pytest.approx(saved.qd_score)
        assert np.array_equal(library.archive(library.place(line["id"])).solutions, saved.solutions)


def test_files_that_are_no_archives_are_left_out_unless_they_are_opened(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert Library(tmp_path).lines() == []
    (line,) = Library(tmp_path / "table.csv").lines()
    assert line["state"] == "broken"


def test_hidden_folders_and_the_insides_of_runs_are_left_out(tmp_path):
    make_run(tmp_path / "a" / "b" / "run")
    make_run(tmp_path / ".hidden" / "run")
    assert [place.name for place in find(tmp_path)] == ["a/b/run"]


def test_a_run_alone_has_its_own_name(tmp_path):
    make_run(tmp_path / "mine")
    assert [place.name for place in find(tmp_path / "mine")] == ["mine"]


def test_only_what_was_found_can_be_named(tmp_path):
    make_run(tmp_path / "run")
    library = Library(tmp_path)
    for name in ("run", "../run", str(tmp_path / "run"), ""):
        with pytest.raises(NotThereError):
            library.place(name)


def test_elites_travel_as_they_are(tmp_path):
    saved = make_run(tmp_path / "run")
    with served(tmp_path) as server:
        run = httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"][0]["id"]
        (tmp_path / "answer.safetensors").write_bytes(
            httpx.get(f"{server.address}/api/runs/{run}/elites", cookies=server.cookie).content
        )
        cells = ",".join(map(str, saved.cell[[4, 2]]))
        (tmp_path / "solutions.safetensors").write_bytes(
            httpx.get(f"{server.address}/api/runs/{run}/solutions?cells={cells}", cookies=server.cookie).content
        )
    arrays = load_safetensors(tmp_path / "answer.safetensors")
    for name in ("cell", "objective", "measures", "found"):
        assert np.array_equal(arrays[name], getattr(saved, name)), name
    assert np.array_equal(load_safetensors(tmp_path / "solutions.safetensors")["solutions"], saved.solutions[[4, 2]])


def test_whole_numbers_that_need_more_than_32_bits_become_floats():
    narrow = describe.narrow({"found": np.array([1, 2**40]), "cell": np.array([1, 2])})
    assert narrow["found"].dtype == np.float64
    assert narrow["cell"].dtype == np.int32


def test_each_of_several_seeds_has_counts_of_its_own(tmp_path):
    saved, seeds = archive(), [3, 5]
    settings = {"seeds": seeds, "iterations": 20}
    rows = [{"iteration": i, "seconds": i / 10, "evaluations": [4 * i, 5 * i], "restarts": [0, i]} for i in (10, 20)]
    files = {record.TIMINGS: record.to_lines(rows)}
    for seed in seeds:
        files |= {f"seed-{seed}/{record.METRICS}": record.to_lines(metrics(last=20))}
        files |= {f"seed-{seed}/{record.ARCHIVE}": saved.arrays()}
    record.write_run(
        tmp_path / "run", 20, settings, {f"seed-{seed}": summary(saved, seed=seed) for seed in seeds}, files
    )
    library = Library(tmp_path)
    counts = {place.name: library.curves(place)["counts"] for place in library.places().values()}
    assert counts["run/seed-3"] == {
        "iteration": [10, 20],
        "seconds": [1, 2],
        "evaluations": [40, 80],
        "restarts": [0, 0],
    }
    assert counts["run/seed-5"]["restarts"] == [10, 20]


def test_runs_of_others_cannot_upset_the_list(tmp_path):
    """Settings of any shape."""
    odd = [None, 3, "x", [], {"type": []}, {"type": {"a": 1}}, [[["deep"]]]]
    for i, value in enumerate(odd):
        make_run(tmp_path / f"run-{i}", command=value, domain=value, emitter=value)
    assert [line["state"] for line in Library(tmp_path).lines()] == ["finished"] * len(odd)
    library = Library(tmp_path)
    for place in library.places().values():
        json.dumps(describe.run(library, place), allow_nan=False)


CHILD = """
import json, sys, threading, urllib.request
seen = []
def hook(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
                 "urllib.Request", "http.client.connect", "socket.bind"):
        seen.append([event, repr(arguments)])
sys.addaudithook(hook)
from pathlib import Path
from explorer.samples import make_run, served
root = Path(sys.argv[1])
make_run(root / "run")
with served(root) as server:
    found = list(seen)
    import http.client
    asked = []
    for path in ("/", "/api/runs", "/static/main.js"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", path, headers={"Cookie": f"{server.guard.cookie}={server.guard.secret}"})
        asked.append(connection.getresponse().status)
        connection.close()
outside = [each for each in seen if "127.0.0.1" not in each[1]]
heavy = sorted({"jax", "jaxlib", "optax", "torch", "matplotlib", "scipy", "pandas"} & set(sys.modules))
print(json.dumps({"binds": found, "outside": outside, "asked": asked, "heavy": heavy}))
"""


def test_the_server_connects_to_nobody_and_loads_nothing_heavy(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["asked"] == [200, 200, 200]
    assert found["outside"] == []
    assert len(found["binds"]) == 1  # the port itself
    assert found["heavy"] == []


def test_the_command_says_what_is_missing(tmp_path):
    done = CliRunner().invoke(app, ["view", str(tmp_path / "nothing")])
    assert done.exit_code == 2
    assert "no such folder, run or file" in done.output


def test_a_port_that_is_taken_is_named(tmp_path):
    make_run(tmp_path / "run")
    with served(tmp_path) as server:
        done = CliRunner().invoke(app, ["view", str(tmp_path), "--port", str(server.port), "--no-browser"])
    assert done.exit_code == 1
    assert f"--port: {server.port}" in done.output


@pytest.mark.parametrize("kind", ["table", "markdown", "latex", "csv"])
def test_compare_prints_two_tables(tmp_path, kind):
    for i in range(4):
        make_run(tmp_path / f"run-{i}", archive(seed=i), command={"algorithm": f"algorithm_{i % 2}"})
    done = CliRunner().invoke(app, ["compare", str(tmp_path), "--format", kind])
    assert done.exit_code == 0, done.output
    assert done.output.count("mean") == 1
    assert done.output.count("effect") == 1


def test_one_run_cannot_be_compared(tmp_path):
    make_run(tmp_path / "run")
    done = CliRunner().invoke(app, ["compare", str(tmp_path)])
    assert done.exit_code == 2
    assert "two runs or more" in done.output


class Doubter:
    """Agrees with every second elite."""

    opinions = (Opinion("doubter", "worth", of=0, tolerance=1.0),)

    def beside(self, domain):
        def score(x):
            objective, measures = domain.score(x)
            return objective, measures, {"worth_by_doubter": objective - 2.0 * (jnp.floor(4 * measures[0]) % 2)}

        return FunctionDomain(score)


def test_a_run_that_was_judged_shows_what_its_judges_trust(tmp_path):
    domain = FunctionDomain(lambda x: (10.0 + 0 * x[0], x[:1]))
    emitter, grid = dqd.map_elites(0.5, batch_size=8), dqd.Grid([0.0], [2.0], [8])
    problem = Problem(domain, grid, jnp.zeros(2), "doubted", ("worth", "place"), witness=Doubter())
    options = {"iterations": 4, "out": tmp_path / "run", "progress": False}
    plain = dqd.illuminate(domain, emitter, grid, x0=problem.x0, **options)
    library = Library(tmp_path)
    (place,) = library.places().values()
    before = library.stamp(place)
    assert library.about(place)["trusted_qd_score"] is None
    result = dqd.illuminate(problem, emitter, **options)
    assert library.stamp(place) != before
    shown = library.about(place)
    assert shown["qd_score"] == pytest.approx(plain.qd_score)
    assert shown["trusted_qd_score"] == pytest.approx(result.agreement.qd_score)
    assert 0 < shown["agreement"] < 100
    arrays = describe.elites(library.archive(place))
    assert set(np.round(arrays["field_disagreement"])) == {0, 2}
