"""Contestants `qdax` and `qdax-patched`: QDax's CMA-MEGA in its own scan loop.

As shipped, `emit` draws the coefficients with one key and `state_update` draws others with another key, so that CMA-ES
and theta learn from coefficients that were never emitted. `qdax-patched` makes `emit` use the key that `state_update`
will use; nothing else is changed. What its interface does not offer stays QDax's own in both: recombination of all
branches instead of the better half, a positive objective coefficient, and theta itself not entering the archive.
"""

import functools

import jax
import jax.numpy as jnp
from qdax.core.containers.mapelites_repertoire import compute_euclidean_centroids
from qdax.core.emitters.cma_mega_emitter import CMAMEGAEmitter
from qdax.core.map_elites import MAPElites
from qdax.utils.metrics import default_qd_metrics

from protocol import serve
from settings import BATCH, LEARNING_RATE, SIDE, Settings

CHUNK = 50  # iterations per compiled scan
SHIFT = 0.4 * 5.12
LIMIT = 5.12


class EmittedCoefficients(CMAMEGAEmitter):
    """CMA-MEGA that learns from the coefficients it emitted."""

    def emit(self, repertoire, emitter_state, key):
        _, key_of_state_update = jax.random.split(emitter_state.key)
        return super().emit(repertoire, emitter_state, key_of_state_update)


class QDaxSearch:
    """`MAPElites.scan_update` under a compiled scan, as in QDax's examples."""

    def __init__(self, contestant: str, settings: Settings, seed: int) -> None:
        scoring = scoring_function(settings)
        centroids = compute_euclidean_centroids((SIDE, SIDE), minval=[-settings.bound] * 2, maxval=[settings.bound] * 2)
        emitter_class = EmittedCoefficients if contestant == "qdax-patched" else CMAMEGAEmitter
        emitter = emitter_class(
            scoring_function=scoring, batch_size=BATCH - 1, learning_rate=LEARNING_RATE, num_descriptors=2,
            centroids=centroids, sigma_g=settings.sigma,
        )  # fmt: skip
        algorithm = MAPElites(scoring, emitter, functools.partial(default_qd_metrics, qd_offset=0.0))
        key, start_key = jax.random.split(jax.random.key(seed))
        repertoire, state, _ = algorithm.init(jnp.zeros((1, settings.n)), centroids, start_key)
        self.carry = jax.block_until_ready((repertoire, state, key))
        chunk = functools.partial(jax.lax.scan, algorithm.scan_update, length=CHUNK)
        self.chunk = jax.jit(lambda carry: chunk(carry, None)).lower(self.carry).compile()

    def advance(self, iterations: int) -> None:
        if iterations % CHUNK:
            raise ValueError(f"iterations: expected a multiple of {CHUNK}, got {iterations}")
        for _ in range(iterations // CHUNK):
            self.carry, _ = self.chunk(self.carry)
        jax.block_until_ready(self.carry)

    def score(self) -> tuple[float, float]:
        metrics = default_qd_metrics(self.carry[0], qd_offset=0.0)
        return float(metrics["qd_score"]) / SIDE**2, float(metrics["coverage"])


def scoring_function(settings: Settings):
    """A batch of solutions -> fitnesses, descriptors and normalised gradients, as CMAMEGAEmitter reads them."""
    raw, scale, measures = DOMAINS[settings.domain](settings.n)
    rows = jax.vmap(jax.jacrev(lambda x: jnp.concatenate([raw(x)[None], measures(x)])))

    def score(solutions, key):
        jacobian = rows(solutions)  # (b, 3, n); XLA drops it where only the scores are used
        normalised = jacobian / (jnp.linalg.norm(jacobian, axis=-1, keepdims=True) + 1e-8)
        extra = {"normalized_grads": jnp.swapaxes(normalised, 1, 2)}
        return scale(jax.vmap(raw)(solutions)), jax.vmap(measures)(solutions), extra

    return score


def linear_projection(penalty, n: int):
    """Raw objective, its affine transform to 0..100, measures."""
    worst = penalty(jnp.full(n, -LIMIT))

    def measures(x):
        inside = jnp.abs(x) <= LIMIT
        clipped = jnp.where(inside, x, LIMIT / jnp.where(inside, 1.0, x))
        return jnp.stack([clipped[: n // 2].sum(), clipped[n // 2 :].sum()])

    return lambda x: -penalty(x), lambda raw: 100 * (1 + raw / worst), measures


def arm(n: int):
    """Raw objective, its affine transform to 0..100, measures."""

    def measures(x):
        angles = jnp.cumsum(x)
        return jnp.stack([jnp.cos(angles).sum(), jnp.sin(angles).sum()])

    return lambda x: -jnp.var(x), lambda raw: 100 * (1 + raw), measures


def sphere(x):
    return jnp.sum((x - SHIFT) ** 2)


def rastrigin(x):
    distance = x - SHIFT
    return 10 * x.size + jnp.sum(distance**2 - 10 * jnp.cos(2 * jnp.pi * distance))


DOMAINS = {
    "lp-sphere": functools.partial(linear_projection, sphere),
    "lp-rastrigin": functools.partial(linear_projection, rastrigin),
    "arm": arm,
}

if __name__ == "__main__":
    serve(QDaxSearch, ["qdax", "jax", "jaxlib", "flax", "numpy"], granularity=CHUNK, warm_up=CHUNK)
