"""What every runner is: it turns the crank of a search."""

from __future__ import annotations

from typing import Protocol

from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.metrics import Standing
from dqd.search.search import SearchState, Tally


class Runner(Protocol):
    """Interface. However launches are cut, the same iterations give the same state, bit for bit."""

    @property
    def grain(self) -> int:
        """Launches of this length are the fastest."""
        ...

    @property
    def chunk(self) -> int:
        """Iterations after which `until` is asked if the user does not say."""
        ...

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        """The state before iteration 1, the initial population evaluated; `seed` is (), or (seeds,) side by side."""
        ...

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, Standing, Tally]:
        """`length` iterations. The state is given away; of the rows, one for each, the first `length` count."""
        ...

    def close(self) -> None:
        """Nothing more will be launched."""
        ...
