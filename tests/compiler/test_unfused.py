"""Parts kept apart: the same values, and only what is new passes through the branch."""

import jax
import jax.numpy as jnp
import numpy as np
from conformance.table import assert_same

from dqd.compiler.unfused import apart


def part(state, factor):
    """Changes one thing and passes two on as they are."""
    return {"new": state["x"] * factor + 1, "same": state["y"]}, factor


STATE = {"x": jnp.arange(3.0), "y": jnp.arange(4)}


def test_a_part_kept_apart_gives_what_it_gives_alone():
    kept = jax.jit(lambda state, factor: apart(factor > 0, part, state, factor))(STATE, 2.0)
    assert_same(kept, jax.jit(part)(STATE, 2.0))


def test_what_a_part_passes_on_goes_around_the_branch():
    program = jax.make_jaxpr(lambda state, factor: apart(factor > 0, part, state, factor))(STATE, 2.0)
    (branch,) = [line for line in program.eqns if line.primitive.name == "cond"]
    assert [result.aval.shape for result in branch.outvars] == [(3,)]


def test_a_branch_that_is_not_taken_leaves_nothing_new():
    found, _ = apart(jnp.array(False), part, STATE, 2.0)
    np.testing.assert_array_equal(found["new"], 0)
    np.testing.assert_array_equal(found["same"], STATE["y"])
