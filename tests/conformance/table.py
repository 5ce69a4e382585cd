"""The table: one row per emitter, and the small problems on which every row must hold.

A new emitter is one row in EMITTERS. Sizes are small and alike, and the problem is a traced choice, so that a row is
compiled once, however many problems, seeds and numbers it is tried with; and quickly, as nothing here runs for long.
"""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np

import dqd
from dqd.archives import Archive
from dqd.domains import Arm, Domain, LinearProjection
from dqd.strategies.cma_es import CMAESState
from dqd.types import pytree, replace

N, RESOLUTION, ITERATIONS, CHUNK = 40, 20, 20, 10

FEW = {"initial_population": 36}
NONE = {"initial_population": 0}  # spares a compilation; the archive is empty at first
# Name -> factory; its argument scales every float of the emitter.
EMITTERS = {
    "random_sampling": lambda s=1.0: dqd.random_sampling(1.0 * s, batch_size=12),
    "map_elites": lambda s=1.0: dqd.map_elites(0.5 * s, batch_size=12, **FEW),
    "map_elites_line": lambda s=1.0: dqd.map_elites_line(0.5 * s, 0.2 * s, batch_size=12, **NONE),
    "cma_me": lambda s=1.0: dqd.cma_me(0.5 * s, batch_size=12),
    "og_map_elites": lambda s=1.0: dqd.og_map_elites(0.5 * s, 0.1 * s, batch_size=24, **NONE),
    "og_map_elites_line": lambda s=1.0: dqd.og_map_elites_line(0.5 * s, 0.2 * s, 0.1 * s, batch_size=24, **NONE),
    "og_independent": lambda s=1.0: dqd.og_map_elites(
        0.5 * s, 0.1 * s, independent=True, batch_size=48, stepped=12, **NONE
    ),
    "og_line_independent": lambda s=1.0: dqd.og_map_elites_line(0.5 * s, 0.2 * s, 0.1 * s, independent=True, **NONE),
    "omg_mega": lambda s=1.0: dqd.omg_mega(1.0 * s, batch_size=24, **FEW),
    "omg_mega_unnormalized": lambda s=1.0: dqd.omg_mega(0.1 * s, normalize=False, batch_size=24, **NONE),
    "cma_mega": lambda s=1.0: dqd.cma_mega(1.0 * s, 0.9 * s, batch_size=13),
    "cma_mega_adam": lambda s=1.0: dqd.cma_mega_adam(1.0 * s, 0.1 * s, batch_size=13),
    "replicate_cma_mega": lambda s=1.0: dqd.replicate(dqd.cma_mega(1.0 * s, batch_size=13), 3),
    "replicate_cma_me": lambda s=1.0: dqd.replicate(dqd.cma_me(0.5 * s, batch_size=12), 2),
    "combine": lambda s=1.0: dqd.combine(
        dqd.cma_mega(1.0 * s, 0.9 * s, batch_size=13), dqd.map_elites(0.5 * s, batch_size=12, **FEW)
    ),
}

PROBLEMS = (LinearProjection("sphere", N), LinearProjection("rastrigin", N), Arm(N))
SPHERE, RASTRIGIN, ARM = range(3)


@pytree
class Problem(Domain):
    """One of PROBLEMS, chosen when it runs."""

    number: jax.Array

    @property
    def transform(self):
        scales, offsets = zip(*(problem.transform for problem in PROBLEMS), strict=True)
        return jnp.array(scales)[self.number], jnp.array(offsets)[self.number]

    def score(self, x):
        return jax.lax.switch(self.number, [problem.score for problem in PROBLEMS], x)


_quick = [False]  # the innermost choice is the last


@contextlib.contextmanager
def quick_to_compile(quick=True):
    """Without the optimisations of LLVM, which take longest. XLA's own stay: they decide what is rounded together."""
    _quick.append(quick)
    jax.config.update("jax_disable_most_optimizations", _quick[-1])
    try:
        yield
    finally:
        _quick.pop()
        jax.config.update("jax_disable_most_optimizations", _quick[-1])


