"""A page in a frame, as notebooks show it."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path

from dqd.storage.durable import make_folder, replace_file


@dataclass(frozen=True, repr=False)
class Page:
    """The explorer with one archive in it. Notebooks display it; `save` writes it for others to open."""

    content: bytes
    height: int = 820  # pixels of the frame in a notebook

    @property
    def size(self) -> str:
        return f"{max(len(self.content) / 1e6, 0.1):.1f} MB"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one HTML file, which needs no server and no network."""
        make_folder(Path(path).parent)
        replace_file(Path(path), lambda aside: aside.write_bytes(self.content))
        return Path(path)

    def _repr_html_(self) -> str:
        """In a frame of its own, which may run the page's scripts and save files, and nothing else."""
        may = 'sandbox="allow-scripts allow-downloads" allow="clipboard-write"'
        look = "width:100%;border:1px solid #8886;border-radius:6px"
        return (
            f'<iframe title="dqd explorer" {may} height="{self.height}" style="{look}" '
            f'srcdoc="{html.escape(self.content.decode())}"></iframe>'
            f'<p style="margin:4px 0;opacity:.75">{self.size} in this notebook</p>'
        )

    def __repr__(self) -> str:
        return f"Page({self.size})"
