"""An emitter of one's own: from random elites, a jump of random length along one of their gradients.

OMG-MEGA mixes all gradients of an elite; this one takes the objective's, always upwards, or that of one measure.
"""

import jax
import jax.numpy as jnp

import dqd
from dqd.emitters.emitter import normalized, usable
from dqd.types import Points, Proposal, pytree, static


@pytree
class Jumps:
    """Each jump costs two evaluations: an elite with its jacobian, and where the jump ends."""

    reach: float  # of the longest jump, in the units of a solution
    jumps: int = static(default=18)
    initial_population: int = static(default=100)

    @property
    def num_points(self):
        return self.jumps

    @property
    def batch_size(self):
        return self.jumps

    def noise(self, key, n, k):
        elite, row, length = jax.random.split(key, 3)
        return {
            "elite": jax.random.uniform(elite, (self.jumps,)),
            "row": jax.random.randint(row, (self.jumps,), 0, 1 + k),
            "length": jax.random.uniform(length, (self.jumps,), minval=-1, maxval=1),
        }

    def init(self, x0, k, bounds):
        return x0  # nothing is learnt: the state is what to start from while there are no elites

    def points(self, state, archive, noise):
        return Points(archive.pick(noise["elite"], state), jnp.ones(self.jumps, bool))

    def ask(self, state, archive, points, evaluation, noise):
        rows = normalized(evaluation.jacobian)[jnp.arange(self.jumps), noise["row"]]  # (jumps, n)
        rows = jnp.where(usable(points, evaluation)[:, None], rows, 0)  # a jacobian may be NaN: no jump then
        length = jnp.where(noise["row"] == 0, jnp.abs(noise["length"]), noise["length"])
        return state, Proposal(points.solutions + self.reach * length[:, None] * rows, drawn=())

    def tell(self, state, archive, drawn, result):
        return state

    def restarts(self, state):
        return {}


if __name__ == "__main__":
    domain = dqd.LinearProjection("sphere", n=100)
    for name, emitter in {"jumps": Jumps(reach=10.0), "OMG-MEGA": dqd.omg_mega(sigma=4.0)}.items():
        result = dqd.illuminate(domain, emitter, domain.grid(50), x0=jnp.zeros(100), iterations=1000, progress=False)
        print(f"{name:8s} QD-score {result.qd_score:.2f}, coverage {result.coverage:.1f} %")
