"""Runs the notebooks of the documentation and keeps what they print and draw.

python scripts/run_notebooks.py [NAME ...]
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs, run in `folder`; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}, record_timing=False).execute()
    return notebook


def main() -> None:
    for path in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        notebook = run(path, FOLDER)
        notebook.metadata["language_info"] = {"name": "python"}  # not which version ran it last
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
