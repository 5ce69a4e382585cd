"""Targeting: CMA-MEGA's budget, one point with its jacobian and branches from it, but the branches are computed.

    theta    a branch that did well, a shot that missed, an elite with open cells beside it, or one to polish (starts)
    J, g     measures in cells and objective there; what passed a kink goes back (footing)
    cells    open ones first, then elites that can be beaten (targets)
    branch   short: theta + J^T (J J^T)^-1 z + a free               z: from the measures of theta to the aim in the cell
             cheap: theta + P (J P)^-1 z + t climb, P = H^-1 J^T    H: curvature of the objective, from the last steps
             all of them are made of the same few vectors (branches)
    learn    how long steps may be and how far to climb (sizes), which branches and which thetas gain most (worth)

free is the gradient in the null space of J (model), climb is Newton's step there (curvature). Of some short shots at
elites only some coordinates move towards the cell (sideways). A shot at an open cell climbs a little on its way. One
that was missed before is hard: it aims at the near edge of the cell, and some of these shots are thrown far into the
null space. The first hard one is chased (chase).
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
from dqd.emitters.targeting.branches import Branches
from dqd.emitters.targeting.chase import NEAR_EDGE, Chase, Pursuit
from dqd.emitters.targeting.curvature import Cheapest, Secants
from dqd.emitters.targeting.footing import Footing
from dqd.emitters.targeting.misses import Misses
from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.room import Room
from dqd.emitters.targeting.sideways import Sideways
from dqd.emitters.targeting.sizes import TOLERANCE, Sizes
from dqd.emitters.targeting.targets import INSIDE, Shots, View, choose
from dqd.emitters.targeting.worth import Worth
from dqd.tessellations.tessellation import neighbourhood
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, matmul, pytree, replace, static

T = TypeVar("T")

CLOSE = 2.0  # cells: a shot from further away that misses says little about its target
LONGEST = 3.0  # radii: no cheap step, and no climb, is longer
CLIMBS = 0.5, 1.5  # of Newton's step, at most: cheap shots at open cells, and at elites
LEAST = 0.1  # share of the shots that are short, and that are cheap, at least
SELDOM = 0.05  # share of first shots that miss that are looked at, at least
FOLLOWED = 0.5, 1.0  # of what an iteration that polishes, or explores, lately gained: more is gone on from
LAST = 100  # times in a row at most


@pytree
class Worths:
    """What ways of going on lately gained."""

    exploring: Worth  # (2,) iterations that polish; that explore
    chasing: Worth  # (2,) of those that explore: from elites; in a chase
    cheap: Worth  # (2, 2) shots at elites and at open cells: short; cheap


@pytree
class TargetingState:
    theta: Array  # (n,)
    explores: Array  # () or else this iteration polishes
    followed: Array  # () how many times in a row theta was a branch that did well
    footing: Footing  # of the last iteration
    secants: Secants
    misses: Misses
    sizes: Sizes
    chase: Chase
    worths: Worths
    bounds: Bounds


@pytree
class Aims:
    """What is aimed at."""

    target: Array  # (b,) cells
    middle: Array  # (b, k) of them, in cells, seen from theta
    first: Array  # (b,) open cells that nobody has shot at from near
    hard: Array  # (b,) those that were missed before, or are far
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
        direction, normal, uniform, look, start = jax.random.split(key, 5)
        return {
            "direction": jax.random.uniform(direction, (n,), minval=-1),
            "normal": normals(normal, (self.branches, 2)),
            "uniform": uniforms(uniform, (5, self.branches)),
            "look": jax.random.uniform(look),
            "start": starts.noise(start),
        }

    def init(self, x0: Array, k: int, bounds: Bounds) -> TargetingState:
        zero = jnp.zeros((), jnp.int32)
        worths = Worths(
            Worth(jnp.array([0, 1], x0.dtype)), Worth(jnp.ones(2, x0.dtype)), Worth(jnp.ones((2, 2), x0.dtype))
        )
        return TargetingState(
            theta=x0,
            explores=jnp.array(True),
            followed=zero,
            footing=Footing.none(x0, k),
            secants=Secants.none(x0),
            misses=Misses.none(),
            sizes=Sizes.first(x0.dtype),
            chase=Chase.none(x0),
            worths=worths,
            bounds=bounds,
        )

    def points(self, state: TargetingState, archive: Archive, noise: dict[str, Any]) -> Points:
        return Points(state.theta[None], jnp.ones(1, bool))

    def ask(
        self, state: TargetingState, archive: Archive, points: Points, evaluation: Evaluation, noise: dict[str, Any]
    ) -> tuple[TargetingState, Proposal]:
        objective, widths = evaluation.objective[0], self._widths(archive, evaluation.measures[0])
        ground = self._ground(points, evaluation, widths).after(state.footing, state.chase.left > 0, widths)
        theta, measures = ground.theta, ground.measures
        room = None if state.bounds is None else Room(state.bounds[0] - theta, state.bounds[1] - theta)
        model = LocalModel.of(ground.gradient, ground.rows, room)
        free = jnp.sqrt(jnp.sum(model.free**2))
        begun = state.sizes.begun(self.reach * model.hard_cell, model.cell, free)
        sizes = begun.here(model.cell, free)
        secants = state.secants.after(state.footing, ground, model.slope, state.followed > 0)

        view = View.around(archive, measures)
        shots = choose(view, model, objective, sizes, state.misses, state.explores, self.branches)
        shots, left = state.chase.joined(view, shots, state.explores)
        uniform, longest = noise["uniform"], LONGEST * sizes.radius
        aims = self._aims(state, view, model, sizes, shots, uniform[0])

        sideways = Sideways.drawn(model, sizes, longest, free, shots.is_open, aims.hard, noise)
        cheapest = Cheapest.of(secants, ground, longest)
        either = ~aims.hard & (sideways.share == 1)
        takes = uniform[3] < state.worths.cheap.share(LEAST)[shots.is_open.astype(jnp.int32)]
        takes = takes & either & cheapest.known & (cheapest.squared_length(aims.aim) <= longest**2)
        climb = jnp.where(shots.is_open, *CLIMBS) * uniform[4]
        numbers, _, momentum = chases.pursuers(self.branches)
        onwards = jnp.where(aims.pursues, jnp.asarray(momentum, theta.dtype), 0)
        branches = Branches(model, cheapest, sideways, ground.held, noise["direction"], state.chase.step)
        steps = branches.steps(aims.aim, takes, climb, onwards)

        goal, away = measures + aims.middle[0] * widths, chases.away(aims.middle[0])
        looks = state.explores & (state.chase.left == 0) & shots.is_open[0]
        looks = looks & (noise["look"] < state.worths.chasing.share(SELDOM))
        squared = model.squared_length(aims.aim)
        along = matmul(aims.aim, model.slope)
        drawn = {
            "target": aims.target,
            "open": shots.is_open,
            "first": aims.first & ~sideways.wild,
            "fair": aims.first & ~aims.hard,
            "close": jnp.all(jnp.abs(aims.aim) <= CLOSE, axis=1),
            "origin": measures,
            "aim": aims.aim,
            "ways": either[:, None] & jnp.stack([~takes, takes], axis=1),
            "sideways": replace(sideways, used=sideways.used & ~takes[:, None]),
            "rise": view.stored[shots.place] - objective,
            "along": along,
            "linear": along + sideways.climb * free**2,
            "squared": squared + (sideways.climb * free) ** 2,
            "length": squared,
            "pursuit": Pursuit(aims.target[0], aims.pursues[0], looks, left, away, goal, steps[numbers]),
            "start": noise["start"],
        }
        return replace(state, sizes=begun, secants=secants, footing=ground), Proposal(theta + steps, drawn)

    def _widths(self, archive: Archive, measures: Array) -> Array:
        return neighbourhood(archive.tessellation).widths(measures)

    def _ground(self, points: Points, evaluation: Evaluation, widths: Array) -> Footing:
        assert evaluation.jacobian is not None
        theta, jacobian = points.solutions[0], evaluation.jacobian[0]
        fine = usable(points, evaluation)[0] & jnp.isfinite(jnp.sum(jacobian**2))
        jacobian = jnp.where(fine, jacobian, 0)
        rows = jacobian[1:] / widths[:, None]
        return Footing(theta, evaluation.measures[0], jacobian[0], rows, jnp.zeros(theta.shape, bool))

    def _aims(
        self, state: TargetingState, view: View, model: LocalModel, sizes: Sizes, shots: Shots, uniform: Array
    ) -> Aims:
        """The middle of an open cell, its near edge if the shot is hard; of an elite's cell the better corner."""
        target, middle = view.cells[shots.place], view.middles[shots.place]
        far = model.squared_length(middle) > sizes.radius**2
        fresh = shots.is_open & ~shots.spare & (state.misses.of(target) == 0)
        hard = shots.is_open & (far | ~fresh)
        first, (_, lengths, _) = jnp.arange(self.branches) == 0, chases.pursuers(self.branches)
        pursues = (first | shots.spare) & hard & hard[0] & state.explores

        edge = NEAR_EDGE * jnp.where(pursues, 1, uniform)[:, None]
        length = jnp.where(pursues, jnp.asarray(lengths, middle.dtype), 1)
        near = jnp.clip(0, middle - edge, middle + edge) * length[:, None]
        corner = middle + INSIDE * (1 - uniform**2)[:, None] * jnp.sign(model.slope)
        aim = jnp.where(hard[:, None], near, jnp.where(shots.is_open[:, None], middle, corner))
        return Aims(target, middle, fresh, hard, pursues, aim)

    def tell(self, state: TargetingState, archive: Archive, drawn: dict[str, Any], result: AddResult) -> TargetingState:
        assert result.objective is not None
        assert result.measures is not None
        hit, new, sideways = result.cell == drawn["target"], result.status == NEW, drawn["sideways"]
        chase = chases.after(drawn["pursuit"], archive, result)
        chased = (chase.left > 0) & (drawn["target"] == chase.goal)
        misses = state.misses.after(drawn["target"], drawn["open"] & ~hit & drawn["close"] & ~chased)

        gain = gained(result, archive)
        total = jnp.sum(gain)
        worths = self._worths(state, drawn, gain, total)
        off = (result.measures - drawn["origin"]) / self._widths(archive, drawn["origin"]) - drawn["aim"]
        arrived = jnp.max(jnp.abs(off), axis=1) <= 1 + TOLERANCE * jnp.max(jnp.abs(drawn["aim"]), axis=1)
        seen = hit & ~drawn["open"] & drawn["ways"][:, 0] & jnp.isfinite(result.value)
        sizes = state.sizes.settling(drawn["fair"])
        tried = jnp.where(sizes.settled, drawn["fair"], drawn["first"])
        sizes = sizes.with_radius(tried, new & arrived, drawn["length"])
        sizes = sizes.with_objective(seen, result.value + drawn["rise"], drawn["linear"], drawn["squared"])
        sizes = sizes.with_wild(jnp.any(sideways.wild & ruinous(result.objective, archive)))
        sizes = sizes.with_steps(jnp.where(result.status == IMPROVED, gain, 0), sideways.used, sideways.logs)
        sizes = sizes.with_walls(jnp.isfinite(result.objective) & jnp.isfinite(result.measures).all(axis=1))
        sizes = _unless_lost(sizes, state.sizes)

        start, chases_on = starts.next_start(archive, misses, worths.exploring, drawn["start"]), chase.left > 0
        best = self._best(state, sizes, drawn, gain, result)
        lately = jnp.where(
            state.explores, worths.exploring.gains[1] * FOLLOWED[1], worths.exploring.gains[0] * FOLLOWED[0]
        )
        follows = ~chases_on & (total > lately) & (gain[best] > 0) & (state.followed < LAST)
        cell = jnp.where(follows, result.cell[best], start.cell)
        elite = jnp.where(archive.count > 0, archive.elite(cell), state.theta)
        return replace(
            state,
            theta=jnp.where(chases_on, state.footing.theta + chase.step, elite),
            explores=jnp.where(follows, state.explores, start.explores | chases_on),
            followed=jnp.where(follows, state.followed + 1, 0),
            misses=misses,
            sizes=sizes,
            chase=chase,
            worths=worths,
        )

    def _worths(self, state: TargetingState, drawn: dict[str, Any], gain: Array, total: Array) -> Worths:
        """With what this iteration gained, and each of its ways."""
        worths, which = state.worths, jnp.arange(2)
        fresh = state.explores & (state.followed == 0)
        at = jnp.stack([~drawn["open"], drawn["open"]], axis=1)
        ways = at[:, :, None] & drawn["ways"][:, None]  # (b, 2, 2)
        count = jnp.sum(ways, axis=0)
        mean = jnp.sum(jnp.where(ways, gain[:, None, None], 0), axis=0) / jnp.maximum(count, 1)
        return Worths(
            worths.exploring.after(total, which == state.explores),
            worths.chasing.after(total, fresh & (which == (state.chase.left > 0))),
            worths.cheap.after(mean, jnp.all(count > 0, axis=1, keepdims=True)),
        )

    def _best(
        self, state: TargetingState, sizes: Sizes, drawn: dict[str, Any], gain: Array, result: AddResult
    ) -> Array:
        """The branch to go on from: the best new one; or the best improved one, as if all had the measures of theta."""
        assert result.objective is not None
        new, improved = result.status == NEW, (result.status == IMPROVED) & (gain > 0)
        ahead = jnp.where(improved, result.objective - sizes.scale * drawn["along"], -jnp.inf)
        fresh = jnp.where(new, result.objective, -jnp.inf)
        polished = jnp.where(jnp.any(improved), jnp.argmax(ahead), jnp.argmax(gain))
        return jnp.where(state.explores & jnp.any(new), jnp.argmax(fresh), polished)

    def restarts(self, state: TargetingState) -> dict[str, Array]:
        return {}


def _unless_lost(learnt: T, before: T) -> T:
    """What was learnt, number by number, but for what an overflow spoilt."""
    return jax.tree.map(lambda new, old: jnp.where(jnp.isfinite(new), new, old), learnt, before)
