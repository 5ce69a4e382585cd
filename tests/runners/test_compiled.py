"""What is compiled of a search: how much it is, and what is not in it. Nothing is timed."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.archives.archive import Archive
from dqd.compiler.program import Program
from dqd.runners.compiled import begin, counted, grain, run_chunk
from dqd.search.search import Search

N, SIDE, SEEDS = 1000, 2000, 3  # an archive of 16 GB, of which there are only shapes here
# Kernels of one iteration of CMA-MEGA, and lines of the program: what they were in November 2026, and a tenth more.
MOST_KERNELS = {"cpu": 172, "gpu": 60}
MOST_LINES = {"cpu": 6900, "gpu": 6500}
SMALLEST = SIDE * SIDE * 4  # bytes of the smallest array of the archive


def lowered(emitter, n=N, side=SIDE, seeds=1, kept=None):
    domain, search = dqd.LinearProjection("sphere", n), Search(emitter)
    archive = jax.eval_shape(lambda: Archive.empty(domain.grid(side), n, kept=kept))
    start = begin if seeds == 1 else jax.vmap(begin, (None, None, None, 0, None))
    seed = jnp.asarray(0) if seeds == 1 else jnp.arange(seeds)
    state = jax.eval_shape(start, search, archive, jnp.zeros(n), seed, domain)
    length = grain()
    return run_chunk.lower(search, state, domain, length, batched=seeds > 1, counted=counted(length))


@functools.cache
def compiled(seeds=1, kept=None):
    return lowered(dqd.cma_mega(10.0), seeds=seeds, kept=kept).compile()


def test_an_iteration_is_few_kernels_and_a_small_program():
    where, text = jax.default_backend(), compiled().as_text()
    program = Program.read(text)
    kernels = program.kernels(program.loop())
    assert len(kernels) <= MOST_KERNELS[where]
    assert {kernel.library for kernel in kernels} - {None} <= ({"lapack_ssyevd_ffi"} if where == "cpu" else set())
    assert text.count("\n") <= MOST_LINES[where]


@pytest.mark.parametrize(
    ("seeds", "kept"),
    [(1, None), *(pytest.param(*more, marks=pytest.mark.long) for more in ((SEEDS, None), (1, "float16")))],
)
def test_no_iteration_copies_an_array_of_the_archive_and_nothing_as_large_stands_beside_it(seeds, kept):
    whole = compiled(seeds, kept and jnp.dtype(kept))
    program = Program.read(whole.as_text())
    assert program.copies(seeds * SMALLEST, program.loop()) == []
    assert whole.memory_analysis().temp_size_in_bytes < SMALLEST


LARGER = {
    "cells": ({"side": 10}, {"side": SIDE}),
    "solutions": ({"n": 50}, {"n": N}),
    "seeds": ({"seeds": 2}, {"seeds": 64}),
    "batch": ({"emitter": dqd.cma_mega(10.0, batch_size=40)}, {"emitter": dqd.cma_mega(10.0, batch_size=200)}),
    "emitters": tuple({"emitter": dqd.replicate(dqd.cma_mega(10.0), count), "n": 50} for count in (3, 14)),
}


@pytest.mark.parametrize("what", LARGER)
def test_a_program_does_not_grow_with_what_it_works_on(what):
    few, many = (lowered(**{"emitter": dqd.cma_mega(10.0)} | sizes).as_text().count("\n") for sizes in LARGER[what])
    assert abs(many - few) <= 0.05 * few


@pytest.fixture
def programs():
    """A list that grows with every program that is compiled, or read from where compiled ones are kept."""
    found = []

    def heard(event, _seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(heard)
    yield found
    jax.monitoring.unregister_event_duration_listener(heard)


def test_other_numbers_compile_nothing(programs):
    def search(sigma=0.5, rate=1.0, start=0.0, reach=2.0, **options):
        grid = dqd.Grid([-reach] * 2, [reach] * 2, [6, 6])
        settings = {"x0": jnp.full(7, start), "iterations": 10, "progress": False, "bounds": (-3.0, reach)}
        return dqd.illuminate(quadratic, dqd.cma_mega(sigma, rate, batch_size=9), grid, **settings | options)

    search()
    assert programs
    programs.clear()
    search(sigma=0.3, rate=0.9, start=0.1, reach=1.5, seed=4, iterations=13, qd_score_offset=-2.0)
    assert programs == []


def test_a_loop_of_ones_own_compiles_nothing_after_its_first_rounds(programs):
    def search(rounds, sigma):
        grid = dqd.Grid([-2, -2], [2, 2], [6, 6])
        own = dqd.AskTell(dqd.map_elites_line(sigma, 0.2, batch_size=9, initial_population=9), grid, x0=np.zeros(7))
        while own.iteration < rounds:
            solutions = own.ask()
            own.tell(-np.sum(solutions**2, axis=1), solutions[:, :2])
        return own.result()

    search(2, 0.5)
    assert programs
    programs.clear()
    search(6, 0.3)
    assert programs == []


def quadratic(x):
    return -jnp.sum(x**2), x[:2]


def test_the_search_for_copies_sees_one():
    def loop(x):
        return jax.lax.fori_loop(0, jnp.sum(x > 0), lambda i, x: x.at[i].set(x[::-1][0] + jnp.sum(jnp.sort(x))), x)

    text = jax.jit(lambda x: (loop(x), x)).lower(jnp.zeros(SMALLEST)).compile().as_text()
    assert Program.read(text).copies(SMALLEST)
