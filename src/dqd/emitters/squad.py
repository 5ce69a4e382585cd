"""SQUAD: soft quality diversity using approximated diversity (Hedayatian & Nikolaidis 2026).

A population whose members climb their objectives and push each other apart in measure space, all by gradients of

    A = sum_i f_i - 1/4 sum_{i != j} sqrt(f_i f_j) K_ij,      K_ij = exp(-|b_i - b_j|^2 / sigma^2),

a bound from below of how brightly the members light measure space, each with a brightness f_i that fades with distance.
b = logit(u) are the measures, as shares u of their ranges, drawn out to all real numbers, so that nobody is pushed
against a wall. Member i moves by Adam along

    dA/dx_i = (1 - 1/4 sum_j sqrt(f_j / f_i) K_ij) grad f_i + 1/sigma^2 sum_j sqrt(f_i f_j) K_ij (b_i - b_j) J_i,

J_i the jacobian of b_i and j its nearest members. Some members are moved in every iteration, all of them in every
epoch. They are born at random in the first one. There are no cells in it: the archive only keeps what was met.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dqd.archives.archive import Archive
from dqd.compiler.random import normals
from dqd.compiler.unfused import apart
from dqd.emitters.emitter import usable
from dqd.emitters.rewards.rewarded import unit
from dqd.emitters.scale import Choose
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, PyTree, pytree, replace, static

EDGE = 1e-6  # shares of ranges are kept this far from 0 and 1
NEGLIGIBLE = 1e-6  # kernels below it count as 0, and objectives below it as that where they divide
CROSSED = 20  # cells that a step of the chosen size crosses: see domains.survey
ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)


@pytree
class Population:
    """What is known of every member."""

    solutions: Array  # (N, n)
    objective: Array  # (N,) above the minimum
    spread: Array  # (N, k) b
    born: Array  # (N,) whether it has been evaluated yet
    adam: PyTree  # (N, ...)


@pytree
class SQUADState:
    population: Population
    order: Array  # (N,) in which members are moved in this epoch
    place: Array  # () how many of them have been
    x0: Array


@pytree
class SQUAD:
    """`members` are moved per iteration, of a `population` that is a multiple of it."""

    learning_rate: float  # of Adam, in the units of a solution; None: to be chosen
    bandwidth: float  # sigma, in the units of b
    scale: float  # what an objective, as it is stored, grows by when its gradient says 1; None: to be found out
    minimum: float  # objective of a member that gives no light
    initial_sigma: float  # members are born at x0 + initial_sigma N(0, I)
    population: int = static(default=1024)
    members: int = static(default=64)
    neighbours: int = static(default=16)  # itself included
    initial_population = 0

    @property
    def num_points(self) -> int:
        return self.members

    @property
    def batch_size(self) -> int:
        return self.members

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        order, birth = jax.random.split(key)
        return {
            "order": jax.random.uniform(order, (self.population,)),
            "birth": normals(birth, (self.members, n)),
        }

    def init(self, x0: Array, k: int, bounds: Bounds) -> SQUADState:
        solutions, nobody = jnp.broadcast_to(x0, (self.population, x0.size)), jnp.zeros(self.population, bool)
        dark, middle = jnp.zeros(self.population, x0.dtype), jnp.zeros((self.population, k), x0.dtype)
        population = Population(solutions, dark, middle, nobody, jax.vmap(ADAM.init)(solutions))
        return SQUADState(population, jnp.arange(self.population), jnp.zeros((), jnp.int32), x0)

    def points(self, state: SQUADState, archive: Archive, noise: dict[str, Array]) -> Points:
        solutions = apart(state.place >= 0, self._next, state, noise)
        return Points(solutions, jnp.ones(self.members, bool))

    def _next(self, state: SQUADState, noise: dict[str, Array]) -> Array:
        """The members whose turn it is; those that were not there yet are born."""
        members = self._members(self._order(state, noise), state.place)
        born = state.population.born[members, None]
        return jnp.where(born, state.population.solutions[members], state.x0 + self.initial_sigma * noise["birth"])

    def _order(self, state: SQUADState, noise: dict[str, Array]) -> Array:
        """Every epoch has another one."""
        return jnp.where(state.place == 0, jnp.argsort(noise["order"]), state.order)

    def _members(self, order: Array, place: Array) -> Array:
        return jax.lax.dynamic_slice(order, (place,), (self.members,))

    def ask(
        self, state: SQUADState, archive: Archive, points: Points, evaluation: Evaluation, noise: dict[str, Array]
    ) -> tuple[SQUADState, Proposal]:
        assert evaluation.jacobian is not None
        order = self._order(state, noise)
        members, good = self._members(order, state.place), usable(points, evaluation)
        everyone = self._met(state.population, members, archive, evaluation.objective, evaluation.measures, good)
        gradient = self._gradient(everyone, members, archive, evaluation)
        old = jax.tree.map(lambda leaf: leaf[members], everyone.adam)
        update, adam = jax.vmap(ADAM.update)(jnp.where(good[:, None], gradient, 0), old)
        solutions = points.solutions + jnp.where(good[:, None], self.learning_rate * update, 0)
        everyone = replace(
            everyone,
            solutions=everyone.solutions.at[members].set(solutions),
            adam=jax.tree.map(lambda all, new: all.at[members].set(new), everyone.adam, adam),
        )
        return replace(state, population=everyone, order=order), Proposal(solutions, {"members": members})

    def _met(
        self, everyone: Population, members: Array, archive: Archive, objective: Array, measures: Array, good: Array
    ) -> Population:
        """With what was found out about some; what is not finite is not known."""
        place = jnp.where(good, members, self.population)  # beyond the last: dropped
        share = jnp.clip(unit(archive, measures), EDGE, 1 - EDGE)
        return replace(
            everyone,
            objective=everyone.objective.at[place].set(objective - self.minimum, mode="drop"),
            spread=everyone.spread.at[place].set(jax.scipy.special.logit(share), mode="drop"),
            born=everyone.born.at[place].set(True, mode="drop"),
        )

    def _gradient(self, everyone: Population, members: Array, archive: Archive, evaluation: Evaluation) -> Array:
        """dA/dx of the members, (b, n)."""
        assert evaluation.jacobian is not None
        apart = everyone.spread[members, None] - everyone.spread  # (b, N, k)
        squares = jnp.where(everyone.born, jnp.sum(apart * apart, axis=-1), jnp.inf)
        negative, near = jax.lax.top_k(-squares, self.neighbours)  # (b, j)
        kernel = jnp.exp(negative / self.bandwidth**2)
        kernel = jnp.where((kernel < NEGLIGIBLE) | (near == members[:, None]), 0, kernel)
        own, other = jnp.maximum(everyone.objective[members, None], 0), jnp.maximum(everyone.objective[near], 0)
        dimmed = jnp.sum(jnp.sqrt(other / jnp.maximum(own, NEGLIGIBLE)) * kernel, axis=1) * (own[:, 0] > 0)
        pushes = (jnp.sqrt(own * other) * kernel)[..., None] * jnp.take_along_axis(apart, near[..., None], axis=1)
        push = jnp.sum(pushes, axis=1) / self.bandwidth**2  # (b, k)
        up, along = self.scale * evaluation.jacobian[:, 0], evaluation.jacobian[:, 1:]
        stretch = _logit_slope(archive, evaluation.measures)  # db / dm
        return (1 - dimmed[:, None] / 4) * up + jnp.einsum("bk,bkn->bn", push * stretch, along, precision="highest")

    def tell(self, state: SQUADState, archive: Archive, drawn: dict[str, Array], result: AddResult) -> SQUADState:
        assert result.objective is not None
        assert result.measures is not None
        finite = result.cell < archive.num_cells
        everyone = self._met(state.population, drawn["members"], archive, result.objective, result.measures, finite)
        return replace(state, population=everyone, place=(state.place + self.members) % self.population)

    def scaled(self, choose: Choose) -> SQUAD:
        rate = choose("signs of gradients") / CROSSED if self.learning_rate is None else self.learning_rate
        return replace(self, learning_rate=rate, scale=choose("objective") if self.scale is None else self.scale)

    def restarts(self, state: SQUADState) -> dict[str, Array]:
        return {}


def _logit_slope(archive: Archive, measures: Array) -> Array:
    """db / dm of every measure, (b, k); 0 at the edges, where b is held."""
    tessellation: Any = archive.tessellation
    share = unit(archive, measures)
    width = jnp.asarray(tessellation.upper, share.dtype) - jnp.asarray(tessellation.lower, share.dtype)
    inside = (share > EDGE) & (share < 1 - EDGE)
    return jnp.where(inside, 1 / (jnp.where(inside, share * (1 - share), 1) * width), 0)
