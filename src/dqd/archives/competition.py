"""What every competition is: the rule by which candidates and elites compete for the rows of an archive.

The archive keeps rows and writes them; its competition says which candidate goes where. `Cells` has one row for each
cell of a tessellation, and those who come to lie in it compete for it. `DNS` and `Novelty` have no cells: a row is room
for one elite, and who competes with whom follows from where they lie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.movable import Movable
from dqd.archives.threshold import Threshold
from dqd.inputs.names import lacking
from dqd.tessellations.kinds import check_tessellation
from dqd.tessellations.tessellation import Tessellation
from dqd.types import AddResult, Evaluation, pytree

if TYPE_CHECKING:
    from dqd.archives.archive import Archive

REJECTED, IMPROVED, NEW = 0, 1, 2


@pytree
class Verdict:
    """What a batch will change."""

    result: AddResult
    row: Array  # (b,) that the candidate is written to; the number of rows, which is dropped, if it is not kept
    fresh: Array  # (b,) whether the row `result.cell`, empty before, is occupied from now on: once for each such row
    gains: Array  # (2b,) what the sum of f - offset over the elites grows by
    best: Array  # ()
    learnt: Any  # what the competition keeps of it


@runtime_checkable
class Competition(Protocol):
    """Interface: a frozen pytree. What it keeps besides the rows, such as thresholds, are fields of its own."""

    @property
    def num_cells(self) -> int:
        """Rows."""
        ...

    @property
    def num_measures(self) -> int: ...

    @property
    def new_first(self) -> bool:
        """Whether a ranking puts new elites before improved ones; if not, their value alone counts."""
        ...

    @property
    def moving(self) -> bool:
        """Whether a row may come to stand for another place in measure space."""
        ...

    @property
    def in_objectives(self) -> bool:
        """Whether values are objectives and differences of them, which tell what was gained."""
        ...

    def begun(self, threshold: Threshold, dtype: jnp.dtype) -> Self:
        """The same for an archive without elites, in numbers of that type; ValueError for what it cannot do."""
        ...

    def prepared(self, archive: Archive, evaluation: Evaluation, allowed: Array) -> Archive:
        """The archive as a batch will find it: itself, unless the batch makes elites change their rows before it."""
        ...

    def judge(self, archive: Archive, objective: Array, measures: Array, valid: Array) -> Verdict:
        """Everything about a batch that depends on what the archive holds before it. What is not valid is rejected."""
        ...

    def after(self, verdict: Verdict) -> Self:
        """The competition when the batch is in."""
        ...

    def placing(self, archive: Archive) -> Tessellation:
        """How files and figures see where elites lie: the cells, or those around the elites."""
        ...

    def settings(self) -> dict[str, Any]:
        """What the settings of a run say of it."""
        ...


CellsLike: TypeAlias = Tessellation | Movable | Competition  # whatever elites can live in


def called(competition: Competition) -> str:
    """The name that its user knows."""
    return f"dqd.{type(competition.settings()['grid']).__name__}"


def can_enter(objective: Array, measures: Array, allowed: Array) -> Array:
    """Which candidates are valid, (b,): those that may enter and whose numbers are finite."""
    return allowed & jnp.isfinite(objective) & jnp.all(jnp.isfinite(measures), axis=-1)


def check_cells(thing: Any) -> None:
    """Raise TypeError unless elites can live there: in cells, still or moving, or in a competition without any."""
    if isinstance(thing, type) or not isinstance(thing, Competition | Movable):
        if hasattr(thing, "judge"):
            raise TypeError(f"tessellation: {type(thing).__name__} is no competition{lacking(thing, Competition)}")
        check_tessellation(thing)


def beside(results: CellsLike, measures: int) -> CellsLike:
    """The cells of an archive beside a search's own, checked."""
    check_cells(results)
    if results.num_measures != measures:
        raise ValueError(
            f"result_archive: expected cells for {measures} measures, as the search has, got {results.num_measures}"
        )
    return results


def check_pytree(thing: Any) -> None:
    if any(leaf is thing for leaf in jax.tree.leaves(thing)):
        raise TypeError(f"tessellation: the class {type(thing).__name__} needs the decorator @dqd.types.pytree")


def growth(kept: Array, objective: Array, before: Array, offset: Any) -> Array:
    """What the sum of f - offset over the elites grows by, (2b,): what is kept, less what was there (-inf: nothing)."""
    replaced = jnp.where(jnp.isneginf(before), offset, before)
    return jnp.concatenate([jnp.where(kept, objective, 0), jnp.where(kept, -replaced, 0)])


def refuse_thresholds(name: str, threshold: Threshold) -> None:
    if threshold != Threshold():
        raise ValueError(
            f"threshold: dqd.{name} has no cells whose acceptance thresholds could rise. Leave threshold out; "
            "algorithms that anneal, such as CMA-MAE, need cells: a dqd.Grid or a dqd.CVT"
        )
