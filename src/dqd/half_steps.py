"""The half-steps of a search, each compiled by itself: for evaluations that happen outside the compiled program.

`AskTell` hands them out one by one; the hosted runner walks through them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from dqd.search import Search

init = jax.jit(Search.init)
noise = jax.jit(Search.noise)
ask_initial = jax.jit(Search.ask_initial)
tell_initial = jax.jit(Search.tell_initial)
ask_dqd = jax.jit(Search.ask_dqd)
tell_dqd = jax.jit(Search.tell_dqd)
ask = jax.jit(Search.ask)
tell = jax.jit(Search.tell)


def spread(rows: jax.Array, mask: np.ndarray) -> jax.Array:
    """Rows for the wanted points, zeros for the others."""
    if mask.all():
        return rows
    return jnp.zeros((mask.size, *rows.shape[1:]), rows.dtype).at[np.flatnonzero(mask)].set(rows)
