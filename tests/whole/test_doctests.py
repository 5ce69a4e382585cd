"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import jax.numpy as jnp
import numpy as np
import pytest

import dqd

MODULES = [
    module.name for module in pkgutil.walk_packages(dqd.__path__, "dqd.") if not module.name.endswith("__main__")
]
EXACT = ("dqd.latent.domain.LatentDomain",)  # whose printed figures depend on how programs are compiled
NAMES = {"dqd": dqd, "jnp": jnp, "np": np}
with_examples = [
    (name, example)
    for name in MODULES
    for example in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), extraglobs=NAMES)
    if example.examples
]


def row(example):
    return pytest.param(example, id=example.name, marks=[pytest.mark.exact] * (example.name in EXACT))


@pytest.mark.parametrize("example", [row(example) for _, example in with_examples])
def test_an_example_says_what_is_true(example):
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize("name", [name for name in dqd.__all__ if callable(getattr(dqd, name))])
def test_every_public_name_says_what_it_is(name):
    words = getattr(dqd, name).__doc__
    assert words
    assert len(words.splitlines()[0]) > 20


WITHOUT = {"Probe"}  # what dqd.probe returns, whose example prints one


def test_every_public_name_has_an_example():
    public = {name for name in dqd.__all__ if callable(thing := getattr(dqd, name)) and not is_error(thing)}
    shown = {name for name in public if ">>>" in (getattr(dqd, name).__doc__ or "")}
    assert public - shown == WITHOUT


def is_error(thing):
    return isinstance(thing, type) and issubclass(thing, Exception)
