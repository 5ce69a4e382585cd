"""The site of this documentation: `make docs`.

Pages are plain Markdown that any forge shows. What only the site has is made here: pages that lie in the root of the
repository, links that lead out of this folder, and the reference, whose names and order are those of api.md.
"""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import dqd

DOCS = Path(__file__).parent
OF_ROOT = {"changes": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}
SITE = {DOCS.parent / name: DOCS / f"{page}.md" for page, name in OF_ROOT.items()}

project = "dqd"
author = copyright = "The dqd developers"
version = release = dqd.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["**/figures/*"]

myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks keep their outputs: scripts/run_notebooks.py
suppress_warnings = ["myst.header"]  # reports of suites begin below their title

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"dqd {release}"
html_copy_source = html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_css_files = ["wide.css"]


# Pages ----------------------------------------------------------------------------------------------------------------


def read_source(app: Any, page: str, source: list[str]) -> None:
    """What Sphinx reads as the text of a page."""
    if page in OF_ROOT:
        source[0] = mended((DOCS.parent / OF_ROOT[page]).read_text(), DOCS.parent, DOCS)
    elif page == "reference":
        source[0] += reference((DOCS / "api.md").read_text())
    else:
        folder = (DOCS / page).parent
        source[0] = mended(source[0], folder, folder)


def mended(text: str, folder: Path, shown: Path) -> str:
    """The text of a page in `folder`, shown as if it lay in `shown`: its links lead to pages of the site or to files.

    Folders cannot be shown, so links to them become plain words.
    """

    def link(found: re.Match[str]) -> str:
        words, path, anchor = found.groups()
        target = (folder / path).resolve()
        if target.is_dir():
            return words
        return f"[{words}]({os.path.relpath(SITE.get(target, target), shown)}{anchor})"

    return re.sub(r"(?<!!)\[([^]]*)\]\((?![a-z]+:)([^)#\s]+)((?:#[^)\s]*)?)\)", link, text)


def reference(names: str) -> str:
    """Directives for every public name, in the sections of api.md."""
    lines: list[str] = []
    for section in names.split("\n## ")[1:]:
        cells = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
        found = [name for cell in cells for name in re.findall(r"`dqd\.(\w+)", cell) if name in dqd.__all__]
        if found:
            title = section.splitlines()[0]
            lines += ["", title, "-" * len(title), ""] + [line for name in found for line in directive(name)]
    return "\n".join(lines)


def directive(name: str) -> list[str]:
    thing = getattr(dqd, name)
    if not inspect.isclass(thing):
        return [f".. autofunction:: dqd.{name}", ""]
    if issubclass(thing, Exception):
        return [f".. autoexception:: dqd.{name}", ""]
    return [f".. autoclass:: dqd.{name}", "   :members:", "   :inherited-members: Sequence, Protocol, object", ""]


# Docstrings -----------------------------------------------------------------------------------------------------------


def docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain: words in backticks are code, and so is what stands by itself further in."""
    shown: list[str] = []
    code = example = False  # what stands further in after a blank line; what begins with >>>
    for line in lines:
        stands_apart = line.startswith("    ") and shown[-1:] == [""]
        if stands_apart and not code:
            shown += ["::", ""]
        code = stands_apart or (code and (not line or line.startswith("    ")))
        example = line.startswith(">>>") or (example and bool(line))
        shown.append(line if code or example else prose(line))
    lines[:] = shown


def prose(line: str) -> str:
    """Bars mean nothing by themselves, and backticks mean code."""
    parts = re.split(r"(?<!`)`([^`]+)`(?!`)", line)  # words, code, words, ...
    return "".join(f"``{part}``" if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def signature(app: Any, what: str, name: str, thing: Any, options: Any, given: str, answer: str) -> tuple[str, str]:
    """A default that is made anew for everybody has no value to show."""
    return given and given.replace("<factory>", "..."), answer


def setup(app: Any) -> None:
    app.connect("source-read", read_source)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", docstring, priority=400)  # before napoleon, which indents
