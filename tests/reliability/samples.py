"""Small valid files of every kind, and a small valid run."""

import jax.numpy as jnp
import numpy as np

import dqd

SUFFIXES = (".safetensors", ".npz", ".parquet", ".csv")


def score(x):
    return 50 - jnp.sum(x**2), x[:2]


def short_run(out=None, **options):
    """A search of a few iterations on a problem that compiles quickly."""
    emitter = dqd.map_elites(0.5, batch_size=8, initial_population=8)
    settings = {"x0": jnp.zeros(3), "iterations": 6, "progress": False, "out": out}
    return dqd.illuminate(score, emitter, dqd.Grid([-3, -2], [3, 2], [6, 5]), **{**settings, **options})


def small_archive(dtype=np.float32):
    cell = np.array([0, 3, 7, 12], np.int32)
    measures = (np.stack(np.unravel_index(cell, (4, 4)), 1) / 4 + 0.1).astype(dtype)
    numbers = np.random.default_rng(0)
    return dqd.SavedArchive(
        cell,
        numbers.random(4).astype(dtype),
        measures,
        numbers.random((4, 3)).astype(dtype),
        np.arange(4, dtype=np.int32),
        dqd.Grid([0.0, 0.0], [1.0, 1.0], [4, 4]),
    )


def write_all(folder):
    """One file of every kind, and a run, in a folder."""
    short_run(folder / "run")
    for suffix in SUFFIXES:
        small_archive().save(folder / f"archive{suffix}")
    arrays = small_archive(np.float64).arrays()
    np.savez_compressed(folder / "packed.npz", **arrays)
    return folder
