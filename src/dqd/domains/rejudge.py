"""Judging elites once more: with other noise, or with a better judge than the search could afford."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.domains.domain import Domain, evaluating
from dqd.inputs.arrays import filled
from dqd.inputs.fields import Shapes
from dqd.types import Evaluation

ROWS = 256  # solutions per call
Say = Callable[[int, int], None]  # told how many of how many are done


def nobody(done: int, total: int) -> None:
    """Tells nobody."""


def rejudged(
    archive: Archive,
    judges: Sequence[Domain],
    *,
    rows: int = ROWS,
    say: Say = nobody,
    fields: Shapes | None = None,
) -> Archive:
    """A new archive of the elites of another one, by the mean of what the judges say of them.

    Elites move to the cells of their new measures, where several may meet: the best stays. So a search that was lucky
    with its noise, or that fooled a cheap judge, loses here. An elite that any judge finds not finite is dropped. The
    iteration at which an elite was found is kept; thresholds (CMA-MAE) are not, as nothing is searched any more.

    It costs one evaluation per elite and judge.

    Args:
        archive: of a search; it stays as it is.
        judges: domains whose objective and measures are averaged. Those that differ in data alone, such as a salt,
            share one compiled program.
        rows: solutions per call, which bounds memory and the time between two reports.
        say: told how many of how many elites are done.
        fields: what the judges say besides that is to be kept, by name with its shape.

    Two elites that a rough judge took for different, and for equally good:

        >>> from dqd.domains import FunctionDomain
        >>> from dqd.tessellations.grid import Grid
        >>> solutions = jnp.array([[0.9], [1.1]])
        >>> believed = Evaluation(objective=jnp.array([5.0, 5.0]), measures=jnp.array([[0.5], [1.5]]))
        >>> archive, _ = Archive.empty(Grid([0], [2], [2]), 1).add(solutions, believed)
        >>> again = rejudged(archive, [FunctionDomain(lambda x: (10 * x[0], jnp.ones(1)))])
        >>> len(archive), len(again), float(again.best)
        (2, 1, 11.0)
    """
    return judged_by(archive, _mean_of(judges, min(rows, max(len(archive), 1))), rows=rows, say=say, fields=fields)


def heard(
    archive: Archive, judge: Domain, fields: Sequence[str], *, rows: int = ROWS, say: Say = nobody
) -> dict[str, np.ndarray]:
    """What a judge says of every elite in its fields, (elites,) by name; the archive stays as it is."""
    elites, parts = archive.elites, []
    ask = _mean_of([judge], min(rows, max(len(elites), 1)))
    for start in range(0, len(elites), rows):
        parts.append(ask(elites.solutions[start : start + rows]).fields or {})
        say(min(start + rows, len(elites)), len(elites))
    return {name: np.concatenate([np.zeros(0), *(part[name] for part in parts)]) for name in fields}


def _mean_of(judges: Sequence[Domain], size: int) -> Callable[[np.ndarray], Evaluation]:
    """Batches filled up to one size, so that one program serves them all."""

    def mean(solutions: np.ndarray) -> Evaluation:
        said = mean_evaluation(judges, jnp.asarray(filled(solutions, size)))
        return jax.tree.map(lambda part: part[: len(solutions)], said)

    return mean


def judged_by(
    archive: Archive,
    evaluate: Callable[[np.ndarray], Evaluation],
    *,
    rows: int = ROWS,
    say: Say = nobody,
    fields: Shapes | None = None,
) -> Archive:
    """The same by whatever evaluates solutions (b, n), at most `rows` of them at once."""
    elites, dtype = archive.elites, archive.dtype
    judged = archive.emptied(fields)
    for start in range(0, len(elites), rows):
        piece = slice(start, start + rows)
        solutions = elites.solutions[piece]
        judged = _add(judged, solutions, evaluate(solutions).astype(dtype), elites.found[piece])
        say(start + len(solutions), len(elites))
    return judged


def mean_evaluation(judges: Sequence[Domain], solutions: Array) -> Evaluation:
    """What the judges say of a batch (b, n) on average, as NumPy arrays of float64; all must find it feasible."""
    said = [jax.device_get(_evaluated(evaluating(judge), solutions)) for judge in judges]
    flags = [each.feasible for each in said if each.feasible is not None]
    means: Any = {
        name: np.mean([getattr(each, name) for each in said], axis=0, dtype=np.float64)
        for name in ("objective", "measures")
    }
    fields = [each.fields for each in said if each.fields]
    means["fields"] = {name: np.mean([one[name] for one in fields], axis=0) for name in fields[0]} if fields else None
    return Evaluation(**means, feasible=jnp.all(jnp.stack(flags), axis=0) if flags else None)


def batches(solutions: Any, size: int) -> Iterator[tuple[Array, int]]:
    """Equally long batches for the host to work through, and how many rows of each are real."""
    rows = np.atleast_2d(np.asarray(solutions))
    size = min(size, max(len(rows), 1))
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        yield jnp.asarray(filled(batch, size)), len(batch)


def _evaluated(judge: Any, solutions: Array) -> Evaluation:
    return _evaluate(judge, solutions) if isinstance(judge, Domain) else judge.evaluate(np.asarray(solutions))


_evaluate = jax.jit(lambda judge, solutions: judge.evaluate(solutions))
_add = jax.jit(lambda archive, *batch: archive.add(*batch)[0], donate_argnums=0)
