"""Targeting beside CMA-MEGA on a handful of functions, at equal numbers of evaluations and of jacobians.

    python benchmarks/targeting.py [--seeds 4] [--only "arm,noisy"] [--most 80000] [--alone]
    python benchmarks/targeting.py --alone --only arm --without emitter.CHASE=0     # another value of a constant

CMA-MEGA is shown at the best of its step sizes for every function and every number of evaluations; targeting has none.
All functions of one size share a compiled program. `--without` names a constant of a module of dqd.emitters.targeting:
which parts earn their place.
"""

import argparse
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import dqd
from dqd.types import pytree, static

EVALUATIONS = (5_000, 20_000, 80_000)
BATCH = 36
SIGMAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
N = 100


def normals(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@dataclass(frozen=True)
class Function:
    """score(x) -> objective, measures; the grid goes from -reach to reach along every measure."""

    score: Callable
    reach: float
    x0: np.ndarray


def near_zero(x, distance=1.0):
    """100 at 0, half of it where the numbers are of size `distance`."""
    return 100 / (1 + jnp.mean(x * x) / distance**2)


def linear(objective, x0=None) -> Function:
    domain = dqd.LinearProjection(objective, N)
    scale, offset = domain.transform

    def score(x):
        raw, measures = domain.score(x)
        return scale * raw + offset, measures

    return Function(score, 5.12 * N / 2, np.zeros(N) if x0 is None else x0)


def arm(x0) -> Function:
    def score(x):
        raw, measures = dqd.Arm(N).score(x)
        return 100 * (1 + raw), measures

    return Function(score, N, x0)


def network(k: int, n: int = N, seed: int = 0) -> Function:
    """Measures of two random layers; the objective has many hills."""
    first, second = normals(seed, n, 32) / math.sqrt(n), normals(seed + 1, 32, k) / math.sqrt(32)
    hills = normals(seed + 2, n, 16) / math.sqrt(n)

    def score(x):
        bumps = 0.8 + 0.2 * jnp.mean(jnp.cos(6 * (x @ hills)))
        return bumps * near_zero(x, 2.0), jnp.tanh(2 * x @ first) @ second

    return Function(score, 2.0, 0.1 * normals(seed + 3, n))


def ill_conditioned() -> Function:
    """A quadratic objective whose axes, turned at random, differ by 1000 in curvature; slightly curved measures."""
    turn = np.linalg.qr(normals(7, N, N))[0]
    weights, rows = np.logspace(-3, 0, N), normals(8, N, 2) / math.sqrt(N)

    def score(x):
        y = x @ turn
        return 100 / (1 + jnp.sum(weights * y * y)), jnp.sinh(x @ rows)

    return Function(score, 20.0, np.full(N, 0.5))


def collinear() -> Function:
    """Two measures whose gradients are nearly the same: only a band along the diagonal is easy to reach."""
    rows = normals(9, N, 2) / math.sqrt(N)

    def score(x):
        a, b = x @ rows[:, 0], x @ rows[:, 1]
        return near_zero(x), jnp.stack([a, a + 0.03 * b])

    return Function(score, 5.0, np.zeros(N))


def partly_flat() -> Function:
    """A measure that does not move until a threshold is passed."""
    rows = normals(10, N, 2) / math.sqrt(N)

    def score(x):
        a, b = x @ rows[:, 0], x @ rows[:, 1]
        return near_zero(x), jnp.stack([3 * jnp.tanh(a), jax.nn.relu(b - 0.5) - jax.nn.relu(-b - 0.5)])

    return Function(score, 3.0, np.zeros(N))


def noisy() -> Function:
    """Half a cell of noise in the measures that no gradient knows of."""
    rows = normals(11, N, 2) / math.sqrt(N)

    def score(x):
        noise = jax.lax.stop_gradient(jnp.sin(1e4 * (x[:2] + jnp.roll(x, 1)[:2])))
        return near_zero(x) * (1 + 0.02 * noise[0]), 3 * jnp.tanh(x @ rows) + 0.03 * noise

    return Function(score, 3.0, np.zeros(N))


def narrow() -> Function:
    """Only a spiral band of the grid can be reached."""
    rows = normals(12, N, 2) / math.sqrt(N)

    def score(x):
        angle, across = x @ rows[:, 0], 0.1 * jnp.tanh(x @ rows[:, 1])
        radius = 1 + 0.2 * angle + across
        return near_zero(x, 2.0), radius * jnp.stack([jnp.cos(2 * angle), jnp.sin(2 * angle)])

    return Function(score, 2.0, np.zeros(N))


FUNCTIONS = {
    "sphere": linear("sphere"),
    "rastrigin": linear("rastrigin"),
    "random start": linear("sphere", 2 * normals(1, N)),
    "arm": arm(np.zeros(N)),
    "crumpled arm": arm(0.3 * normals(2, N)),
    "network": network(2),
    "network 2": network(2, seed=50),
    "ill-conditioned": ill_conditioned(),
    "collinear": collinear(),
    "partly flat": partly_flat(),
    "noisy": noisy(),
    "narrow": narrow(),
}
MANY = {"network k=4": network(4)}


@pytree
class Field(dqd.Domain):
    """One of several functions, chosen when it runs: one program serves them all."""

    number: jax.Array
    scores: tuple[Callable, ...] = static()

    def score(self, x):
        return jax.lax.switch(self.number, self.scores, x)


def scores(function: Function, field: Field, shape: tuple[int, ...], emitter, seeds: int, most: int) -> np.ndarray:
    """QD-scores at EVALUATIONS up to `most`, (seeds, some)."""
    marks = [count // BATCH for count in EVALUATIONS if count <= most]
    results = dqd.illuminate(
        field,
        emitter,
        dqd.Grid([-function.reach] * len(shape), [function.reach] * len(shape), shape),
        x0=jnp.asarray(function.x0),
        iterations=marks[-1],
        seeds=range(seeds),
        progress=False,
    )
    return np.stack([np.asarray(result.history["qd_score"])[np.array(marks) - 1] for result in results])


def words(found: np.ndarray) -> str:
    return "  ".join(f"{mean:6.2f} ± {spread:4.2f}" for mean, spread in zip(found.mean(0), found.std(0), strict=True))


def compare(
    functions: dict[str, Function], shape: tuple[int, ...], only: list[str], seeds: int, alone: bool, most: int
) -> None:
    programs = tuple(function.score for function in functions.values())
    for number, (name, function) in enumerate(functions.items()):
        if only and name not in only:
            continue
        field = Field(jnp.asarray(number), programs)
        if not alone:
            every = [scores(function, field, shape, dqd.cma_mega(sigma), seeds, most) for sigma in SIGMAS]
            best = np.argmax([found.mean(0) for found in every], axis=0)
            chosen = np.stack([every[i][:, column] for column, i in enumerate(best)], axis=1)
            print(f"{name:16s} CMA-MEGA   {words(chosen)}", flush=True)
        print(
            f"{name:16s} targeting  {words(scores(function, field, shape, dqd.targeting(), seeds, most))}", flush=True
        )


def change(constant: str) -> None:
    """`module.NAME=value` in dqd.emitters.targeting."""
    place, value = constant.split("=")
    module, name = place.split(".")
    home = importlib.import_module(f"dqd.emitters.targeting.{module}")
    setattr(home, name, type(getattr(home, name))(float(value)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", default="", help="names of functions, with commas between")
    parser.add_argument("--most", type=int, default=EVALUATIONS[-1], help="evaluations")
    parser.add_argument("--alone", action="store_true", help="without CMA-MEGA")
    parser.add_argument("--without", nargs="*", default=[], metavar="MODULE.NAME=VALUE")
    given = parser.parse_args()
    for constant in given.without:
        change(constant)
    only = [name for name in given.only.split(",") if name]
    for functions, shape in ((FUNCTIONS, (100, 100)), (MANY, (10, 10, 10, 10))):
        compare(functions, shape, only, given.seeds, given.alone, given.most)


if __name__ == "__main__":
    main()