def problem(number):
    return Problem(jnp.asarray(number))


def start(n=N):
    """A start without symmetries, where an error of sign or order would show."""
    return np.linspace(-0.4, 0.5, n)


def search(name, number=SPHERE, *, domain=None, grid=None, scale=1.0, iterations=ITERATIONS, chunk=CHUNK, **options):
    """The compiled runner on a row of the table."""
    with quick_to_compile():
        return dqd.illuminate(
            problem(number) if domain is None else domain,
            EMITTERS[name](scale),
            PROBLEMS[number].grid(RESOLUTION) if grid is None else grid,
            x0=start(),
            iterations=iterations,
            chunk=chunk,
            progress=False,
            **options,
        )


@functools.cache
def found(name, number=SPHERE, seed=0, iterations=ITERATIONS):
    """The same, kept for all tests that only look at it; they run in float64."""
    return search(name, number, seed=seed, iterations=iterations)


evaluate = jax.jit(Domain.evaluate)
evaluate_with_jacobian = jax.jit(Domain.evaluate_with_jacobian)


def play(search, iterations, with_jacobian, plain):
    """The loop of AskTell's documentation, a gradient phase without points left out."""
    while search.iteration < iterations:
        points = search.ask_dqd()
        if len(points):
            told = with_jacobian(points)
            search.tell_dqd(told.objective, told.measures, told.jacobian)
        told = plain(search.ask())
        search.tell(told.objective, told.measures)
    return search


def asking(name, number=SPHERE, **options):
    return dqd.AskTell(EMITTERS[name](), PROBLEMS[number].grid(RESOLUTION), x0=start(), **options)


def played(search, number=SPHERE, iterations=5, kind=lambda array: array):
    """An AskTell played on a problem of the table, whose answers may be any kind of array."""

    def answer(evaluator):
        return lambda solutions: jax.tree.map(kind, evaluator(problem(number), solutions))

    return play(search, iterations, answer(evaluate_with_jacobian), answer(evaluate))


class Tensor:
    """Just enough of a torch tensor that lives on a device and, while attached, requires a gradient."""

    def __init__(self, values, attached=True):
        self.values, self.attached = values, attached

    def detach(self):
        return Tensor(self.values, attached=False)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        if self.attached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return np.array(self.values, dtype)


def assert_same(one, other, tolerance=0.0):
    """Leaf by leaf: bit for bit, or within a tolerance relative to the largest number of the leaf, at least 1."""
    flat, tree = jax.tree_util.tree_flatten_with_path(one)
    assert tree == jax.tree.structure(other)
    for (path, a), b in zip(flat, jax.tree.leaves(other), strict=True):
        where = jax.tree_util.keystr(path)
        if jnp.issubdtype(jnp.result_type(a), jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        a, b = np.asarray(a), np.asarray(b)
        if tolerance and a.dtype.kind == "f":
            size = np.max(np.abs(a[np.isfinite(a)]), initial=1.0)
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * size, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def copied(state):
    """One that may be overwritten."""
    return jax.tree.map(lambda leaf: leaf.copy(), state)


def meaning(state):
    """A state without what round-off decides.

    Of a CMA-ES its distribution and paths: rows set aside may lie in any order and a basis may have any signs, which no
    sample shows. Of an archive not when an elite was found: one that is evaluated again may win or lose the last bit.
    Its exact sum is rounded like all other numbers.
    """

    def of(part):
        if isinstance(part, Archive):
            return replace(part, found=part.found >= 0, total=part.total.share(1))
        if not isinstance(part, CMAESState):
            return part
        if part.mean.ndim == 2:  # copies
            return jax.vmap(of)(part)
        covariance = part.decomposition.merged(part.decay, part.rows, part.weights)
        names = ("mean", "sigma", "path_c", "path_s", "evaluations", "decomposed_at", "used")
        return {"covariance": covariance, **{name: getattr(part, name) for name in names}}

    return jax.tree.map(of, state, is_leaf=lambda part: isinstance(part, CMAESState | Archive))
