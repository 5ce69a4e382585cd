"""The tables of the papers as data: which trials stand behind each, and what was published.

An *entry* of a table is one domain and one algorithm with the settings that produced the published digits
(`dqd.paper.presets`), so `rank_one="dqd2021"` for the CMA family. Suites compute in float32, the library's default
on a device; `precision` and `annealing` repeat in float64 the entries where round-off can show.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    cells: int = 0  # around centroids, in place of a grid
    results: bool = False  # whether a result archive is kept beside, which takes any objective
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
ANNEALED = ("lp-sphere", "lp-rastrigin", "lp-plateau", "arm")
OPERATORS = ("og-map-elites", "og-map-elites-line")
# Evaluations per iteration of the independent-operator variants: as the paper tells it, and as released.
BUDGETS = {"paper-budget": 36, "released-budget": 48}


DETAILED, NORMALIZED, INDEPENDENT = "tab:results_detailed", "tab:unnorm_comparison", "tab:ogmeline_independent"


def suite(name: str) -> Suite:
    """A suite by name; an unknown name is answered with the nearest."""
    title, entries = known("suite", name, _SUITES)
    return Suite(name, title, tuple(entries()))


def names() -> tuple[str, ...]:
    """Of all suites, in the order of the documentation."""
    return tuple(_SUITES)


def _entries(
    table: str,
    row: str,
    algorithms: Iterable[str],
    domains: Sequence[str] = DOMAINS,
    printed_as: str | None = None,
    **changes: Any,
) -> Iterator[Entry]:
    """Entries of a printed table, from its rows of that variant; `printed_as` is the algorithm that it names there."""
    for algorithm in algorithms:
        for domain in domains:
            printed = published(table, domain, ALGORITHMS[printed_as or algorithm].title, row)
            yield Entry(domain, algorithm, printed, **changes)


def _normalization() -> Iterator[Entry]:
    yield from _entries(NORMALIZED, "normalized_gradients", ["omg-mega"])
    yield from _entries(NORMALIZED, "unnormalized_gradients", ["omg-mega-unnormalized"], printed_as="omg-mega")


def _operators() -> Iterator[Entry]:
    yield from _entries(INDEPENDENT, "sequential_operators", OPERATORS)
    for operator, (budget, evaluations) in itertools.product(OPERATORS, BUDGETS.items()):
        changes: dict[str, Any] = {"variant": budget, "overrides": {"batch_size": evaluations, "stepped": 12}}
        row = "independent_operators"
        yield from _entries(INDEPENDENT, row, [f"{operator}-independent"], printed_as=operator, **changes)


def _annealing() -> Iterator[Entry]:
    """As released: 15 emitters of 36 evaluations; CMA-ME with the better half as parents, until it has converged."""
    alike = {"batch_size": 540}
    changes: dict[str, dict[str, Any]] = {
        "map-elites": alike,
        "map-elites-line": alike,
        "cma-me": {**alike, "emitters": 15, "selection": "mu", "restart": "basic"},
        "cma-mae": {},
    }
    for algorithm, overrides in changes.items():
        # The authors store in a second archive; only below the minimum of CMA-MAE it differs from the first.
        beside: dict[str, Any] = {"results": algorithm == "cma-mae"}
        yield from _entries("annealing", "base", [algorithm], ANNEALED, overrides=overrides, n=100, **beside)
    # The authors' 64 bits: in 32 a generation near an optimum has equal values long before it has converged, and begins
    # anew, which pays.
    double: dict[str, Any] = {"variant": "float64", "precision": "float64", "overrides": changes["cma-me"]}
    yield from _entries("annealing", "base", ["cma-me"], ANNEALED, n=100, **double)


EVALUATIONS = 10**6
# Of Hedayatian & Nikolaidis (2026), who tuned every algorithm for every number of measures: learning rate and sigma of
# CMA-MEGA and CMA-MAEGA, both with Adam, and the square of SQUAD's bandwidth.
TUNED: dict[int, dict[str, Any]] = {
    4: {"cma-mega": (0.5, 2.0), "cma-maega": (0.05, 0.5), "squad": 0.1},
    8: {"cma-mega": (0.1, 10.0), "cma-maega": (0.05, 10.0), "squad": 0.5},
    16: {"cma-mega": (0.1, 10.0), "cma-maega": (0.05, 0.5), "squad": 1.0},
}


def _high_dimensional() -> Iterator[Entry]:
    """Rastrigin's function with 4, 8 and 16 measures, the sphere with 10 and 20, in 10,000 cells around centroids."""
    shape: dict[str, Any] = {"cells": 10_000, "n": 1024, "trials": 10}
    for k, tuned in TUNED.items():
        domain = f"lp-rastrigin-k{k}"
        for algorithm in ("cma-mega", "cma-maega"):
            numbers = dict(zip(("learning_rate", "sigma"), tuned[algorithm], strict=True))
            adam = {"optimizer": "adam", "batch_size": 540, "emitters": 15, **numbers}
            yield Entry(domain, algorithm, None, overrides=adam, iterations=_rounds(540), **shape)
        squad = {"bandwidth": tuned["squad"] ** 0.5}
        yield Entry(domain, "squad", None, overrides=squad, iterations=_rounds(128), **shape)
        # The authors count one of the two evaluations of a move: as many moves as theirs.
        yield Entry(domain, "squad", None, "moves", squad, iterations=2 * _rounds(128), **shape)
        yield Entry(domain, "targeting", None, iterations=_rounds(36), **shape)
    discount: dict[str, Any] = {"cells": 10_000, "n": 100, "overrides": {"restart": 100}}
    yield from _entries("discount", "base", ["dms"], ["lp-sphere-k10", "lp-sphere-k20"], **discount)
    for algorithm in ("dms-mega", "cma-mae"):
        changes = discount | ({"overrides": {}, "results": True} if algorithm == "cma-mae" else {})
        for domain in ("lp-sphere-k10", "lp-sphere-k20"):
            yield Entry(domain, algorithm, None, **changes)


def _rounds(batch: int) -> int:
    """Iterations that make as many evaluations."""
    return round(EVALUATIONS / batch)


def _precision() -> Iterator[Entry]:
    algorithms = ("omg-mega", "cma-mega", "cma-mega-adam")
    return _entries(DETAILED, "base", algorithms, ["arm"], variant="float64", precision="float64")


_SUITES: dict[str, tuple[str, Callable[[], Iterator[Entry]]]] = {
    "table1": (
        "Table 1 and the detailed results: 8 algorithms, 3 domains, 10,000 iterations",
        lambda: _entries(DETAILED, "base", TABLE_1),
    ),
    "million": (
        "Derivative-free algorithms after 1,000,000 iterations",
        lambda: _entries(DETAILED, "1e6_iterations", GRADIENT_FREE, iterations=1_000_000),
    ),
    "normalization": ("OMG-MEGA with and without normalised gradients", _normalization),
    "operators": ("Gradient and perturbation in sequence or as independent operators", _operators),
    "resolution": (
        "Derivative-free algorithms on a 500 x 500 archive",
        lambda: _entries("tab:cmame_extra", "archive_500x500", GRADIENT_FREE, DOMAINS[:2], resolution=500),
    ),
    "precision": ("The arm in float64", _precision),
    "annealing": (
        "CMA-MAE and 3 others on 4 domains with n = 100, 10,000 iterations",
        _annealing,
    ),
    "high-dimensional": (
        "SQUAD, CMA-MEGA, CMA-MAEGA and targeting with 4 to 16 measures, DMS with 10 and 20",
        _high_dimensional,
    ),
}
