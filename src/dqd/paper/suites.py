"""The tables of the paper as data: which trials stand behind each, and what was published.

An *entry* of a table is one domain and one algorithm with the settings that produced the published digits
(`dqd.paper.presets`), so `rank_one="dqd2021"` for the CMA family. Suites compute in float32, the library's default
on a device; `precision` repeats in float64 the entries where round-off can show.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dqd.inputs.names import known
from dqd.paper.presets import ALGORITHMS, settings
from dqd.paper.published import ITERATIONS, TRIALS, published


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry of a table: all trials of one algorithm on one domain."""

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
        """The name of its folder."""
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
    """All trials behind a table of the paper."""

    name: str
    title: str
    entries: tuple[Entry, ...]

    def resized(self, trials: int | None, iterations: int | None) -> Suite:
        """Fewer or more trials and iterations; the published numbers stay beside, and the title says so."""
        entries = (
            dataclasses.replace(entry, trials=trials or entry.trials, iterations=iterations or entry.iterations)
            for entry in self.entries
        )
        title = self.title if iterations is None else f"{self.title} (here: {iterations:,} iterations)"
        return dataclasses.replace(self, title=title, entries=tuple(entries))


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
    """Of all suites, in the order of the documentation."""
    return tuple(_SUITES)


Made = tuple[str, tuple[Entry, ...]]  # title and entries of a suite


def _table1() -> Made:
    title = "Table 1 and the detailed results: 8 algorithms, 3 domains, 10,000 iterations"
    return title, _entries("tab:results_detailed", "base", TABLE_1)


def _million() -> Made:
    entries = _entries("tab:results_detailed", "1e6_iterations", GRADIENT_FREE, iterations=1_000_000)
    return "Derivative-free algorithms after 1,000,000 iterations", entries


def _normalization() -> Made:
    table = "tab:unnorm_comparison"
    normalized = _entries(table, "normalized_gradients", ["omg-mega"])
    other = _entries(table, "unnormalized_gradients", ["omg-mega-unnormalized"], printed_as="omg-mega")
    return "OMG-MEGA with and without normalised gradients", normalized + other


def _operators() -> Made:
    table = "tab:ogmeline_independent"
    independent = (
        _entries(
            *(table, "independent_operators", [f"{algorithm}-independent"]),
            printed_as=algorithm,
            variant=budget,
            overrides={"batch_size": evaluations, "stepped": 12},
        )
        for algorithm in OPERATORS
        for budget, evaluations in BUDGETS.items()
    )
    entries = sum(independent, start=_entries(table, "sequential_operators", OPERATORS))
    return "Gradient and perturbation in sequence or as independent operators", entries


def _resolution() -> Made:
    entries = _entries("tab:cmame_extra", "archive_500x500", GRADIENT_FREE, DOMAINS[:2], resolution=500)
    return "Derivative-free algorithms on a 500 x 500 archive", entries


def _precision() -> Made:
    algorithms = ("omg-mega", "cma-mega", "cma-mega-adam")
    float64 = {"variant": "float64", "precision": "float64"}
    return "The arm in float64", _entries("tab:results_detailed", "base", algorithms, ["arm"], **float64)


def _entries(
    table: str,
    row: str,
    algorithms: Iterable[str],
    domains: Sequence[str] = DOMAINS,
    printed_as: str | None = None,
    **changes: Any,
) -> tuple[Entry, ...]:
    """Entries of a printed table, from its rows of that variant; `printed_as` is the algorithm that it names there."""
    return tuple(
        Entry(domain, algorithm, published(table, domain, ALGORITHMS[printed_as or algorithm].title, row), **changes)
        for algorithm in algorithms
        for domain in domains
    )


_SUITES = {
    "table1": _table1,
    "million": _million,
    "normalization": _normalization,
    "operators": _operators,
    "resolution": _resolution,
    "precision": _precision,
}
