"""Targeting: CMA-MEGA's budget, one point with its jacobian and branches from it, but the branches are computed.

    theta    an elite with open cells beside it, or any elite to polish around it (starts)
    J, g     measures in cells and objective there: least-norm steps and null space (model)
    cells    open ones first, then elites that can be beaten (targets)
    branch   theta + J^T (J J^T)^-1 z + a free + b random      z: from the measures of theta to the aim in the cell
             where free is the gradient, and random a direction, in the null space of J;
             of some shots at elites only some coordinates move towards the cell (sideways)
    learn    how long steps may be, how far to climb and to kick, what exploring and polishing gain (sizes)

A shot at an open cell climbs a little on its way. One that was missed before is hard: it aims at the near edge of the
cell, and some of these shots are thrown far into the null space. The first hard one is chased (chase).
"""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import IMPROVED, NEW, Archive
from dqd.compiler.random import normals, uniforms
from dqd.emitters.emitter import usable
from dqd.emitters.gain import gained, ruinous
from dqd.emitters.targeting import chase as chases
from dqd.emitters.targeting import starts
from dqd.emitters.targeting.chase import NEAR_EDGE, Chase, Pursuit
from dqd.emitters.targeting.misses import Misses
from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.room import Room
from dqd.emitters.targeting.sideways import Sideways
from dqd.emitters.targeting.sizes import Sizes
from dqd.emitters.targeting.targets import INSIDE, Shots, View, choose
from dqd.tessellations.tessellation import neighbourhood
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, matmul, pytree, replace, static

T = TypeVar("T")

CLOSE = 2.0  # cells: a shot from further away that misses says little about its target


@pytree
class TargetingState:
    theta: Array  # (n,)
    explores: Array  # () or else this iteration polishes
    misses: Misses
    sizes: Sizes
    chase: Chase
    gains: Array  # (2,) what an iteration that polishes, and one that explores, lately gained
    bounds: Bounds


@pytree
class Aims:
    """What is aimed at."""

    target: Array  # (b,) cells
    middle: Array  # (b, k) of them, in cells, seen from theta
    hard: Array  # (b,) open cells that were missed before, or are far
    pursues: Array  # (b,) branches that chase the first target
    aim: Array  # (b, k) the end of the step, in cells, seen from theta


