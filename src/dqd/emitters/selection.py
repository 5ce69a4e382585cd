"""Which of a batch are parents, those from which a strategy learns."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import REJECTED
from dqd.types import AddResult

# Those that changed the archive, none to all (Fontaine et al. 2020); or the better half.
Selection = Literal["filter", "mu"]


def num_parents(selection: Selection, result: AddResult) -> Array | int:
    """The first so many by rank."""
    return result.status.size // 2 if selection == "mu" else jnp.sum(result.status != REJECTED)
