"""Precision and Hypothesis settings of all tests.

Tests run in float32, as the library does by default. Those marked `x64` (`pytestmark = pytest.mark.x64` for a whole
file) run in float64, where numbers are compared with trusted references. Programs are compiled without the
optimisations of LLVM, which take longest, also by the processes that a test starts; those of tests marked `optimised`,
which run for long, are compiled with them. `make test` has the others compiled by XLA's older emitter as well, which is
quicker still but rounds the same numbers differently in different programs; not those marked `exact`.
"""

import atexit
import gc
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from conformance.table import quick_to_compile
from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))
MAPS = Path("/proc/self/maps")  # one line each

os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"  # for processes that tests start

# Programs are compiled once for all files, workers and processes of a test run, and for no other run. The smallest are
# most of them, and quicker to read than to compile, too.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="dqd-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)

# Compilation makes a first example slow, hence no deadline. Under CI a failure must be the commit's own.
settings.register_profile(
    "dqd", deadline=None, derandomize=IN_CI, database=None if IN_CI else settings.default.database
)
settings.load_profile("dqd")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "x64: runs in float64")
    config.addinivalue_line("markers", "optimised: programs are compiled slowly and run quickly")
    config.addinivalue_line("markers", "exact: two programs must agree to the bit, as XLA compiles them by itself")


def pytest_collection_finish() -> None:
    """What was imported stays: the collector of garbage need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_terminal_summary(terminalreporter) -> None:
    """What could not be tested for want of a browser is said, not passed over."""
    left_out = [report for report in terminalreporter.stats.get("skipped", []) if "no browser" in str(report.longrepr)]
    if left_out:
        terminalreporter.section("NOT TESTED", red=True, bold=True)
        terminalreporter.line(
            f"{len(left_out)} tests of the explorer's pages need chromium and chromium-driver, which are not here.",
            red=True,
        )


@pytest.fixture(autouse=True)
def precision(request: pytest.FixtureRequest) -> Iterator[None]:
    with jax.enable_x64(request.node.get_closest_marker("x64") is not None):
        yield


@pytest.fixture(autouse=True)
def optimisation(request: pytest.FixtureRequest) -> Iterator[None]:
    with quick_to_compile(request.node.get_closest_marker("optimised") is None):
        yield


@pytest.fixture(autouse=True, scope="module")
def programs() -> Iterator[None]:
    """Compiled programs end with a file, when there are many.

    Each takes several memory maps, of which Linux allows a process 65,530: beyond that the compiler crashes.
    """
    yield
    if memory_maps() > 8_000:
        jax.clear_caches()
        gc.collect()


def memory_maps() -> float:
    try:
        return sum(1 for _ in MAPS.open("rb"))
    except OSError:  # not Linux
        return math.inf
