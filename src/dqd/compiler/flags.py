"""What XLA, the compiler behind JAX, is told: flags, read when JAX first looks for devices, and options of programs."""

from __future__ import annotations

import functools
import os

NO_TRITON_PRODUCTS = "--xla_gpu_enable_triton_gemm=false"  # does nothing on a CPU


def add_flag(flag: str) -> None:
    """Set a flag, unless the user has said something about it."""
    flags = os.environ.get("XLA_FLAGS", "")
    if flag.partition("=")[0] not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {flag}".strip()


@functools.cache
def in_order() -> dict[str, str] | None:
    """Options of a program that is called again and again for little work: one thing after the other.

    By default a CPU's program offers as much as it can to other threads at a time. To wake one takes longer than what
    it would do. The order changes no number.
    """
    import jax

    options = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:  # a version that does not know it
        return None
    return options
