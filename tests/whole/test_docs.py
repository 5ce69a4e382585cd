"""Documents keep up with the code: links lead somewhere, code is valid, names and options are all there."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

import dqd
from dqd.cli import app
from dqd.paper import suites
from dqd.paper.presets import ALGORITHMS, PROBLEMS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def text(name: str) -> str:
    return (ROOT / name).read_text()


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES + NOTEBOOKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_exist(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()) + re.findall(r'src="([^"]+)"', page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_is_valid_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        compile(block, str(page), "exec")


def rooms() -> dict[str, str]:
    """Folder -> what the design says of it."""
    found, path = {}, []
    for line in text("docs/design.md").split("## Rooms")[1].split("```")[1].splitlines():
        if room := re.match(r"( *)([a-z/]+)/ ", line):
            path = [*path[: len(room[1]) // 4], room[2]]
        found["/".join(path)] = found.get("/".join(path), "") + " " + line[room.end() if room else 0 :]
    return found


def test_the_design_names_every_file_in_its_room() -> None:
    """Whoever has read the list knows the house; a new file must be put on it."""
    package, said = ROOT / "src" / "dqd", rooms()
    files = [path.relative_to(package) for path in package.rglob("*.py") if not path.stem.startswith("__")]
    names = {room: re.findall(r"\w+", re.sub(r"\([^)]*\)", "", words)) for room, words in said.items()}
    assert [path for path in files if path.stem not in names.get(path.parent.as_posix().removeprefix("."), [])] == []


def test_every_public_name_is_listed() -> None:
    page = text("docs/api.md")
    assert [name for name in dqd.__all__ if f"`dqd.{name}" not in page] == []


def test_every_option_and_algorithm_is_documented() -> None:
    page, algorithms = text("docs/cli.md"), text("docs/algorithms.md")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    parameters = [each for command in commands.values() for each in command.params]
    options = {option for each in parameters if each.param_type_name == "option" for option in each.opts}
    assert [name for name in (*options, *PROBLEMS, *ALGORITHMS, *suites.names()) if name not in page] == []
    assert [name for name in commands if f"## dqd {name}" not in page] == []
    assert [name for name in ALGORITHMS if f"`{name}`" not in algorithms] == []


def test_pictures_are_small() -> None:
    pictures = list((ROOT / "docs" / "images").glob("*"))
    assert pictures
    assert all(picture.stat().st_size < 200_000 for picture in pictures)


def test_the_version_is_the_same_everywhere() -> None:
    version = dqd.__version__
    assert f'version = "{version}"' in text("pyproject.toml")
    assert f"version: {version}" in text("CITATION.cff")
    assert f"## {version}" in text("CHANGELOG.md")
