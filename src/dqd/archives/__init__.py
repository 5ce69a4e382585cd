"""Archives: where elites live."""

from dqd.archives.archive import IMPROVED, NEW, REJECTED, Archive
from dqd.archives.metrics import Metrics
from dqd.archives.threshold import Threshold
from dqd.saved.elites import Elites
from dqd.tessellations.grid import Grid

__all__ = ["IMPROVED", "NEW", "REJECTED", "Archive", "Elites", "Grid", "Metrics", "Threshold"]
