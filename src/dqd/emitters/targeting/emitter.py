"""Targeting: CMA-MEGA's budget, one point with its jacobian and branches from it, but the branches are computed.

    theta    an elite with open cells beside it, or any elite to polish around it (starts)
    J, g     measures in cells and objective there: least-norm steps and null space (model)
    cells    open ones first, then elites that can be beaten (targets)
    branch   theta + J^T (J J^T)^-1 z + a free + b random      z: from the measures of theta to the aim in the cell
             where free is the gradient, and random a direction, in the null space of J
    learn    how long steps may be, how far to climb, how far to kick, what exploring and polishing gain (sizes)

A shot at an open cell climbs a little on its way. One that was missed before is hard: it aims at the near edge of the
cell, and some of these shots are thrown far into the null space. The first hard one may become the next theta, and so
on while it comes nearer: a chase, which is Gauss-Newton.
"""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import IMPROVED, NEW, Archive
from dqd.compiler.random import normals, uniforms
from dqd.compiler.unfused import once
from dqd.emitters.emitter import usable
from dqd.emitters.gain import gained
from dqd.emitters.targeting import chase as chases
from dqd.emitters.targeting import starts
from dqd.emitters.targeting.chase import NEAR_EDGE, Chase, Pursuit
from dqd.emitters.targeting.misses import Misses
from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.room import Room
from dqd.emitters.targeting.sizes import WIDEST, Sizes
from dqd.emitters.targeting.targets import INSIDE, Shots, View, choose
from dqd.tessellations.tessellation import neighbourhood
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, matmul, pytree, replace, static

T = TypeVar("T")

CLOSE = 2.0  # cells: a shot from further away that misses says little about its target
ON_THE_WAY = 0.2  # of the radius: how far a shot at an open cell climbs at most
KICKED = 0.5  # share of the shots at elites
THINNED = 0.25
WILD = 0.15  # share of the hard shots


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
class Sideways:
    """What branches do in the null space: climb what is left of the gradient, and jump along a random direction."""

    climb: Array  # (b,) step sizes
    jump: Array  # (b,) lengths
    climbed: Array  # (b,) shots at elites that do, from which the size is learnt
    ascent: Array  # (b,) logarithms drawn for them
    kicked: Array  # (b,) the same for jumps
    kick: Array  # (b,)


