"""The tables of the paper as data: which runs stand behind each, and what was published.

Every cell of a table is one domain and one algorithm with the settings that produced the published digits
(`paper/presets.py`), so `rank_one="dqd2021"` for the CMA family. Suites compute in float32, the library's default
on a device; `precision` repeats in float64 the cells where round-off can show.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from dqd.paper.presets import ALGORITHMS, ITERATIONS, TRIALS, known, settings

FIGURES = ("qd_score", "qd_score_se", "coverage", "coverage_se", "best", "best_se")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell of a table: all trials of one algorithm on one domain."""

    domain: str
    algorithm: str
    published: Mapping[str, Any] | None
    variant: str = "base"
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    iterations: int = ITERATIONS
    resolution: int = 100
    precision: str = "float32"
    n: int = 1000
    trials: int = TRIALS

    @property
    def id(self) -> str:
        parts = (self.domain, self.algorithm, *(() if self.variant == "base" else (self.variant,)))
        return ".".join(parts)

    def describe(self) -> dict[str, Any]:
        """As JSON, with the full settings."""
        return {
            "id": self.id,
            "label": ALGORITHMS[self.algorithm].title,
            **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)},
            "overrides": dict(self.overrides),
            "settings": {**settings(self.domain, self.algorithm), **self.overrides},
        }


@dataclasses.dataclass(frozen=True)
class Suite:
    """The runs behind a table."""

    name: str
    title: str
    cells: tuple[Cell, ...]

    def resized(self, trials: int | None, iterations: int | None) -> Suite:
        """Fewer or more trials and iterations; the published numbers stay beside, and the title says so."""
        cells = (
            dataclasses.replace(cell, trials=trials or cell.trials, iterations=iterations or cell.iterations)
            for cell in self.cells
        )
        title = self.title if iterations is None else f"{self.title} (here: {iterations:,} iterations)"
        return dataclasses.replace(self, title=title, cells=tuple(cells))


DOMAINS = ("lp-sphere", "lp-rastrigin", "arm")
GRADIENT_FREE = ("map-elites", "map-elites-line", "cma-me")
TABLE_1 = (*GRADIENT_FREE, "og-map-elites", "og-map-elites-line", "omg-mega", "cma-mega", "cma-mega-adam")
OPERATORS = ("og-map-elites", "og-map-elites-line")
# Evaluations per iteration of the independent-operator variants: as the paper tells it, and as released.
BUDGETS = {"paper-budget": 36, "released-budget": 48}


def suite(name: str) -> Suite:
    """A suite by name; an unknown name is answered with the nearest."""
    return Suite(name, *known("suite", name, _SUITES)())


def names() -> tuple[str, ...]:
    return tuple(_SUITES)


def _table1() -> tuple[str, tuple[Cell, ...]]:
    cells = (
        Cell(domain, algorithm, published("tab:results_detailed", domain, algorithm, "base"))
        for algorithm in TABLE_1
        for domain in DOMAINS
    )
    return "Table 1 and the detailed results: 8 algorithms, 3 domains, 10,000 iterations", tuple(cells)


def _million() -> tuple[str, tuple[Cell, ...]]:
    cells = (
        Cell(
            domain,
            algorithm,
            published("tab:results_detailed", domain, algorithm, "1e6_iterations"),
            iterations=1_000_000,
        )
        for algorithm in GRADIENT_FREE
        for domain in DOMAINS
    )
    return "Derivative-free algorithms after 1,000,000 iterations", tuple(cells)


def _normalization() -> tuple[str, tuple[Cell, ...]]:
    variants = {"omg-mega": "normalized_gradients", "omg-mega-unnormalized": "unnormalized_gradients"}
    cells = (
        Cell(domain, algorithm, published("tab:unnorm_comparison", domain, "omg-mega", variant))
        for algorithm, variant in variants.items()
        for domain in DOMAINS
    )
    return "OMG-MEGA with and without normalised gradients", tuple(cells)


def _operators() -> tuple[str, tuple[Cell, ...]]:
    table = "tab:ogmeline_independent"
    sequential = (
        Cell(domain, algorithm, published(table, domain, algorithm, "sequential_operators"))
        for algorithm in OPERATORS
        for domain in DOMAINS
    )
    independent = (
        Cell(
            domain,
            f"{algorithm}-independent",
            published(table, domain, algorithm, "independent_operators"),
            variant=budget,
            overrides={"batch_size": evaluations, "stepped": 12},
        )
        for algorithm in OPERATORS
        for budget, evaluations in BUDGETS.items()
        for domain in DOMAINS
    )
    return "Gradient and perturbation in sequence or as independent operators", (*sequential, *independent)


def _resolution() -> tuple[str, tuple[Cell, ...]]:
    cells = (
        Cell(
            domain,
            algorithm,
            published("tab:cmame_extra", domain, algorithm, "archive_500x500"),
            resolution=500,
        )
        for algorithm in GRADIENT_FREE
        for domain in DOMAINS[:2]
    )
    return "Derivative-free algorithms on a 500 x 500 archive", tuple(cells)


def _precision() -> tuple[str, tuple[Cell, ...]]:
    cells = (
        Cell(
            "arm",
            algorithm,
            published("tab:results_detailed", "arm", algorithm, "base"),
            variant="float64",
            precision="float64",
        )
        for algorithm in ("omg-mega", "cma-mega", "cma-mega-adam")
    )
    return "The arm in float64", tuple(cells)


_SUITES = {
    "table1": _table1,
    "million": _million,
    "normalization": _normalization,
    "operators": _operators,
    "resolution": _resolution,
    "precision": _precision,
}


def published(table: str, domain: str, algorithm: str, variant: str) -> dict[str, Any]:
    """The printed mean and standard error of QD-score, coverage and best."""
    wanted = (table, domain.replace("-", "_"), ALGORITHMS[algorithm].title, variant)
    for row in _rows():
        if (row["table"], row["domain"], row["algorithm"], row["variant"]) == wanted:
            counts = {name: int(row[name]) for name in ("trials", "iterations")}
            return {"table": table} | counts | {name: float(row[name]) for name in FIGURES}
    raise LookupError(f"no published row for {wanted}")


@cache
def _rows() -> Iterable[dict[str, str]]:
    text = resources.files("dqd.paper").joinpath("published.csv").read_text()
    return tuple(csv.DictReader(text.splitlines()))
