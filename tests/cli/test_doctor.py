"""`dqd doctor`: what it finds, and when it fails."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dqd
from dqd.cli import app, doctor

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
FOR_DEVELOPERS = {"test", "train", "docs", "lint"}


@pytest.fixture
def searched(monkeypatch):
    """Without the seconds that a search takes."""
    monkeypatch.setattr(doctor, "_tiny_search", lambda: "compiled in 1.0 s, ran in 0.01 s")


def lines(output):
    return {words[1]: words for line in output.splitlines() if len(words := re.split(r"\s{2,}", line.strip(), 2)) == 3}


def test_all_is_well_here():
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"dqd {dqd.__version__}, Python ")
    found = lines(done.output)
    assert [found[name][0] for name in ("packages", "devices", "current folder", "a tiny search")] == ["ok"] * 4
    assert f"jax {version('jax')}" in found["packages"][2]
    assert "cpu 0" in found["devices"][2]
    assert re.fullmatch(r"compiled in \d+\.\d s, ran in \d+\.\d\d s", found["a tiny search"][2])
    assert {"compile cache", "browser", *doctor.EXTRAS} <= set(found)
    assert done.output.rstrip().endswith("all that a search needs works")


def test_what_is_missing_is_named_with_the_command_that_installs_it(monkeypatch, searched):
    def without(package):
        if package in ("uvicorn", "wandb"):
            raise PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr(doctor, "version", without)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    found = lines(done.output)
    assert found["view"][0] == found["wandb"][0] == "-"
    assert found["view"][2].startswith("pip install 'dqd[view]'")
    assert found["pandas"] == ["ok", "pandas", "pandas 1.0"]


def test_a_search_that_fails_is_told_with_its_reason(monkeypatch):
    def failing():
        raise RuntimeError("no\n  such device")

    monkeypatch.setattr(doctor, "_tiny_search", failing)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert lines(done.output)["a tiny search"] == ["FAILS", "a tiny search", "RuntimeError: no such device"]
    assert "something that every search needs does not work" in done.output


def test_a_cache_that_is_off_is_no_failure(monkeypatch, searched):
    import jax

    monkeypatch.setenv("DQD_NO_CACHE", "1")
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        done = CliRunner().invoke(app, ["doctor"])
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert done.exit_code == 0
    assert lines(done.output)["compile cache"][::2] == ["-", "off: DQD_NO_CACHE is set; every start compiles anew"]


def test_it_knows_every_package_and_every_extra():
    def names(requirements):
        return tuple(re.match(r"[\w-]+", requirement)[0] for requirement in requirements)

    assert names(PROJECT["dependencies"]) == doctor.NEEDED
    extras = {extra: names(given) for extra, given in PROJECT["optional-dependencies"].items()}
    assert {extra: packages for extra, (packages, _) in doctor.EXTRAS.items()} == {
        extra: packages for extra, packages in extras.items() if extra not in FOR_DEVELOPERS
    }
