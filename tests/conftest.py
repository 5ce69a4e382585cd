"""Precision and Hypothesis settings of all tests.

Tests run in float32, as the library does by default. Those marked `x64` (`pytestmark = pytest.mark.x64` for a whole
file) run in float64, where numbers are compared with trusted references.
"""

import os
from collections.abc import Iterator

import jax
import pytest
from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))

# Compilation makes a first example slow, hence no deadline. Under CI a failure must be the commit's own.
settings.register_profile(
    "dqd", deadline=None, derandomize=IN_CI, database=None if IN_CI else settings.default.database
)
settings.load_profile("dqd")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "x64: runs in float64")


@pytest.fixture(autouse=True)
def precision(request: pytest.FixtureRequest) -> Iterator[None]:
    with jax.enable_x64(request.node.get_closest_marker("x64") is not None):
        yield
