"""A search some of whose sigmas were left out: what is to be chosen, and the search with all of it chosen."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.cells import Cells
from dqd.archives.competition import called
from dqd.console import saying
from dqd.domains.rows import named, parallel_rows
from dqd.domains.survey import Ask, Survey, within
from dqd.emitters.scale import scaled, unscaled
from dqd.search.search import Search
from dqd.storage import record
from dqd.storage.folder import Folder
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Along, Evaluation, replace

INITIAL = "initial_sigma"
Chosen = Mapping[str, float]  # by what they multiply, or INITIAL


@dataclass(frozen=True)
class Scales:
    """What is left to be chosen of a search."""

    search: Search
    names: tuple[str, ...]  # nothing, where all sigmas were given

    @staticmethod
    def of(search: Search, initial_sigma: float | None) -> Scales:
        """Where a sigma was left out, that of the initial population is chosen too, unless it was given."""
        names: list[str] = list(unscaled(search.emitter))
        if names and search.emitter.initial_population and initial_sigma is None:
            names.append(INITIAL)
        return Scales(search, tuple(names))

    def choosing(self, x0: Any, searched: Archive | Tessellation) -> Generator[Ask, Evaluation, dict[str, float]]:
        """Asks for evaluations until all is chosen."""
        cells = searched if isinstance(searched, Tessellation) else _cells(searched)
        bounds = self.search.bounds
        offset = 0.0 if isinstance(searched, Tessellation) else searched.offset
        survey = Survey.of(np.asarray(x0), cells, bounds, offset)
        chosen: dict[str, float] = {}
        for name in self.names:
            along = "solutions" if name == INITIAL else cast("Along", name)
            known, find = chosen.get(along), survey.slope() if along == "objective" else survey.sigma(along)
            chosen[name] = (yield from within(find, bounds)) if known is None else known
        _warn(survey.jacobians)
        return chosen

    def chosen(self, numbers: Chosen) -> Search:
        """The search with these."""
        search = replace(self.search, emitter=scaled(self.search.emitter, lambda along: numbers[along]))
        return replace(search, initial_sigma=numbers[INITIAL]) if INITIAL in self.names else search

    def recorded(self, folder: Folder | None) -> dict[str, float] | None:
        """What an earlier session in this folder chose, if there was one whose settings can be read."""
        with contextlib.suppress(OSError, ValueError):
            return None if folder is None else self.known(record.read_config(folder.path))
        return None

    def known(self, config: Mapping[str, Any]) -> dict[str, float] | None:
        """What the settings of an earlier session name as chosen, if that is all that is wanted."""
        there = config.get("chosen")
        numbers = there if isinstance(there, dict) else {}
        found = {name: float(number) for name in self.names if isinstance(number := numbers.get(name), int | float)}
        return found if len(found) == len(self.names) and all(number > 0 for number in found.values()) else None


def _cells(archive: Archive) -> Tessellation:
    """Those that a step should cross: of the archive that is searched in, or else of the one beside it."""
    for competition in (archive.competition, archive.reported.competition):
        if isinstance(competition, Cells):
            return competition.tessellation
    raise ValueError(
        f"sigma: {called(archive.competition)} has no cells beforehand for steps to cross, so none can be chosen; give "
        "it a number, such as dqd.cma_mega(sigma=0.5), or give a result_archive"
    )


def say_chosen(numbers: Chosen) -> None:
    """One line that names what was chosen."""
    words = [
        f"initial_sigma = {number:.3g}" if name == INITIAL else f"sigma = {number:.3g} along {name}"
        for name, number in numbers.items()
        if name != "objective"
    ]
    if words:
        saying.say(f"dqd: chosen {', '.join(words)}: steps from x0 that cross some cells of the grid")


def _warn(jacobians: list[np.ndarray]) -> None:
    """Of gradients that are zero, the search itself will tell."""
    finite = [jacobian for jacobian in jacobians if np.isfinite(jacobian).all()]
    for pair in parallel_rows(np.stack(finite)) if finite else []:
        saying.warn(
            f"{named(list(pair), len(finite[0]))} of the jacobian have the same direction at x0 and near it: neither "
            "can change without the other, and the map will be a line",
            stacklevel=4,
        )
