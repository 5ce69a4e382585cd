"""A small network from measures to one number, and how it is fitted to some points of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dqd.types import PyTree, matmul, pytree

HIDDEN = (128, 128)
BATCH = 32  # points of one step
EPOCHS = 5  # at most
ENOUGH = 0.05  # mean squared error at which an epoch is the last one
ADAM = optax.adam(1e-3)


@pytree
class Network:
    """k numbers in, one out: layers of 128 with ReLU between, and the state of Adam."""

    layers: list[tuple[Array, Array]]  # weights (in, out), biases (out,)
    adam: PyTree

    @staticmethod
    def zero(k: int, dtype: jnp.dtype) -> Network:
        """0 everywhere: its last layer begins at 0, the others uniformly within 1 / sqrt(inputs)."""
        sizes = (k, *HIDDEN)
        keys = jax.random.split(jax.random.key(0), (len(HIDDEN), 2))
        layers = []
        for inputs, outputs, (weight, bias) in zip(sizes[:-1], sizes[1:], keys, strict=True):
            reach = inputs**-0.5
            drawn = (jax.random.uniform(weight, (inputs, outputs), dtype), jax.random.uniform(bias, (outputs,), dtype))
            layers.append(tuple(reach * (2 * part - 1) for part in drawn))
        layers.append((jnp.zeros((sizes[-1], 1), dtype), jnp.zeros(1, dtype)))
        return Network(layers, ADAM.init(layers))

    def __call__(self, rows: Array) -> Array:
        """(b, k) -> (b,)."""
        return _forward(self.layers, rows)

    def fitted(self, rows: Array, targets: Array, weights: Array, orders: Array) -> Network:
        """By Adam, BATCH points a step, in another order (points, EPOCHS) each time, until the error is small enough.

        Points whose weight is 0 count for nothing; the others have weight 1.
        """
        steps = -(-len(rows) // BATCH)
        spare = steps * BATCH - len(rows)

        def epoch(carry: tuple[Network, Array, Array]) -> tuple[Network, Array, Array]:
            network, number, _ = carry
            order = jnp.argsort(jnp.where(weights > 0, orders[:, number], 2))  # those that count first
            batches = jax.tree.map(
                lambda part: jnp.pad(part[order], ((0, spare), *[(0, 0)] * (part.ndim - 1))).reshape(
                    steps, BATCH, *part.shape[1:]
                ),
                (rows, targets, weights),
            )
            network, errors = jax.lax.scan(_step, network, batches)
            return network, number + 1, jnp.sum(errors) / jnp.maximum(jnp.sum(weights), 1)

        def goes_on(carry: tuple[Network, Array, Array]) -> Array:
            return (carry[1] < EPOCHS) & (carry[2] > ENOUGH)

        begin = self, jnp.zeros((), jnp.int32), jnp.asarray(jnp.inf, rows.dtype)
        return jax.lax.while_loop(goes_on, epoch, begin)[0]


def _forward(layers: Any, rows: Array) -> Array:
    *hidden, (weight, bias) = layers
    for w, b in hidden:
        rows = jax.nn.relu(matmul(rows, w) + b)
    return (matmul(rows, weight) + bias)[:, 0]


def _step(network: Network, batch: tuple[Array, Array, Array]) -> tuple[Network, Array]:
    """One step of Adam, and the sum of squared errors before it."""
    rows, targets, weights = batch
    count = jnp.sum(weights)

    def loss(layers: Any) -> tuple[Array, Array]:
        total = jnp.sum(weights * (_forward(layers, rows) - targets) ** 2)
        return total / jnp.maximum(count, 1), total

    (_, total), gradient = jax.value_and_grad(loss, has_aux=True)(network.layers)
    update, adam = ADAM.update(gradient, network.adam)
    after = Network(optax.apply_updates(network.layers, update), adam)
    return jax.tree.map(lambda new, old: jnp.where(count > 0, new, old), after, network), total
