"""Archives: where elites live."""

from dqd.archives.archive import IMPROVED, NEW, REJECTED, Archive, Elites
from dqd.archives.grid import Grid
from dqd.archives.metrics import Metrics

__all__ = ["IMPROVED", "NEW", "REJECTED", "Archive", "Elites", "Grid", "Metrics"]
