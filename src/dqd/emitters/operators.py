"""Variation operators: how a new solution is made from elites. They hold numbers, not state."""

from __future__ import annotations

from typing import Protocol

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.compiler.random import normals
from dqd.emitters.scale import Choose, chosen
from dqd.types import pytree

Noise = dict[str, Array]


class Operator(Protocol):
    """Draws noise first, so that it can be drawn for many iterations at once, then makes solutions from it."""

    def noise(self, key: Array, size: int, n: int) -> Noise: ...

    def apply(self, archive: Archive, noise: Noise, x0: Array) -> Array: ...


@pytree
class Elite:
    """An elite as it is."""

    def noise(self, key: Array, size: int, n: int) -> Noise:
        return {"elite": jax.random.uniform(key, (size,))}

    def apply(self, archive: Archive, noise: Noise, x0: Array) -> Array:
        return archive.pick(noise["elite"], x0)


@pytree
class Gaussian:
    """elite + sigma N(0, I)  (Mouret & Clune 2015)."""

    sigma: float  # None: to be chosen

    def noise(self, key: Array, size: int, n: int) -> Noise:
        elite, normal = jax.random.split(key)
        return {"elite": jax.random.uniform(elite, (size,)), "normal": normals(normal, (size, n))}

    def apply(self, archive: Archive, noise: Noise, x0: Array) -> Array:
        return archive.pick(noise["elite"], x0) + self.sigma * noise["normal"]

    def scaled(self, choose: Choose) -> Gaussian:
        return chosen(self, "sigma", "solutions", choose)


@pytree
class IsoLine:
    """e_i + sigma1 N(0, I) + sigma2 N(0, 1) (e_j - e_i)  (Vassiliades & Mouret 2018)."""

    sigma1: float  # None: to be chosen
    sigma2: float

    def noise(self, key: Array, size: int, n: int) -> Noise:
        elite, other, normal, line = jax.random.split(key, 4)
        return {
            "elite": jax.random.uniform(elite, (size,)),
            "other": jax.random.uniform(other, (size,)),
            "normal": normals(normal, (size, n)),
            "line": normals(line, (size, 1)),
        }

    def apply(self, archive: Archive, noise: Noise, x0: Array) -> Array:
        elite, other = archive.pick(noise["elite"], x0), archive.pick(noise["other"], x0)
        return elite + self.sigma1 * noise["normal"] + self.sigma2 * noise["line"] * (other - elite)

    def scaled(self, choose: Choose) -> IsoLine:
        return chosen(self, "sigma1", "solutions", choose)


@pytree
class Fresh:
    """x0 + sigma N(0, I), whatever the archive holds: plain random sampling."""

    sigma: float

    def noise(self, key: Array, size: int, n: int) -> Noise:
        return {"normal": normals(key, (size, n))}

    def apply(self, archive: Archive, noise: Noise, x0: Array) -> Array:
        return x0 + self.sigma * jnp.asarray(noise["normal"])
