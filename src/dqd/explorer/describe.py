"""One run, as its page is told of it: words and numbers as JSON, elites as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dqd.explorer import activity, compare
from dqd.inputs.fields import FIELD
from dqd.saved import words
from dqd.saved.archive import SavedArchive, best_of_each
from dqd.tessellations.categorical import grid_of, names_of
from dqd.tessellations.grid import Grid

if TYPE_CHECKING:
    from dqd.explorer.library import Library
    from dqd.explorer.places import Place

COUNT = 2**31
FIGURES = (
    *("qd_score", "coverage", "best", "mean", "iterations", "evaluations", "gradients", "restarts", "seconds"),
    *("trusted_qd_score", "trusted_coverage", "agreement"),  # of runs that held-out judges have looked at
)
NOTHING = {"domain": "", "algorithm": "", **dict.fromkeys(("seed", "planned", *FIGURES))}


def run(library: Library, place: Place) -> dict[str, Any]:
    """Everything but the arrays."""
    archive = library.archive(place)
    return {
        **library.about(place),
        "stamp": library.stamp(place),
        "archive": {**shape(archive), "pictures": library.slots(place)[1]},
        "settings": {name: value for name, value in archive.config.items() if name != "summary"},
        "summary": archive.config.get("summary", {}),
    }


def alone(archive: SavedArchive, name: str) -> dict[str, Any]:
    """The same of an archive that no folder holds."""
    figures = of_config(archive.config) if "summary" in archive.config else of_file(archive)
    return {
        "id": "this",
        "name": name,
        "kind": "file",
        "stamp": "",
        "changed": None,
        **figures,
        "archive": {**shape(archive), "pictures": 0},
        "settings": {name: value for name, value in archive.config.items() if name != "summary"},
        "summary": archive.config.get("summary", {}),
    }


def of_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the settings and the summary of a run say of it."""
    summary = config["summary"]
    return {
        "domain": words.domain(config),
        "algorithm": words.algorithm(config),
        "seed": _number(summary.get("seed")),
        "planned": _number(config.get("iterations")),
        **{name: _number(summary.get(name)) for name in FIGURES},
        "state": activity.ended(config),
        "why": words.text(summary.get("stopped")),
    }


def of_file(archive: SavedArchive) -> dict[str, Any]:
    """What there is to say of an archive without a run."""
    figures = {"qd_score": archive.qd_score, "coverage": archive.coverage, "best": archive.best, "mean": archive.mean}
    return {**NOTHING, **figures, "state": "finished", "why": ""}


def curves(metrics: Sequence[Mapping[str, Any]], timings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How the metrics went: columns of numbers over the iterations, and at some of them what had been spent by then."""
    counts = [row for row in timings if "evaluations" in row]
    return {"metrics": _columns(metrics), "timings": _columns(timings), "counts": _columns(counts)}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Lines of one shape as columns of numbers."""
    names = [name for name, value in (rows[0] if rows else {}).items() if isinstance(value, int | float)]
    return {name: [_number(row.get(name)) for row in rows] for name in names}


def _number(value: Any) -> float | None:
    return words.finite(float(value)) if isinstance(value, int | float) else None


def shape(archive: SavedArchive) -> dict[str, Any]:
    """The archive's cells and sizes, and what its measures are called."""
    tessellation = archive.tessellation
    return {
        "elites": len(archive),
        "cells": tessellation.num_cells,
        "numbers": None if archive.solutions is None else archive.solutions.shape[1],
        "dtype": None if archive.solutions is None else str(archive.solutions.dtype),
        "kind": words.kind(archive.config),
        "labels": list(archive.labels),
        "tessellation": tessellation.kind,
        "grid": _grid(grid) if (grid := grid_of(tessellation)) else None,
        "categories": names_of(tessellation, tessellation.num_measures),
        "qd_score_offset": archive.qd_score_offset,
    }


def _grid(grid: Grid) -> dict[str, Any]:
    return {"lower": list(grid.lower), "upper": list(grid.upper), "shape": list(grid.shape)}


def elites(archive: SavedArchive) -> dict[str, np.ndarray]:
    """All but the solutions; for cells other than a grid's, also which of them each pixel of the map shows."""
    arrays = {"cell": archive.cell, "objective": archive.objective, "measures": archive.measures}
    arrays |= {} if archive.found is None else {"found": archive.found}
    arrays |= {
        FIELD + name: each for name, each in archive.fields.items() if each.ndim == 1 and np.isfinite(each).all()
    }
    tessellation = archive.tessellation
    if grid_of(tessellation) is None and tessellation.num_measures <= 2:
        raster = tessellation.raster()
        arrays |= {"raster": raster.cells, "extent": np.asarray(raster.extent, np.float64)}
    return narrow(arrays)


def view(arrays: dict[str, np.ndarray], archive: SavedArchive) -> dict[str, np.ndarray]:
    """An earlier picture in the cells of today. Where cells have moved since, it has measures to place elites by."""
    cell, objective = arrays["cell"], arrays["objective"]
    if "measures" in arrays:
        cell = archive.tessellation.index_of(arrays["measures"].astype(archive.measures.dtype))
        best = best_of_each(cell, objective)
        cell, objective = cell[best], objective[best]
    return {"cell": cell, "objective": objective}


def narrow(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Whole numbers in types that a browser computes with: int32, or float64 for those that need more."""
    return {name: _narrow(array) for name, array in arrays.items()}


def _narrow(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8:
        return array
    fits = array.min(initial=0) >= -COUNT and array.max(initial=0) < COUNT
    return array.astype(np.int32 if fits else np.float64)


def comparison(trials: list[compare.Trial]) -> dict[str, Any]:
    """Groups, what they reached, and the tests between them."""
    groups = compare.group(trials)
    members = {name: [{"id": trial.id, "name": trial.name} for trial in trials] for name, trials in groups.items()}
    return {
        "groups": members,
        "table": compare.table(groups),
        "tests": [vars(test) for test in compare.tests(groups)],
        "curves": compare.curves(groups),
    }
