"""docs/how-to/from-pyribs-and-qdax.md: its programs run, and no public name of pyribs is missing from its tables."""

import ast
import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from typing import get_args

import pytest
import ribs
from ribs.archives import ArchiveDataFrame, ArchiveStats, GridArchive
from ribs.emitters import rankers

import dqd
from dqd.emitters.rank import Ranking

PAGE = (Path(__file__).parents[2] / "docs/how-to/from-pyribs-and-qdax.md").read_text()
MODULES = (
    "archives",
    "emitters",
    "emitters.rankers",
    "emitters.opt",
    "emitters.operators",
    "schedulers",
    "visualize",
    "discount_models",
)


def names_in(module: str) -> list[str]:
    """Read, not imported: the pictures of pyribs want packages that nobody else wants."""
    path = Path(ribs.__path__[0], *module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    lists = (
        node.value
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return ast.literal_eval(next(lists))


def listed(section: str, title: str) -> set[str]:
    """Names in the first columns of the tables of a section."""
    (part,) = re.findall(rf"^### {re.escape(title)}$(.*?)(?=^##|\Z)", section, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (.*?) \|", part, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def members(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} | set(inspect.signature(kind).parameters)


def missing(module: str) -> set[str]:
    """Arguments and members of a module's classes that are not in its tables."""
    kinds = [getattr(importlib.import_module(f"ribs.{module}"), name) for name in names_in(module)]
    return set().union(*map(members, kinds)) - listed(PAGE, f"ribs.{module}")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_table_of_its_module(module: str) -> None:
    assert set(names_in(module)) - listed(PAGE, f"ribs.{module}") == set()


def test_every_module_has_its_table() -> None:
    files = Path(ribs.__path__[0]).rglob("*.py")
    own = {path.parent if path.name == "__init__.py" else path.with_suffix("") for path in files}
    names = {".".join(path.relative_to(ribs.__path__[0]).parts) for path in own}
    public = {name for name in names if name and not re.search(r"(^|\.)_", name)}
    assert public - set(MODULES) == {"typing"}  # what annotations are made of


def test_every_argument_and_member_of_emitters_and_schedulers_is_there() -> None:
    # How far from zero a gradient is, and shapes: nothing that a user would look for here.
    assert missing("emitters") <= {"epsilon", "lower_bounds", "upper_bounds", "solution_dim", "measure_dim", "seed"}
    assert missing("schedulers") == set()


def test_every_part_of_an_archive_is_there() -> None:
    frame = {name for name in vars(ArchiveDataFrame) if not name.startswith("_")}
    parts = members(GridArchive) | set(inspect.signature(ArchiveStats).parameters) | frame
    assert parts - listed(PAGE, "What an archive is made of") == set()


def test_our_names_on_the_page_exist() -> None:
    names = set(re.findall(r"`dqd\.(\w+)", PAGE))
    assert [name for name in names if not hasattr(dqd, name) and not importlib.util.find_spec(f"dqd.{name}")] == []


def row(name: str) -> str:
    (found,) = re.findall(rf"^\| [^|\n]*`{name}`[^|\n]* \|.*$", PAGE, re.MULTILINE)
    return found


@pytest.mark.parametrize("each", get_args(Ranking)[1:])
def test_every_ranking_of_pyribs_that_is_here_is_told(each: str) -> None:
    (ranker,) = re.findall(rf"``{each}``: :class:`(\w+)`", rankers.__doc__ or "")
    assert f'`ranking="{each}"`' in row(ranker)


HERE = {"BanditScheduler": dqd.bandit, "DiscountArchive": dqd.dms, "DensityArchive": dqd.dds, "DNSArchive": dqd.DNS}


@pytest.mark.parametrize("name", HERE)
def test_what_is_here_is_not_said_to_be_missing(name: str) -> None:
    assert f"`dqd.{HERE[name].__name__}" in row(name)
    assert "not here" not in row(name)


def run_page(names: dict) -> None:
    """With fewer iterations, and without QDax where that is not installed."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    if importlib.util.find_spec("qdax") is None:
        blocks = [block for block in blocks if "qdax" not in block]
    exec(re.sub(r"\b1000\b", "5", "".join(blocks)), names)


def test_the_loops_run_and_the_searches_are_well_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches are called as `illuminate` wants it, and not compiled."""
    signature = inspect.signature(dqd.illuminate)
    monkeypatch.setattr(dqd, "illuminate", signature.bind, raising=False)
    names: dict = {}
    run_page(names)
    assert names["search"].iteration == 5
    assert names["elites"].coverage > 0


@pytest.mark.long
def test_all_programs_run() -> None:
    names: dict = {}
    run_page(names)
    assert names["result"].iterations == 5
