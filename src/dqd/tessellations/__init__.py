"""How measure space is cut into cells. Never imports JAX."""

from dqd.tessellations.cvt import CVT
from dqd.tessellations.grid import Grid
from dqd.tessellations.kinds import register
from dqd.tessellations.tessellation import Raster, Tessellation, floating

__all__ = ["CVT", "Grid", "Raster", "Tessellation", "floating", "register"]
