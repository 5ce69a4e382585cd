"""Several devices in one process.

Seeds: each device runs its share of them, exactly as one device would run that share alone. One seed: every device
holds the archive and walks through the same search, but evaluates only its share of every batch. Copies made by
`dqd.replicate` are shared out as well: each device asks and tells its own. What the others need of that is gathered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from dqd.archives.archive import Archive
from dqd.archives.metrics import Standing
from dqd.domains.domain import Domain
from dqd.emitters.combine import Replicated
from dqd.inputs.arrays import filled
from dqd.runners.compiled import LONGEST, begin, begin_seeds, counted, iterate
from dqd.search.search import Search, SearchState, Tally
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, PyTree, pytree, replace, static

AXIS = "devices"


@dataclass(frozen=True)
class Sharded:
    """One seed, or several side by side, on several devices."""

    search: Search
    domain: Domain
    batched: bool
    mesh: Mesh
    chunk = 250  # iterations after which `until` is asked

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        """The state before iteration 1; `seed` is (), or (seeds,) if batched."""
        if self.batched and seed.size % self.mesh.size:
            raise ValueError(
                f"devices: every device gets as many seeds; {seed.size} seeds cannot be shared among {self.mesh.size}"
            )
        return _start(self.search, archive, x0, seed, self.domain, mesh=self.mesh, batched=self.batched)

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, Standing, Tally]:
        options = {"mesh": self.mesh, "batched": self.batched, "counted": counted(length, self.grain)}
        return _run(self.search, state, self.domain, length, **options)

    @property
    def grain(self) -> int:
        """Its loops are in no graphs (`side_by_side`), which know nothing of what devices say to each other."""
        return 1 if jax.devices()[0].platform == "cpu" else LONGEST

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Devices:
    """Several devices of this machine: they share the seeds, or else the emitters' copies and the evaluations.

        dqd.illuminate(score, emitter, grid, x0=x0, seeds=range(64), where=dqd.Devices(8))

    Args:
        devices: how many, or a list of `jax.devices()`. Their number may change how results round.

    >>> dqd.Devices(1).mesh.size
    1
    """

    devices: int | Sequence[jax.Device]

    @property
    def mesh(self) -> Mesh:
        return mesh_of(self.devices)


def mesh_of(devices: Any) -> Mesh:
    there = jax.devices()
    if isinstance(devices, int | np.integer) and not isinstance(devices, bool):
        if not 1 <= devices <= len(there):
            hint = "; XLA_FLAGS=--xla_force_host_platform_device_count=8 cuts a CPU into 8"
            raise ValueError(
                f"devices: expected 1 to {len(there)}, as JAX sees {len(there)} of kind {there[0].platform}, "
                f"got {devices}{hint if there[0].platform == 'cpu' else ''}"
            )
        return Mesh(np.array(there[:devices]), (AXIS,))
    if not isinstance(devices, list | tuple) or not all(isinstance(device, jax.Device) for device in devices):
        raise TypeError(f"devices: expected a number, or a list of jax.devices(), got {devices!r}")
    if not devices or len(set(devices)) != len(devices):
        raise ValueError(f"devices: expected different devices, at least one, got {devices!r}")
    return Mesh(np.array(devices), (AXIS,))


@functools.partial(jax.jit, static_argnames=("mesh", "batched"))
def _start(
    search: Search, archive: Archive, x0: Array, seed: Array, domain: Domain, *, mesh: Mesh, batched: bool
) -> SearchState:
    def body(search: Search, archive: Archive, x0: Array, seed: Array, domain: Domain) -> SearchState:
        if batched:
            return begin_seeds(search, archive, x0, seed, domain)
        return begin(_shared(search, mesh.size), archive, x0, seed, _SharedRows(domain, mesh.size))

    specs = (P(), P(), P(), P(AXIS) if batched else P(), P())
    return _on(mesh, body, specs, _places(search, mesh, batched))(search, archive, x0, seed, domain)


@functools.partial(jax.jit, static_argnames=("mesh", "batched", "counted"), donate_argnames="state")
def _run(
    search: Search, state: SearchState, domain: Domain, length: Array, *, mesh: Mesh, batched: bool, counted: int
) -> tuple[SearchState, Standing, Tally]:
    def body(search: Search, state: SearchState, domain: Domain, length: Array) -> tuple[SearchState, Standing, Tally]:
        if not batched:
            search, domain = _shared(search, mesh.size), _SharedRows(domain, mesh.size)
        return iterate(search, state, domain, length, batched=batched, counted=counted)

    places = _places(search, mesh, batched)
    outputs = (places, P(None, AXIS), P(AXIS)) if batched else (places, P(), P())
    return _on(mesh, body, (P(), places, P(), P()), outputs)(search, state, domain, length)


def _on(mesh: Mesh, body: Callable[..., Any], inputs: Any, outputs: Any) -> Callable[..., Any]:
    # What is equal on all devices is so by construction; JAX's own check does not see through branches.
    return jax.shard_map(body, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)


def _places(search: Search, mesh: Mesh, batched: bool) -> PyTree:
    """What of a state is cut among the devices: all of it by seeds, or the emitter by copies."""
    if batched:
        return P(AXIS)
    fields: dict[str, Any] = dict.fromkeys(SearchState.__dataclass_fields__, P())
    if isinstance(_shared(search, mesh.size).emitter, _SharedCopies):
        fields["emitter"] = P(AXIS)
    return SearchState(**fields)


# Inside the program of one device -------------------------------------------------------------------------------------


def _own(tree: Any, shares: int) -> PyTree:
    """This device's rows of arrays whose rows can be shared equally."""

    def rows(leaf: Array) -> Array:
        width = leaf.shape[0] // shares
        return jax.lax.dynamic_slice_in_dim(leaf, jax.lax.axis_index(AXIS) * width, width)

    return jax.tree.map(rows, tree)


