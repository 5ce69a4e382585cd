"""Where solutions may lie, and how a search is kept there.

A search has coordinates of its own, z. With "clip" and "reflect" they are those of the solutions, and whatever leaves
the box is moved to its wall, or folded back into it as light by a mirror. With "smooth" z is free, and x follows by a
map that ends at the walls:

    x = m + h tanh((z - m) / h)                between two walls; m is the middle of the box, h half of its width
    x = l + s log(1 + exp((z - l) / s))        above one wall l, s away from x0; below one wall likewise

In the middle of the box, and far from a single wall, dx/dz = 1: a sigma means there what it means without bounds. By
the chain rule the gradients along z are those along x times dx/dz.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from dqd.types import Bounds as Sides
from dqd.types import pytree, static

By = Literal["clip", "reflect", "smooth"]
EDGE = 1e-6  # as a share of h or s: as near to a wall as the smooth map is followed, since z grows without end there


@dataclass(frozen=True)
class Bounds:
    """Bounds of solutions, and how a search is kept within them; `bounds=(lower, upper)` is `Bounds(lower, upper)`.

    Args:
        lower, upper: numbers, or shaped like x0; infinity where there is none.
        by: "clip" moves what is outside to the nearest wall, which collects solutions there. "reflect" folds it back,
            as light by mirrors. "smooth" searches in coordinates without bounds, from which a smooth map leads into the
            box; gradients follow by the chain rule. x0 then lies inside, not at a wall, where the map is flat.

    >>> Bounds(-1, 1, by="reflect").by
    'reflect'
    """

    lower: Any
    upper: Any
    by: By = "clip"

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise ValueError(f'bounds: by: expected "clip", "reflect" or "smooth", got {self.by!r}')


@pytree
class Box:
    """Bounds of flat solutions (..., n). What it is given may be JAX's or NumPy's, and is answered in kind."""

    lower: Any  # (n,)
    upper: Any  # (n,)
    by: By = static()
    scale: Any = field(compare=False)  # (n,) h, or s where there is one wall; follows from the others and x0
    walls: tuple[str, ...] = static(compare=False)  # the kinds of coordinates that there are

    @staticmethod
    def of(lower: Any, upper: Any, x0: Any, by: By = "clip") -> Box:
        """Raises ValueError where the box is empty, or where a smooth search would begin at a wall."""
        low, high, start = (np.asarray(side) for side in (lower, upper, x0))
        if not np.all(low < high):
            raise ValueError("bounds: every lower bound must lie below its upper bound")
        below, above = np.isfinite(low), np.isfinite(high)
        with np.errstate(invalid="ignore"):
            near = np.minimum(np.where(below, start - low, np.inf), np.where(above, high - start, np.inf))
            scale: Any = np.where(below & above, (high - low) / 2, np.where(np.isfinite(near) & (near > 0), near, 1))
        if by == "smooth" and (count := int(np.sum(near < EDGE * scale))):
            raise ValueError(
                f"bounds: {count:,} of the {start.size:,} numbers of x0 lie at a bound or beyond, where a smooth map "
                'is flat; start inside of the box, or take by="reflect"'
            )
        walls = tuple(kind for kind, where in _kinds(below, above).items() if where.any())
        dtype = jax.dtypes.canonicalize_dtype(low.dtype)
        lower, upper, scale = (jnp.asarray(each, dtype) for each in (low, high, scale))
        return Box(lower, upper, by, scale, walls)

    @property
    def sides(self) -> Sides:
        """What of the box a search meets: nothing, if its own coordinates are free."""
        return None if self.is_free else (self.lower, self.upper)

    @property
    def is_free(self) -> bool:
        """Whether the search's coordinates are others than the solutions'."""
        return self.by == "smooth"

    def inside(self, z: Any) -> Any:
        """The solutions x that belong to what a search proposes."""
        lower, upper, _ = self._like(z)
        moved = {"clip": lambda: z, "reflect": lambda: self._reflected(z), "smooth": lambda: self._inward(z)}[self.by]()
        return _library(z).clip(moved, lower, upper)  # after rounding, too

    def outward(self, x: Any) -> Any:
        """The coordinates z in which a search sees solutions."""
        if not self.is_free:
            return x
        xp, (lower, upper, scale), share = _library(x), self._like(x), self._share(x)
        return self._each(
            xp,
            both=lambda: (lower + upper) / 2 + scale * xp.arctanh(share),
            lower=lambda: lower + scale * _inverse_softplus(xp, share),
            upper=lambda: upper - scale * _inverse_softplus(xp, share),
            none=lambda: x,
        )

    def slope(self, x: Any) -> Any:
        """dx/dz at solutions, which is never 0."""
        xp, share = _library(x), self._share(x)
        rise = -xp.expm1(-share)
        return self._each(
            xp, both=lambda: 1 - share**2, lower=lambda: rise, upper=lambda: rise, none=lambda: xp.ones_like(x)
        )

    def chained(self, jacobian: Any, x: Any) -> Any:
        """Of jacobians (..., 1 + k, n) at solutions (..., n): those along z."""
        return jacobian * self.slope(x)[..., None, :] if self.is_free else jacobian

    def _share(self, x: Any) -> Any:
        """How far solutions lie from the middle, in h, or from their wall, in s; never nearer to a wall than EDGE."""
        xp, (lower, upper, scale) = _library(x), self._like(x)
        return self._each(
            xp,
            both=lambda: xp.clip((x - (lower + upper) / 2) / scale, EDGE - 1, 1 - EDGE),
            lower=lambda: xp.maximum((x - lower) / scale, EDGE),
            upper=lambda: xp.maximum((upper - x) / scale, EDGE),
            none=lambda: xp.zeros_like(x),
        )

    def _inward(self, z: Any) -> Any:
        xp, (lower, upper, scale) = _library(z), self._like(z)
        nothing = xp.zeros_like(z)
        return self._each(
            xp,
            both=lambda: (lower + upper) / 2 + scale * xp.tanh((z - (lower + upper) / 2) / scale),
            lower=lambda: lower + scale * xp.logaddexp(nothing, (z - lower) / scale),
            upper=lambda: upper - scale * xp.logaddexp(nothing, (upper - z) / scale),
            none=lambda: z,
        )

    def _reflected(self, z: Any) -> Any:
        xp, (lower, upper, half) = _library(z), self._like(z)
        folded = self._each(
            xp,
            both=lambda: upper - xp.abs((z - lower) % (4 * half) - 2 * half),
            lower=lambda: lower + xp.abs(z - lower),
            upper=lambda: upper - xp.abs(upper - z),
            none=lambda: z,
        )
        return xp.where((lower <= z) & (z <= upper), z, folded)  # inside nothing is rounded

    def _each(self, xp: Any, **kinds: Callable[[], Any]) -> Any:
        """What each kind of coordinate is; of kinds that there are none of, nothing is worked out."""
        which = _kinds(xp.isfinite(self.lower), xp.isfinite(self.upper))
        first, *others = self.walls
        with np.errstate(all="ignore"):  # where a coordinate is of another kind
            found = kinds[first]()
            for kind in others:
                found = xp.where(which[kind], kinds[kind](), found)
        return found

    def _like(self, like: Any) -> tuple[Any, Any, Any]:
        """Lower, upper and scale, of the library of an array."""
        ours = (self.lower, self.upper, self.scale)
        return ours if isinstance(like, jax.Array) else tuple(np.asarray(each) for each in ours)  # type: ignore[return-value]


def _library(array: Any) -> Any:
    return jnp if isinstance(array, jax.Array) else np


def _inverse_softplus(xp: Any, y: Any) -> Any:
    return y + xp.log(-xp.expm1(-y))


def _kinds(below: Any, above: Any) -> dict[str, Any]:
    return {"both": below & above, "lower": below & ~above, "upper": above & ~below, "none": ~(below | above)}


def numpy_sides(box: Box | None) -> tuple[np.ndarray, np.ndarray] | None:
    """The bounds themselves, for those who evaluate: whatever a search does, nothing beyond them is."""
    return None if box is None else (np.asarray(box.lower), np.asarray(box.upper))
