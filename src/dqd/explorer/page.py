"""One archive as one HTML file: the explorer's own modules and the numbers, all inside. Nothing is fetched.

Everything of a run is packed and written in base64, so that no name in it can be taken for markup.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from safetensors.numpy import save

VIEW_BYTES = 8 * 2**20  # of all pictures over time together
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def static() -> dict[str, bytes]:
    """The explorer's own files, by name."""
    folder = resources.files("dqd.explorer") / "static"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def build(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The file: `about` is what the server says of a run, its curves and its views."""
    files = static()
    text = np.frombuffer(json.dumps(about, allow_nan=False).encode(), np.uint8)
    content = save({"about": text, **{name: np.ascontiguousarray(array) for name, array in arrays.items()}})
    packed = base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<style>\n{files['style.css'].decode()}</style>\n"
        f'<link rel="icon" href="{_address(files["icon.svg"], "image/svg+xml")}">\n'
        f'<script type="importmap">{json.dumps({"imports": _modules(files)})}</script>\n'
        '<script type="module">import "dqd/main.js";</script>\n'
    )
    data = f'<script type="application/octet-stream" id="embedded">{packed}</script>\n'
    page = re.sub(r"(?m)^<(link|script)\b.*\n", "", files["index.html"].decode())
    return page.replace("</head>", head + "</head>").replace("</body>", data + "</body>").encode()


def _modules(files: Mapping[str, bytes]) -> dict[str, str]:
    """Every module at an address that holds it. Such an address has no neighbours, so they are called by name."""
    modules = {name: text.decode() for name, text in files.items() if name.endswith(".js")}
    named = {name: re.sub(r'from "\./', 'from "dqd/', text) for name, text in modules.items()}
    return {f"dqd/{name}": _address(text.encode(), "text/javascript") for name, text in named.items()}


def _address(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def thinned(steps: list[int], bytes_each: int) -> list[int]:
    """As many views as there is room for, evenly spaced."""
    room = max(VIEW_BYTES // max(bytes_each, 1), 1)
    return steps[:: -(-len(steps) // room)] if steps else []
