"""Elites that a search begins with: from a result, a saved archive, a file, or somebody else's arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.inputs.arrays import filled, numbers
from dqd.inputs.halves import at_walls
from dqd.saved.load import load
from dqd.types import Evaluation

ROWS = 256  # elites that are inserted at once
NAMES = ("solutions", "objective", "measures")


@dataclass(frozen=True, eq=False)
class Beginning:
    """Solutions and what is known of them, which is believed. They are inserted in their order."""

    solutions: np.ndarray  # (m, n)
    objective: np.ndarray  # (m,)
    measures: np.ndarray  # (m, k)
    fields: dict[str, np.ndarray]  # (m, ...) those that the search keeps and that are known

    @staticmethod
    def of(given: Any, like: Archive, bounds: tuple[Any, Any] | None) -> Beginning | None:
        """What a user gave, checked, in the precision of the archive that it is for."""
        if given is None:
            return None
        elites = _elites(given)
        arrays = {name: numbers("archive", name, getattr(elites, name)) for name in NAMES}
        sizes = {"solutions": like.solutions.shape[1:], "objective": (), "measures": like.measures.shape[1:]}
        count = len(arrays["objective"]) if arrays["objective"].ndim else -1
        for name, array in arrays.items():
            if array.shape != (expected := (max(count, 0), *sizes[name])):
                raise ValueError(f"archive: {name}: expected {expected}, as this search has it, got {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"archive: {name}: expected finite numbers, got NaN or infinity")
        exact = {name: np.ascontiguousarray(array, like.dtype) for name, array in arrays.items()}
        exact["solutions"] = at_walls(exact["solutions"], bounds, like.solutions.dtype)
        _check_bounds(exact["solutions"], bounds)
        told = {name: np.asarray(values) for name, values in getattr(elites, "fields", {}).items()}
        shapes = {name: (count, *shape) for name, shape in like.field_shapes.items()}
        return Beginning(**exact, fields={name: told[name] for name in told if shapes.get(name) == told[name].shape})

    def into(self, archive: Archive) -> Archive:
        """The archive, whose buffers are taken over, with these inserted by its own rule, as found in iteration 0."""
        for start in range(0, len(self.objective), ROWS):
            whole = (self.solutions, self.objective, self.measures, self.fields)
            parts = jax.tree.map(lambda part: filled(part[start : start + ROWS], ROWS), whole)  # noqa: B023
            archive = _insert(archive, *parts, np.arange(ROWS) < len(self.objective) - start)
        return archive


def _elites(given: Any) -> Any:
    """Something with solutions, objective and measures, of whatever holds elites."""
    given = load(given) if isinstance(given, str | os.PathLike) else getattr(given, "archive", given)
    given = getattr(given, "elites", given)
    if isinstance(given, Mapping):
        given = SimpleNamespace(**{own: given[name] for own, name in _spelt(given).items()})
    if not all(hasattr(given, name) for name in NAMES):
        raise TypeError(
            "archive: expected a dqd.Result, an archive, the path of a run or of an exported file, or a dictionary of "
            f"solutions (m, n), objective (m,) and measures (m, k), got {type(given).__name__}"
        )
    if given.solutions is None:
        raise ValueError("archive: its solutions were not saved, so no search can begin with them")
    return given


def _spelt(given: Mapping[str, Any]) -> dict[str, str]:
    """How a dictionary calls them; `archive.data()` of pyribs says solution."""
    spelt = {name: "solution" if name == "solutions" and "solution" in given else name for name in NAMES}
    missing = [name for name, own in spelt.items() if own not in given]
    if missing:
        raise ValueError(f"archive: expected solutions, objective and measures; {', '.join(missing)} missing")
    return spelt


def _check_bounds(solutions: np.ndarray, bounds: tuple[Any, Any] | None) -> None:
    if bounds is not None:
        lower, upper = (np.asarray(side) for side in bounds)
        outside = int(np.any((solutions < lower) | (solutions > upper), axis=1).sum())
        if outside:
            raise ValueError(
                f"archive: {outside:,} of its {len(solutions):,} solutions lie outside the bounds of this search; "
                "widen the bounds, or leave these solutions out"
            )


def _add(archive: Archive, solutions: Any, objective: Any, measures: Any, fields: Any, real: Any) -> Archive:
    return archive.add(solutions, Evaluation(objective, measures, fields=fields), 0, real)[0]


_insert = jax.jit(_add, donate_argnums=0)