def _gathered(tree: Any) -> PyTree:
    """The rows of all devices, one after the other."""
    return jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, AXIS, tiled=True), tree)


@pytree
class _SharedRows(Domain):
    """A domain of which every device evaluates its share of a batch. The last row fills up what does not divide."""

    domain: Domain
    shares: int = static()

    def evaluate(self, solutions: Array) -> Evaluation:
        return self._share(self.domain.evaluate, solutions)

    def evaluate_with_jacobian(self, solutions: Array) -> Evaluation:
        return self._share(self.domain.evaluate_with_jacobian, solutions)

    def _share(self, evaluate: Callable[[Array], Evaluation], solutions: Array) -> Evaluation:
        rows = solutions.shape[0]
        full = filled(solutions, rows + -rows % self.shares)
        return jax.tree.map(lambda leaf: leaf[:rows], _gathered(evaluate(_own(full, self.shares))))


def _shared(search: Search, shares: int) -> Search:
    """The search with its emitter's copies shared out, if it has copies that divide."""
    emitter = search.emitter
    if not isinstance(emitter, Replicated) or emitter.copies % shares:
        return search
    return replace(search, emitter=_SharedCopies(emitter, shares))


@pytree
class _SharedCopies:
    """`Replicated`, of which every device has its share of the copies."""

    every: Replicated
    shares: int = static()

    @property
    def mine(self) -> Replicated:
        return replace(self.every, copies=self.every.copies // self.shares)

    @property
    def num_points(self) -> int:
        return self.every.num_points

    @property
    def batch_size(self) -> int:
        return self.every.batch_size

    @property
    def initial_population(self) -> int:
        return self.every.initial_population

    def noise(self, key: Array, n: int, k: int) -> PyTree:
        return _own(self.every.noise(key, n, k), self.shares)

    def init(self, x0: Array, k: int, bounds: Bounds) -> PyTree:
        return self.mine.init(x0, k, bounds)

    def points(self, state: Any, archive: Archive, noise: Any) -> Points:
        return _gathered(self.mine.points(state, archive, noise))

    def ask(
        self, state: Any, archive: Archive, points: Points, evaluation: Evaluation, noise: Any
    ) -> tuple[Any, Proposal]:
        points, evaluation = _own((points, evaluation), self.shares)
        state, proposal = self.mine.ask(state, archive, points, evaluation, noise)
        return state, replace(proposal, solutions=_gathered(proposal.solutions))

    def tell(self, state: Any, archive: Archive, drawn: Any, result: AddResult) -> PyTree:
        return self.mine.tell(state, archive, drawn, _own(result, self.shares))

    def restarts(self, state: Any) -> dict[str, Array]:
        return jax.lax.psum(self.mine.restarts(state), AXIS)
