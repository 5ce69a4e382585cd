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

    def retessellate(self, tessellation: Tessellation) -> SavedArchive:
        """The same elites in other cells: of those that come to lie in one the best, of equally good ones the first."""
        from dqd.saved.archive import placed
        from dqd.tessellations.kinds import check_tessellation

        check_tessellation(tessellation)
        saved = self.to_numpy()
        if tessellation.num_measures != saved.tessellation.num_measures:
            raise ValueError(
                f"retessellate: the archive has {saved.tessellation.num_measures} measures, the cells are for "
                f"{tessellation.num_measures}"
            )
        rows = (saved.objective, saved.measures, saved.solutions, saved.found)
        return placed(*rows, tessellation, qd_score_offset=saved.qd_score_offset)

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
