"""Compiled programs kept in the user's cache folder, so that the same run starts seconds earlier the next time."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def enable() -> None:
    """Switch JAX's persistent compilation cache on, unless DQD_NO_CACHE is set or the user chose a folder."""
    import jax

    if os.environ.get("DQD_NO_CACHE") or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    with contextlib.suppress(OSError, RuntimeError):  # no home, or a home that cannot be written: do without
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "dqd" / "xla"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        jax.config.update("jax_compilation_cache_dir", str(folder))
