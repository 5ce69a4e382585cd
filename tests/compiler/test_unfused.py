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


def test_seeds_side_by_side_share_one_branch_and_what_it_reads():
    """Or else a domain's weights would be copied for every seed, and every one of several functions computed."""
    weights, functions = jnp.ones((5, 3)), (jnp.sin, jnp.cos)

    def of(seed, x, number):
        return apart(seed >= 0, lambda x: jax.lax.switch(number, functions, weights @ x), x)

    seeds, x = jnp.arange(7), jnp.arange(21.0).reshape(7, 3)
    mapped = jax.vmap(of, in_axes=(0, 0, None))
    program = jax.make_jaxpr(mapped)(seeds, x, 1)
    (branch,) = [line for line in program.eqns if line.primitive.name == "cond"]
    shapes = {variable.aval.shape for variable in branch.invars}
    assert shapes == {(), (5, 3), (7, 3)}
    assert "select_n" not in str(branch.params["branches"])
    np.testing.assert_allclose(jax.jit(mapped)(seeds, x, 1), np.cos(x @ weights.T), rtol=1e-6)
