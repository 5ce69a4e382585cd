"""Flags of XLA, the compiler behind JAX. It reads them when JAX first looks for a device."""

from __future__ import annotations

import os

NO_TRITON_PRODUCTS = "--xla_gpu_enable_triton_gemm=false"  # does nothing on a CPU


def add_flag(flag: str) -> None:
    """Set a flag, unless the user has said something about it."""
    flags = os.environ.get("XLA_FLAGS", "")
    if flag.partition("=")[0] not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {flag}".strip()
