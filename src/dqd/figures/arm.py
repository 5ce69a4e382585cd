"""Where the joints of a planar arm lie, for NumPy and JAX alike: domains search with it, figures draw it."""

from __future__ import annotations

from typing import Any

import numpy as np


def joints(angles: Any) -> Any:
    """Angles (..., n), each relative to the link before -> base and end of every link of length 1, (..., n + 1, 2)."""
    xp = angles.__array_namespace__() if hasattr(angles, "__array_namespace__") else np
    directions = xp.cumsum(angles, axis=-1)
    ends = xp.cumsum(xp.stack([xp.cos(directions), xp.sin(directions)], axis=-1), axis=-2)
    return xp.concatenate([xp.zeros_like(ends[..., :1, :]), ends], axis=-2)
