"""What searches have in common that move on the host: a state that is overwritten in place, and its metrics.

Every half-step is a program of its own, which takes what changes of a state as a list of arrays and overwrites them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.metrics import Standing
from dqd.compiler.flags import in_order
from dqd.search.packing import Packed, opened
from dqd.search.search import FIXED, Search, SearchState, no_evaluation
from dqd.types import Evaluation, replace

MANY = 256  # iterations


class Motion:
    """A search in motion on the host. It takes over the buffers of the state that it is given."""

    def __init__(self, programs: Callable[[Any, Division], Any], search: Search, state: SearchState) -> None:
        self.iteration = int(state.iteration)  # iterations completed
        self.nothing = no_evaluation(state.archive.num_measures, state.x0)
        self._standings: list[Standing] = []  # after the last iterations
        self._rows: list[Standing] = []  # after those before, each with an axis of iterations
        description, form = jax.tree.flatten(jax.tree.map(jnp.asarray, search))
        state = replace(state, emitter=Packed.of(state.emitter))
        division = Division.of(state)
        self._programs = programs(form, division)
        self._state, fixed = division.divide(state)
        self._fixed = (description, fixed)

    @property
    def state(self) -> SearchState:
        """A copy, which later half-steps do not touch."""
        return _opened(self._programs.copy(self._state, self._fixed))

    def release(self) -> SearchState:
        """The state itself; the next half-step overwrites it."""
        return _opened(self._programs.division.join(self._state, self._fixed[1]))

    @property
    def reported(self) -> Archive:
        """The archive whose metrics are told, at this very moment; the next half-step overwrites it."""
        return self._programs.division.join(self._state, self._fixed[1]).reported

    def rows(self) -> Standing:
        """What the metrics follow from, after every iteration since this was last asked for."""
        self._settle()
        rows, self._rows = self._rows, []
        return jax.tree.map(lambda *parts: np.concatenate(parts), *rows)

    def _completed(self, standing: Standing) -> None:
        """One more iteration has ended so."""
        self.iteration += 1
        self._standings.append(standing)
        if len(self._standings) == MANY:
            self._settle()

    def _settle(self) -> None:
        """Many arrays become one: each takes more memory than the words in it."""
        if self._standings:
            self._rows.append(jax.tree.map(lambda *words: np.stack(words), *self._standings))
            self._standings = []


@dataclass(frozen=True)
class Division:
    """A state as two lists of arrays, which a program takes sooner than a tree: what changes, and what never does."""

    form: Any
    fixed: tuple[bool, ...]

    @staticmethod
    def of(state: SearchState) -> Division:
        leaves, form = jax.tree_util.tree_flatten_with_path(state)
        return Division(form, tuple(jax.tree_util.keystr(path).startswith(FIXED) for path, _ in leaves))

    def divide(self, state: SearchState) -> tuple[list[Array], list[Array]]:
        leaves = list(zip(jax.tree.leaves(state), self.fixed, strict=True))
        return [leaf for leaf, fixed in leaves if not fixed], [leaf for leaf, fixed in leaves if fixed]

    def join(self, moving: Sequence[Array], fixed: Sequence[Array]) -> SearchState:
        moving_, fixed_ = iter(moving), iter(fixed)
        return jax.tree.unflatten(self.form, [next(fixed_ if is_fixed else moving_) for is_fixed in self.fixed])


class Programs:
    """What every search of one form needs, each compiled when it is first needed."""

    def __init__(self, form: Any, division: Division) -> None:
        self.form, self.division = form, division
        self.copy = self.reading(lambda search, state: state)
        self.ask_initial, self.tell_initial = self.reading(Search.ask_initial), self.writing(_tell_initial)

    def reading(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """step(search, state, *operands), compiled."""

        def program(state: list[Array], fixed: tuple[list[Array], list[Array]], *operands: Any) -> Any:
            return step(*self._given(state, fixed), *operands)

        program.__name__ = step.__name__
        return jax.jit(program, compiler_options=in_order())

    def writing(self, step: Callable[..., tuple[SearchState, Any]]) -> Callable[..., Any]:
        """The same for one that returns a new state, whose buffers become those of the old one, and more."""

        def program(state: list[Array], fixed: tuple[list[Array], list[Array]], *operands: Any) -> Any:
            new, more = step(*self._given(state, fixed), *operands)
            return self.division.divide(replace(new, tally=new.tally.carried()))[0], more

        program.__name__ = step.__name__
        return jax.jit(program, donate_argnums=0, compiler_options=in_order())

    def _given(self, state: list[Array], fixed: tuple[list[Array], list[Array]]) -> tuple[Search, SearchState]:
        return jax.tree.unflatten(self.form, fixed[0]), self.division.join(state, fixed[1])


def _opened(state: SearchState) -> SearchState:
    return replace(state, emitter=opened(state.emitter))


def _tell_initial(
    search: Search, state: SearchState, solutions: Array, evaluation: Evaluation
) -> tuple[SearchState, None]:
    return search.tell_initial(state, solutions, evaluation), None
