"""How measure space is cut into cells. Never imports JAX."""

from dqd.tessellations.categorical import CategoricalGrid
from dqd.tessellations.cvt import CVT
from dqd.tessellations.grid import Grid
from dqd.tessellations.kinds import register
from dqd.tessellations.tessellation import Raster, Tessellation, floating
from dqd.tessellations.uneven import UnevenGrid

__all__ = ["CVT", "CategoricalGrid", "Grid", "Raster", "Tessellation", "UnevenGrid", "floating", "register"]