@pytree
class Targeting:
    """`reach`, in cells, is how far the first shots may go; from then on it is learnt."""

    reach: float = 4.0
    branches: int = static(default=35)
    num_points = 1
    initial_population = 0

    @property
    def batch_size(self) -> int:
        return self.branches

    def noise(self, key: Array, n: int, k: int) -> dict[str, Any]:
        direction, some, normal, uniform, start = jax.random.split(key, 5)
        return {
            "some": jax.random.uniform(some, (n,)),
            "direction": jax.random.uniform(direction, (n,), minval=-1),
            "normal": normals(normal, (3, self.branches)),
            "uniform": uniforms(uniform, (3, self.branches)),
            "start": starts.noise(start),
        }

    def init(self, x0: Array, k: int, bounds: Bounds) -> TargetingState:
        sizes, gains = Sizes.first(x0.dtype), jnp.array([0, 1], x0.dtype)
        return TargetingState(x0, jnp.array(True), Misses.none(), sizes, Chase.none(x0), gains, bounds)

    def points(self, state: TargetingState, archive: Archive, noise: dict[str, Any]) -> Points:
        return Points(state.theta[None], jnp.ones(1, bool))

    def ask(
        self, state: TargetingState, archive: Archive, points: Points, evaluation: Evaluation, noise: dict[str, Any]
    ) -> tuple[TargetingState, Proposal]:
        theta, objective, measures = points.solutions[0], evaluation.objective[0], evaluation.measures[0]
        model = self._model(state, archive, points, evaluation)
        free = jnp.sqrt(jnp.sum(model.free**2))
        sizes = state.sizes.here(model.cell, self.reach * model.hard_cell, free)
        view = View.around(archive, measures)
        shots = choose(view, model, objective, sizes, state.misses, state.explores, self.branches)
        shots, left = state.chase.joined(view, shots, state.explores)
        aims = self._aims(state, view, model, sizes, shots, noise["uniform"][0])

        sideways = Sideways.drawn(model, sizes, free, shots.is_open, aims.hard, noise)
        steps = model.shortest(aims.aim, noise["some"] < sideways.share[:, None])
        steps = steps + sideways.steps(model, noise["direction"])
        numbers, _, onwards = chases.pursuers(self.branches)
        steps = steps + jnp.where(aims.pursues, jnp.asarray(onwards, theta.dtype), 0)[:, None] * state.chase.step

        widths = neighbourhood(archive.tessellation).widths(measures)
        goal, away = measures + aims.middle[0] * widths, chases.away(aims.middle[0])
        squared = model.squared_length(aims.aim)
        drawn = {
            "target": aims.target,
            "open": shots.is_open,
            "fair": shots.is_open & ~aims.hard,
            "close": jnp.all(jnp.abs(aims.aim) <= CLOSE, axis=1),
            "sideways": sideways,
            "rise": view.stored[shots.place] - objective,
            "linear": matmul(aims.aim, model.slope) + sideways.climb * free**2,
            "squared": squared + (sideways.climb * free) ** 2 + sideways.jump**2,
            "length": squared,
            "pursuit": Pursuit(aims.target[0], aims.pursues[0], left, away, goal, steps[numbers]),
            "start": noise["start"],
        }
        return replace(state, sizes=sizes), Proposal(theta + steps, drawn)

    def _aims(
        self, state: TargetingState, view: View, model: LocalModel, sizes: Sizes, shots: Shots, uniform: Array
    ) -> Aims:
        """The middle of an open cell, its near edge if the shot is hard; of an elite's cell the better corner."""
        target, middle = view.cells[shots.place], view.middles[shots.place]
        far = model.squared_length(middle) > sizes.radius**2
        hard = shots.is_open & (shots.spare | far | (state.misses.of(target) > 0))
        first, (_, lengths, _) = jnp.arange(self.branches) == 0, chases.pursuers(self.branches)
        pursues = (first | shots.spare) & hard & hard[0] & state.explores

        edge = NEAR_EDGE * jnp.where(pursues, 1, uniform)[:, None]
        length = jnp.where(pursues, jnp.asarray(lengths, middle.dtype), 1)
        near = jnp.clip(0, middle - edge, middle + edge) * length[:, None]
        corner = middle + INSIDE * (1 - uniform**2)[:, None] * jnp.sign(model.slope)
        aim = jnp.where(hard[:, None], near, jnp.where(shots.is_open[:, None], middle, corner))
        return Aims(target, middle, hard, pursues, aim)

    def _model(self, state: TargetingState, archive: Archive, points: Points, evaluation: Evaluation) -> LocalModel:
        assert evaluation.jacobian is not None
        theta = points.solutions[0]
        fine = usable(points, evaluation)[0] & jnp.isfinite(jnp.sum(evaluation.jacobian[0] ** 2))
        jacobian = jnp.where(fine, evaluation.jacobian[0], 0)
        widths = neighbourhood(archive.tessellation).widths(evaluation.measures[0])
        room = None if state.bounds is None else Room(state.bounds[0] - theta, state.bounds[1] - theta)
        return LocalModel.of(jacobian[0], jacobian[1:] / widths[:, None], room)

    def tell(self, state: TargetingState, archive: Archive, drawn: dict[str, Any], result: AddResult) -> TargetingState:
        hit, new, sideways = result.cell == drawn["target"], result.status == NEW, drawn["sideways"]
        chase = chases.after(drawn["pursuit"], archive, result)
        chased = (chase.left > 0) & (drawn["target"] == chase.goal)
        misses = state.misses.after(drawn["target"], drawn["open"] & ~hit & drawn["close"] & ~chased)
        gain = gained(result, archive)
        gains = jnp.where(jnp.arange(2) == state.explores, 0.9 * state.gains + 0.1 * jnp.sum(gain), state.gains)

        seen = hit & ~drawn["open"] & (sideways.share == 1) & jnp.isfinite(result.value)
        sizes = state.sizes.with_radius(drawn["fair"], new, drawn["length"])
        sizes = sizes.with_objective(seen, result.value + drawn["rise"], drawn["linear"], drawn["squared"])
        assert result.objective is not None
        sizes = sizes.with_wild(jnp.any(sideways.wild & ruinous(result.objective, archive)))
        sizes = sizes.with_steps(jnp.where(result.status == IMPROVED, gain, 0), sideways.used, sideways.logs)
        sizes, gains = _unless_lost((sizes, gains), (state.sizes, state.gains))

        start, chases_on = starts.next_start(archive, misses, gains, drawn["start"]), chase.left > 0
        elite = jnp.where(archive.count > 0, archive.elite(start.cell), state.theta)
        return replace(
            state,
            theta=jnp.where(chases_on, state.theta + chase.step, elite),
            explores=start.explores | chases_on,
            misses=misses,
            sizes=sizes,
            chase=chase,
            gains=gains,
        )

    def restarts(self, state: TargetingState) -> dict[str, Array]:
        return {}


def _unless_lost(learnt: T, before: T) -> T:
    """What was learnt, number by number, but for what an overflow spoilt."""
    return jax.tree.map(lambda new, old: jnp.where(jnp.isfinite(new), new, old), learnt, before)
