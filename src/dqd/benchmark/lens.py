"""A thick lens of two surfaces of any form, by tracing rays of two colours: its power, how it is bent, how sharp it is.

Rays come in along the axis, at heights y. A surface of slope s = dz/dy has its normal at the angle -arctan(s) from the
axis, and Snell's law bends a ray there: n sin(i) before is n' sin(i') behind, i from the normal. Between the surfaces
the ray is straight, through glass of thickness T. (How far surfaces are off their planes is left out.) Those that leave
at height y with slope u = -p y meet behind the lens at the distance 1 / p.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.function import Function, normals

RAYS = 24
RED, BLUE = 1.50, 1.53  # refraction of the glass
THICKNESS = 0.5
STEEPEST = 0.3  # of the surfaces: so no ray is reflected within the glass
Slope = Callable[[Array], Array]  # of a surface at heights


def lens(n: int) -> Function:
    """n / 2 waves of slope for each surface, the shorter the weaker; the objective is 50 where slopes err by 0.05."""

    def score(x: Array) -> tuple[Array, Array]:
        front, back = (surface(waves) for waves in x[: n // 2 * 2].reshape(2, -1))
        start = jnp.asarray((np.arange(RAYS) + 0.5) * 2 / RAYS - 1)
        height, slope = traced(start, front, back)
        power = -jnp.mean(slope * height) / jnp.mean(height**2)
        bend = jnp.mean((front(start) + back(start)) * start) / jnp.mean(start**2)
        error = jnp.mean((slope + power * height) ** 2)
        return 100 / (1 + error / 0.05**2), jnp.stack([power, bend])

    return Function(score, (-0.25, -0.4), (0.25, 0.4), 0.5 * normals(3200, n))


def surface(waves: Array) -> Slope:
    order = np.arange(len(waves))
    return lambda y: STEEPEST * jnp.tanh(jnp.cos(np.pi * order * (y[..., None] + 1.1) / 2.2) @ (waves / (1 + order)))


def traced(start: Array, front: Slope, back: Slope) -> tuple[Array, Array]:
    """Where rays from those heights leave and with which slope, (colours, rays)."""
    glass = jnp.array([[RED], [BLUE]])
    inside = refracted(jnp.zeros_like(start), front(start), 1 / glass)
    height = start + THICKNESS * jnp.tan(inside)
    return height, jnp.tan(refracted(inside, back(height), glass))


def refracted(angle: Array, slope: Array, ratio: Array) -> Array:
    """The angle of a ray behind a surface, with the ratio of refraction before to that behind."""
    normal = -jnp.arctan(slope)
    return normal + jnp.arcsin(ratio * jnp.sin(angle - normal))
