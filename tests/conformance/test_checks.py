"""The checks find what they are for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.conformance import checks
from dqd.emitters.operators import Gaussian
from dqd.emitters.variation import Variation
from dqd.types import Proposal, pytree, static

SIZES = {"batch_size": 12, "initial_population": 0}


@pytree
class Widening(Variation):
    """Keeps float64 whatever the search is in."""

    def init(self, x0, k, bounds):
        return x0.astype(jnp.float64)


@pytree
class Stubborn(Variation):
    """Makes a number part of the program."""

    step: float = static(default=0.5)

    def ask(self, state, archive, points, evaluation, noise):
        return state, Proposal(archive.pick(noise["elite"], state) + self.step * noise["normal"], drawn=())


@pytree
class Deaf(Variation):
    """Does not listen to the seed, and to the first of the batch alone."""

    def noise(self, key, n, k):
        return super().noise(jax.random.key(0), n, k)

    def tell(self, state, archive, drawn, result):
        return state + result.value[0]


def widening(scale=1.0):
    return Widening(Gaussian(0.5 * scale), **SIZES)


def stubborn(scale=1.0):
    return Stubborn(Gaussian(0.5), **SIZES, step=0.5 * scale)


def deaf(scale=1.0):
    return Deaf(Gaussian(0.5), **SIZES)


@pytest.mark.parametrize(
    ("make", "check", "words"),
    [
        (widening, checks.check_precision, "a search in float32 holds numbers of .*float64"),
        (stubborn, checks.check_numbers, "compiled anew: .*iterate"),
        (deaf, checks.check_numbers, "numbers 1.1 times as large the very same was found"),
        (deaf, checks.check_seed, "two seeds found the very same"),
        (deaf, checks.check_order, "Not equal to tolerance"),
    ],
)
def test_a_fault_is_found(make, check, words):
    with pytest.raises(AssertionError, match=words):
        check(make)


def test_what_is_no_emitter_is_said_at_once():
    with pytest.raises(TypeError, match="expected an emitter"):
        dqd.conformance.check_emitter(lambda scale=1.0: object())


def test_a_check_leaves_the_precision_as_it_was():
    checks.check_precision(lambda scale=1.0: dqd.map_elites(0.5 * scale))
    assert jnp.zeros(1).dtype == np.float32
