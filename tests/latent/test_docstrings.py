"""The examples in the docstrings of what users call."""

import doctest
import importlib

import pytest

MODULES = (
    *("dqd.domains.rejudge", "dqd.latent.ascent", "dqd.latent.cutouts", "dqd.latent.domain"),
    *("dqd.latent.problems.digits", "dqd.latent.reevaluate", "dqd.latent.spaces"),
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_say_what_comes_out(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0
