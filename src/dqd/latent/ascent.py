"""Plain gradient ascent on the objective alone, by Adam: one solution instead of a map, the paper's baseline in latent
spaces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dqd.domains.domain import Domain, evaluating
from dqd.domains.problem import Problem
from dqd.domains.rejudge import mean_evaluation

CHUNK = 50  # iterations between two reports


@dataclass(frozen=True)
class Ascent:
    """The best solution on the way, and the stored objective at every step.

    Where scores were provisional, `objective` and `measures` are what the problem's judges say; `history` is what the
    search believed.
    """

    solution: np.ndarray  # (n,)
    objective: float
    measures: np.ndarray  # (k,)
    history: np.ndarray  # (iterations,)


def ascend(
    problem: Problem[Any],
    iterations: int,
    *,
    learning_rate: float = 0.01,
    say: Callable[[int, float], None] = lambda done, best: None,
) -> Ascent:
    """The best solution on the way of Adam from x0, uphill on the objective alone.

        x <- clip(x + Adam(gradient of the raw objective), bounds)

    A step costs one image and one pull-back. Measures are only reported. Where the scores of the problem are
    provisional, its judges have the last word on what was found.

    Args:
        problem: what to climb, and from where.
        iterations: steps.
        learning_rate: about the length of a step in every number of a solution, in the space's own units.
        say: told, every 50 steps, the steps done and the best stored objective so far.

        >>> from dqd.latent.problems import digits
        >>> found = ascend(digits.build("ink"), iterations=20, learning_rate=0.1)
        >>> bool(found.history[-1] > found.history[0]), found.solution.shape
        (True, (16,))
    """
    steps = _steps if evaluating(problem.domain) is problem.domain else _steps_on_host
    x = jnp.asarray(problem.x0)
    lower, upper = problem.bounds or (-jnp.inf, jnp.inf)
    state = (x, optax.adam(learning_rate).init(x), x, jnp.asarray(-jnp.inf, x.dtype))
    history: list[np.ndarray] = []
    for start in range(0, iterations, CHUNK):
        length = min(CHUNK, iterations - start)
        state, values = steps(problem.domain, state, learning_rate, (lower, upper), length)
        history.append(np.asarray(values))
        scale, offset = problem.domain.transform
        say(start + length, float(scale * state[3] + offset))
    judged = mean_evaluation(problem.judges or [problem.domain], state[2][None])
    scale, offset = problem.domain.transform
    stored = scale * np.concatenate(history or [np.zeros(0)]) + offset
    return Ascent(np.asarray(state[2]), float(judged.objective[0]), np.asarray(judged.measures[0]), stored)


@functools.partial(jax.jit, static_argnames="length")
def _steps(domain: Domain, state: Any, learning_rate: Any, bounds: Any, length: int) -> tuple[Any, Array]:
    def step(state: Any, _: None) -> tuple[Any, Array]:
        value, slope = jax.value_and_grad(lambda x: domain.score(x)[0])(state[0])
        return _stepped(state, value, slope, learning_rate, bounds), value

    return jax.lax.scan(step, state, None, length=length)


def _steps_on_host(domain: Domain, state: Any, learning_rate: Any, bounds: Any, length: int) -> tuple[Any, np.ndarray]:
    """The same with a domain that JAX cannot trace."""
    evaluator, values, (scale, offset) = evaluating(domain), [], domain.transform
    for _ in range(length):
        found = evaluator.evaluate_with_jacobian(np.asarray(state[0])[None])
        values.append((found.objective[0] - offset) / scale)
        state = _stepped(state, values[-1], jnp.asarray(found.jacobian[0, 0]), learning_rate, bounds)
    return state, np.asarray(values)


def _stepped(state: Any, value: Any, slope: Array, learning_rate: Any, bounds: Any) -> Any:
    """One step of Adam, and the best point so far."""
    x, optimizer, best_x, best = state
    better = value > best
    best_x, best = jnp.where(better, x, best_x), jnp.where(better, value, best)
    update, optimizer = optax.adam(learning_rate).update(-slope, optimizer)
    return jnp.clip(x + update, *bounds), optimizer, best_x, best
