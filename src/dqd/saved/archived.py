"""What results, live archives and saved ones have in common: all can be looked at."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dqd.figures.frame import Page
    from dqd.saved.archive import SavedArchive
    from dqd.tessellations.tessellation import Tessellation


class Archived:
    """Elites in cells. Everything that is drawn of them comes from `to_numpy`."""

    def to_numpy(self, solutions: bool = True) -> SavedArchive:
        """As `dqd.load` reads them from disk; the solutions, which may be large, only where they are wanted."""
        raise NotImplementedError

    def retessellate(self, cells: Tessellation | Archived) -> SavedArchive:
        """The same elites in other cells: of those that come to lie in one the best, of equally good ones the first.

        `cells` may be another result or archive, live or saved: those in which its elites lie.
        """
        from dqd.saved.archive import placed
        from dqd.tessellations.kinds import check_tessellation
        from dqd.tessellations.scattered import Scattered

        tessellation = cells.to_numpy(solutions=False).tessellation if isinstance(cells, Archived) else cells
        if isinstance(tessellation, Scattered):
            raise ValueError("retessellate: the elites of that archive lie in no cells; take a dqd.Grid or a dqd.CVT")
        if not isinstance(tessellation, type) and hasattr(tessellation, "begin"):
            raise TypeError(
                f"retessellate: dqd.{type(tessellation).__name__} has no cells before a search; give a result that was "
                "searched in them, or dqd.UnevenGrid.fitted(measures, shape)"
            )
        check_tessellation(tessellation)
        saved = self.to_numpy()
        if tessellation.num_measures != saved.tessellation.num_measures:
            raise ValueError(
                f"retessellate: the archive has {saved.tessellation.num_measures} measures, the cells are for "
                f"{tessellation.num_measures}"
            )
        rows = (saved.objective, saved.measures, saved.solutions, saved.found)
        about = {name: value for name, value in saved.config.items() if name != "summary"}  # which is of other cells
        return placed(*rows, tessellation, saved.fields, qd_score_offset=saved.qd_score_offset, config=about)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Axes:
        """Draw the map, written to `path` if one is given; more than two measures: pair by pair. Returns its axes.

        Options are those of `dqd.plot.heatmap`, `pairs` and `parallel`: ax, labels, objective, field, title, cmap, vmin
        and vmax.
        """
        from dqd.figures import draw, plot

        axes = plot.archive(self, **options)
        if path is not None:
            draw.save(axes, path)
        return axes

    def show(self, *, solutions: bool = True, height: int = 820) -> Page:
        """The explorer's page of it: at the end of a notebook's cell in a frame, elsewhere in a file, which is named.

        `solutions=False` makes it smaller; `height` is the frame's, in pixels; `show().save("page.html")` keeps it.
        """
        return importlib.import_module("dqd").show(self, solutions=solutions, height=height)  # by the front door

    def _repr_html_(self) -> str:
        from dqd.figures.card import card

        return card(self)
