"""Archives: where elites live."""

from dqd.archives.archive import IMPROVED, NEW, REJECTED, Archive
from dqd.archives.competition import Competition
from dqd.archives.dominated import DNS
from dqd.archives.metrics import Metrics
from dqd.archives.novelty import Novelty
from dqd.archives.sliding import SlidingBoundaries
from dqd.archives.threshold import Threshold
from dqd.archives.unbounded import UnboundedGrid
from dqd.saved.elites import Elites
from dqd.tessellations.grid import Grid

__all__ = [
    "DNS",
    "IMPROVED",
    "NEW",
    "REJECTED",
    "Archive",
    "Competition",
    "Elites",
    "Grid",
    "Metrics",
    "Novelty",
    "SlidingBoundaries",
    "Threshold",
    "UnboundedGrid",
]