@pytree
class Aims:
    aim: Array  # (b, k) in cells, seen from theta
    hard: Array  # (b,)
    pursues: Array  # (b,)
    onwards: Array  # (b,)


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
        direction, normal, uniform, start = jax.random.split(key, 4)
        return {
            "direction": jax.random.uniform(direction, (n,), minval=-1),
            "normal": normals(normal, (2, self.branches)),
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
        shots, goes_on = state.chase.joined(view, shots)

        shots, aims = self._aims(state, view, model, sizes, shots, noise["uniform"])
        steps, sideways = self._sideways(model, sizes, free, shots.is_open, aims.hard, noise)
        thinned = ~shots.is_open & (noise["uniform"][1] > 1 - THINNED)
        thin = jnp.minimum(sizes.thin + noise["normal"][1], 0)
        some = ~thinned[:, None] | (0.5 + 0.5 * noise["direction"] < jnp.exp(thin)[:, None])
        steps = steps + model.by_some(aims.aim, some)
        if True:
            onwards = jnp.where(aims.pursues, aims.onwards, 0)
            steps = steps + onwards[:, None] * state.chase.step

        target = view.cells[shots.place]
        runs = chases.pursuers(self.branches)
        pursuit = Pursuit(
            goal=target[0],
            on=aims.pursues[0],
            left=jnp.where(goes_on, state.chase.left - 1, chases.LONGEST),
            away=chases.away(view.middles[shots.place[0]]),
            middle=measures + view.middles[shots.place[0]] * neighbourhood(archive.tessellation).widths(measures),
            steps=steps[runs],
        )
        squared = model.squared_length(aims.aim)
        drawn = {
            "target": target,
            "open": shots.is_open,
            "fair": shots.is_open & ~aims.hard,
            "close": jnp.all(jnp.abs(aims.aim) <= CLOSE, axis=1),
            "sideways": sideways,
            "rise": view.stored[shots.place] - objective,
            "linear": matmul(aims.aim, model.slope) + sideways.climb * free**2,
            "squared": squared + (sideways.climb * free) ** 2 + sideways.jump**2,
            "length": squared,
            "pursuit": pursuit,
            "thinned": thinned,
            "thin": thin,
            "start": noise["start"],
        }
        return replace(state, sizes=sizes), Proposal(theta + steps, drawn)

    def _aims(
        self, state: TargetingState, view: View, model: LocalModel, sizes: Sizes, shots: Shots, uniform: Array
    ) -> tuple[Shots, Aims]:
        """The middle of an open cell, its near edge if the shot is hard; of an elite's cell the better corner."""
        runs = jnp.zeros(self.branches, bool).at[0].set(True) | shots.spare
        place = jnp.where(shots.spare & state.explores & shots.is_open[0], shots.place[0], shots.place)
        shots = replace(shots, place=place, is_open=jnp.isneginf(view.stored[place]) & (view.cells[place] >= 0))
        middle = view.middles[shots.place]
        far = model.squared_length(middle) > sizes.radius**2
        hard = shots.is_open & (shots.spare | far | (state.misses.of(view.cells[shots.place]) > 0))
        pursues = runs & hard & hard[0] & state.explores
        corner = middle + INSIDE * (1 - uniform[0] ** 2)[:, None] * jnp.sign(model.slope)
        edge = NEAR_EDGE * jnp.where(pursues, 1, uniform[0])[:, None]
        length, onwards = np.ones(self.branches), np.zeros(self.branches)
        numbers = chases.pursuers(self.branches)
        length[numbers], onwards[numbers] = chases.LENGTHS[: len(numbers)], chases.ONWARDS[: len(numbers)]
        near = jnp.clip(0, middle - edge, middle + edge) * jnp.where(pursues, length, 1)[:, None]
        aim = jnp.where(hard[:, None], near, jnp.where(shots.is_open[:, None], middle, corner))
        return shots, Aims(aim, hard, pursues, jnp.asarray(onwards, aim.dtype))

    def _sideways(
        self, model: LocalModel, sizes: Sizes, free: Array, is_open: Array, hard: Array, noise: dict[str, Any]
    ) -> tuple[Array, Sideways]:
        """The steps (b, n), and what they are made of."""
        uniform, first = noise["uniform"], jnp.arange(self.branches) == 0  # the first may be followed: no wild jump
        ascent, kick = noise["normal"] + jnp.stack([sizes.ascent, sizes.kick])[:, None]
        on_the_way = jnp.log(ON_THE_WAY * sizes.radius) - jnp.log(free)
        climbs, kicked = (free > 0) & ~hard, ~is_open & (uniform[1] < KICKED)
        climb = jnp.where(climbs, jnp.exp(jnp.where(is_open, jnp.minimum(ascent, on_the_way), ascent)), 0)

        side, wild = 2 * uniform[2] - 1, hard & ~first & (uniform[1] < WILD)
        length = jnp.where(wild, WIDEST ** jnp.abs(side), jnp.where(kicked, jnp.exp(kick), 0))
        jump = model.cell * jnp.sign(side) * length
        random = model.in_null_space(noise["direction"])
        random = random / (jnp.sqrt(jnp.sum(random * random)) + 1e-30)
        steps = matmul(jnp.stack([climb, jump], axis=1), jnp.stack([model.free, random]))
        return steps, Sideways(climb, jump, climbs & ~is_open, ascent, kicked, kick)

    def _model(self, state: TargetingState, archive: Archive, points: Points, evaluation: Evaluation) -> LocalModel:
        assert evaluation.jacobian is not None
        theta = points.solutions[0]
        fine = usable(points, evaluation)[0] & jnp.isfinite(jnp.sum(evaluation.jacobian[0] ** 2))
        jacobian = jnp.where(fine, evaluation.jacobian[0], 0)
        widths = neighbourhood(archive.tessellation).widths(evaluation.measures[0])
        room = None if state.bounds is None else Room(state.bounds[0] - theta, state.bounds[1] - theta)
        return LocalModel.of(jacobian[0], jacobian[1:] / widths[:, None], room)

    def tell(self, state: TargetingState, archive: Archive, drawn: dict[str, Any], result: AddResult) -> TargetingState:
        hit, new = result.cell == drawn["target"], result.status == NEW
        chase = chases.after(state.chase, drawn["pursuit"], archive, result)
        hunted = (chase.left > 0) & (drawn["target"] == chase.goal)
        misses = state.misses.after(drawn["target"], drawn["open"] & ~hit & drawn["close"] & ~hunted)
        gain = gained(result, archive)
        gains = jnp.where(jnp.arange(2) == state.explores, 0.9 * state.gains + 0.1 * jnp.sum(gain), state.gains)

        seen = hit & ~drawn["thinned"] & ~drawn["open"] & jnp.isfinite(result.value)
        improvement = jnp.where(result.status == IMPROVED, gain, 0)
        sizes = state.sizes.with_radius(drawn["fair"], new, drawn["length"])
        sizes = sizes.with_objective(seen, result.value + drawn["rise"], drawn["linear"], drawn["squared"])
        sideways = drawn["sideways"]
        sizes = sizes.with_steps(improvement, sideways.climbed, sideways.ascent, sideways.kicked, sideways.kick)
        sizes = sizes.with_thin(improvement, drawn["thinned"], drawn["thin"])
        sizes, gains = _unless_lost((sizes, gains), (state.sizes, state.gains))
        start = starts.next_start(archive, misses, gains, drawn["start"])
        walk = state.theta + chase.step
        follows = (chase.left > 0) & jnp.all(jnp.isfinite(walk))
        elite = jnp.where(archive.count > 0, archive.elite(start.cell), state.theta)
        return replace(
            state,
            theta=jnp.where(follows, walk, elite),
            explores=start.explores | follows,
            misses=misses,
            sizes=sizes,
            chase=replace(chase, left=jnp.where(follows, chase.left, 0)),
            gains=gains,
        )

    def restarts(self, state: TargetingState) -> dict[str, Array]:
        return {}


def _unless_lost(learnt: T, before: T) -> T:
    """What was learnt, number by number, but for what an overflow spoilt."""
    return jax.tree.map(lambda new, old: jnp.where(jnp.isfinite(new), new, old), learnt, before)
