"""What XLA, the compiler behind JAX, is told: flags, read when JAX first looks for devices, and options of programs."""

from __future__ import annotations

import functools
import os

GRAPHS = "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"
NO_TRITON_PRODUCTS = "--xla_gpu_enable_triton_gemm=false"  # does nothing on a CPU
LESS_TUNING = "--xla_gpu_autotune_level=2"  # convolutions are tried out once each, and not checked on one another


def add_flag(flag: str) -> None:
    """Set a flag, unless the user has said something about it."""
    flags = os.environ.get("XLA_FLAGS", "")
    if flag.partition("=")[0] not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {flag}".strip()


def for_networks() -> None:
    """What suits networks of images on a GPU, where most of the time to compile goes into trying out kernels.

    For lsi-stylegan this takes 13 s of 46 away, and makes an iteration 2 % longer. Where Triton's matrix products are
    left in, XLA (seen with JAX 0.11.2) aborts while it compiles the networks of lsi-faces.
    """
    add_flag(NO_TRITON_PRODUCTS)
    add_flag(LESS_TUNING)


@functools.cache
def in_order() -> dict[str, str] | None:
    """Options of a program that is called again and again for little work: one thing after the other.

    By default a CPU's program offers as much as it can to other threads at a time. To wake one takes longer than what
    it would do. The order changes no number.
    """
    return _known("cpu", {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"})


@functools.cache
def side_by_side() -> dict[str, str] | None:
    """Options of a program that makes many iterations of many small kernels: those that need not wait do not.

    By default a GPU begins a kernel when the one before has ended, whether or not it reads what that one wrote. Its
    kernels are short, so that waiting is a third of an iteration. Loops are within its graphs, too, so that the host
    need not be asked whether to go on. DQD_SIDE_BY_SIDE=1 switches it on: that no bit depends on it is not shown yet.
    """
    options = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT", "xla_gpu_enable_command_buffer": GRAPHS}
    return _known("gpu", options) if os.environ.get("DQD_SIDE_BY_SIDE", "0") == "1" else None


def _known(platform: str, options: dict[str, str]) -> dict[str, str] | None:
    """The options on that platform, if this version of JAX knows them."""
    import jax

    if jax.default_backend() != platform:
        return None
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:
        return None
    return options
