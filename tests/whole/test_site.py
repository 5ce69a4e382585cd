"""The site of the documentation: every page has its place, what it quotes is what the library says, and it is built."""

import importlib.util
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import dqd

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TROUBLE = (DOCS / "troubleshooting.md").read_text()


def entries() -> list[str]:
    """What the tables of contents name: pages, or patterns of them."""
    lists = re.findall(r"^\.\. toctree::\n(.*?)(?=^\S|\Z)", (DOCS / "index.rst").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.strip() for part in lists for line in part.splitlines()]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")]


def pages() -> list[str]:
    files = (path for ending in ("md", "rst", "ipynb") for path in DOCS.rglob(f"*.{ending}"))
    found = (path.relative_to(DOCS).with_suffix("") for path in files)
    return sorted(str(page) for page in found if page != Path("index"))


def test_every_page_is_in_a_table_of_contents() -> None:
    assert [page for page in pages() if not any(fnmatch(page, entry) for entry in entries())] == []


def test_every_entry_is_a_page() -> None:
    assert [entry for entry in entries() if not any(fnmatch(page, entry) for page in pages())] == []


def unsaid(quoted: list[str], *files: str) -> list[str]:
    """Pieces of the quoted messages, figures apart, that are in none of the source files."""
    source = "".join((ROOT / "src/dqd" / name).read_text() for name in files)
    said = re.sub(r'"\s*f?"', "", source)  # strings that stand side by side are one
    pieces = [piece.strip(" .") for words in quoted for piece in re.split(r"[\d,.]+%?|measure 1|runs/demo/", words)]
    return [piece for piece in pieces if piece not in said]


def test_the_library_says_what_troubleshooting_quotes() -> None:
    quoted = re.findall(r"^> (.*)$", TROUBLE, re.MULTILINE)
    quoted += re.findall(r"^\| `([^`]+)` \|", TROUBLE.split("## Gradients")[1], re.MULTILINE)
    assert len(quoted) > 10
    assert unsaid(quoted, "search/health.py", "domains/check_jacobian.py") == []


def test_the_demo_says_what_the_readme_quotes() -> None:
    (words,) = re.findall(r"^An arm of.*?(?=^```)", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert unsaid(words.splitlines(), "cli/demo.py") == []


def test_the_programs_of_troubleshooting_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TROUBLE, re.DOTALL)
    names: dict = {}
    exec("\n".join([*blocks[1:], blocks[0]]).replace("iterations=1000", "iterations=20"), names)
    said = capsys.readouterr().out
    assert said.startswith("[0.56")
    assert "jacobian agrees" in said


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "furo", "myst_nb")),
    reason="the site needs Sphinx: pip install 'dqd[docs]', or make docs",
)
def test_the_site_is_built_without_warnings_and_without_the_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", DOCS, tmp_path]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "JAX_PLATFORMS": "cpu"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    page = (tmp_path / "reference.html").read_text()
    assert [name for name in dqd.__all__ if f'id="dqd.{name}"' not in page] == []
    assert "&gt;&gt;&gt; " in page  # examples
    assert (tmp_path / "notebooks/bridges.html").read_text().count("<img") >= 3
    loaded = [
        address
        for path in tmp_path.rglob("*.html")
        for address in re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', path.read_text())
    ]
    assert [address for address in loaded if "//" in address and not address.startswith("data:")] == []
