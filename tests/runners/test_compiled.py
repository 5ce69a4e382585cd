"""What is compiled of a search: how much it is, and what is not in it. Nothing is timed."""

import functools

import jax
import jax.numpy as jnp
import pytest

import dqd
from dqd.archives.archive import Archive
from dqd.compiler.program import Program
from dqd.runners.compiled import begin, counted, grain, run_chunk
from dqd.search.search import Search

N, SIDE, SEEDS = 1000, 60, 3
# Kernels of one iteration of CMA-MEGA, and lines of the program: what they were in November 2026, and a tenth more.
MOST_KERNELS = {"cpu": 172, "gpu": 62}
MOST_LINES = {"cpu": 6900, "gpu": 6500}
SMALLEST = SIDE * SIDE * 4  # bytes of the smallest array of the archive


@functools.cache
def compiled(seeds=1):
    domain, search = dqd.LinearProjection("sphere", N), Search(dqd.cma_mega(10.0))
    archive = jax.eval_shape(lambda: Archive.empty(domain.grid(SIDE), N))
    start = begin if seeds == 1 else jax.vmap(begin, (None, None, None, 0, None))
    seed = jnp.asarray(0) if seeds == 1 else jnp.arange(seeds)
    state = jax.eval_shape(start, search, archive, jnp.zeros(N), seed, domain)
    length = grain()
    options = {"batched": seeds > 1, "counted": counted(length)}
    return run_chunk.lower(search, state, domain, length, **options).compile().as_text()


def test_an_iteration_is_few_kernels_and_a_small_program():
    where, text = jax.default_backend(), compiled()
    program = Program.read(text)
    kernels = program.kernels(program.loop())
    assert len(kernels) <= MOST_KERNELS[where]
    assert {kernel.library for kernel in kernels} - {None} <= ({"lapack_ssyevd_ffi"} if where == "cpu" else set())
    assert text.count("\n") <= MOST_LINES[where]


@pytest.mark.parametrize("seeds", [1, pytest.param(SEEDS, marks=pytest.mark.long)])
def test_no_iteration_copies_an_array_of_the_archive(seeds):
    program = Program.read(compiled(seeds))
    assert program.copies(seeds * SMALLEST, program.loop()) == []


def test_the_search_for_copies_sees_one():
    def loop(x):
        return jax.lax.fori_loop(0, jnp.sum(x > 0), lambda i, x: x.at[i].set(x[::-1][0] + jnp.sum(jnp.sort(x))), x)

    text = jax.jit(lambda x: (loop(x), x)).lower(jnp.zeros(SMALLEST)).compile().as_text()
    assert Program.read(text).copies(SMALLEST)
