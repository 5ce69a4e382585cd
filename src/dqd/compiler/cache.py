"""Compiled programs kept in the user's cache folder, so that the same run starts seconds earlier the next time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import threading
from pathlib import Path
from typing import Any

_compiling: dict[str, threading.Lock] = {}


def enable() -> None:
    """Switch JAX's persistent compilation cache on, unless DQD_NO_CACHE is set or the user chose a folder."""
    import jax

    if os.environ.get("DQD_NO_CACHE") or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    with contextlib.suppress(OSError, RuntimeError):  # no home, or a home that cannot be written: do without
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "dqd" / "xla" / _processor()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)  # a search has many small ones


def compile_once(lowered: Any) -> None:
    """Compile what `jit(...).lower` returned, into the cache. Of threads with the same program, one compiles it."""
    name = hashlib.sha256(lowered.as_text().encode()).hexdigest()
    with _compiling.setdefault(name, threading.Lock()):
        lowered.compile()


def _processor() -> str:
    """What tells this processor from others: a home may be shared, and a program of another one may crash here."""
    about = platform.machine()
    with contextlib.suppress(OSError):
        found = re.search(r"^(flags|Features)\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        about += found[2] if found else ""
    return hashlib.sha256(about.encode()).hexdigest()[:16]
