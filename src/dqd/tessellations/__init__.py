"""How measure space is cut into cells. Never imports JAX."""

from dqd.tessellations.grid import Grid
from dqd.tessellations.kinds import register
from dqd.tessellations.tessellation import Raster, Tessellation

__all__ = ["Grid", "Raster", "Tessellation", "register"]
