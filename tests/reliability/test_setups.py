"""Random set-ups, launched in random lengths, crashed at a random commit, resumed: byte for byte the undisturbed run.

Chunks that wall time has shortened, as a pause does, are lengths drawn at random here. A crash is an error out of the
writer right after a commit: what is on disk then is all that the next session knows.
"""

import contextlib
import random

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small import mostly_long

import dqd
from dqd.runners.loop import Pace
from dqd.storage import record
from dqd.storage.writer import Writer

QUICK = 1  # in every test run; all of SETUPS with -m long
SETUPS = range(300)


class CrashError(Exception):
    pass


def score(x):
    """Any n: objective and two measures of all coordinates, with gradients everywhere."""
    angle = jnp.linspace(0.0, 6.0, x.size, dtype=x.dtype)
    measures = jnp.stack([jnp.mean(jnp.sin(x + angle)), jnp.mean(jnp.cos(2 * x - angle))])
    return -jnp.mean((x - jnp.sin(angle)) ** 2) - 0.1 * jnp.mean(jnp.cos(5 * x)), measures


def emitter(numbers: random.Random, n: int):
    sigma, batch = 10 ** numbers.uniform(-2, 0.5), numbers.randint(3, 40)
    few = {"initial_population": numbers.choice([0, 1, 37])}
    choices = [
        lambda: dqd.random_sampling(sigma, batch_size=batch),
        lambda: dqd.map_elites(sigma, batch_size=batch, **few),
        lambda: dqd.map_elites_line(sigma, 0.2, batch_size=batch, **few),
        lambda: dqd.og_map_elites(sigma, 0.1, batch_size=2 * batch, **few),
        lambda: dqd.og_map_elites_line(sigma, 0.2, 0.1, batch_size=3 * batch, independent=True, **few),
        lambda: dqd.omg_mega(sigma, numbers.random() < 0.7, batch_size=2 * batch, **few),
        lambda: dqd.cma_mega(sigma, numbers.uniform(0.1, 1.0), batch_size=batch),
        lambda: dqd.cma_mega_adam(sigma, 0.01, batch_size=batch),
        lambda: dqd.cma_mega(sigma, 0.1, numbers.choice([optax.rmsprop, optax.lion, optax.adagrad]), batch_size=batch),
        lambda: dqd.replicate(dqd.cma_mega(sigma, batch_size=batch), numbers.randint(2, 4)),
        lambda: dqd.combine(dqd.cma_mega_adam(sigma, batch_size=batch), dqd.map_elites(sigma, batch_size=5, **few)),
    ]
    if n <= 300:  # its covariance is n x n
        choices += 2 * [lambda: dqd.cma_me(sigma, batch_size=batch)]
        choices += [lambda: dqd.replicate(dqd.cma_me(sigma, batch_size=batch), 2)]
    return numbers.choice(choices)()


def setup(number: int) -> tuple[dict, bool]:
    numbers = random.Random(number)
    n = int(10 ** numbers.uniform(0, 4.3))
    seeds = {"seeds": [3, 1, 4][: numbers.randint(2, 3)]} if numbers.random() < 0.5 else {"seed": number}
    bounds = numbers.choice([None, None, (-1.0, 0.75), (np.full(n, -2.0), np.linspace(0.1, 3.0, n))])
    threshold = numbers.choice([dqd.Threshold(), dqd.Threshold(0.1, -3.0), dqd.Threshold(0.0, -1.0)])
    side = numbers.choice([1, 7, 30])
    return {
        "score": score,
        "emitter": emitter(numbers, n),
        "tessellation": dqd.Grid([-1.0, -0.6], [1.0, 0.5], [side, side + 3]),
        "x0": np.random.default_rng(number).normal(size=n) * numbers.choice([0.0, 0.3]),
        "iterations": numbers.randint(20, 90),
        "bounds": bounds,
        "threshold": threshold,
        "qd_score_offset": numbers.choice([0.0, -3.0]),
        "progress": False,
        **seeds,
    }, numbers.random() < 0.3


def digests(folder) -> dict[str, str]:
    files = record.newest(folder, lambda checkpoint: checkpoint.manifest["files"])
    return {name: entry["sha256"] for name, entry in files.items() if name != record.TIMINGS}


def disturbed(options, folder, numbers, monkeypatch) -> None:
    """The run with launches of random lengths, crashed three times after random commits."""
    commit, left = Writer.commit, [0]

    def committed(self, *arguments):
        commit(self, *arguments)
        left[0] -= 1
        if not left[0]:
            raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(Pace, "took", lambda self, *_: setattr(self, "length", numbers.choice([1, 1, 2, 3, 7, 30])))
        patch.setattr(Writer, "commit", committed)
        for _ in range(3):
            left[0] = numbers.randint(1, 12)
            with contextlib.suppress(CrashError):
                dqd.illuminate(**options, out=dqd.Folder(folder, checkpoint_seconds=0))
        left[0] = 0
        dqd.illuminate(**options, out=dqd.Folder(folder, checkpoint_seconds=0))


def check(number, folder, monkeypatch) -> None:
    options, x64 = setup(number)
    with jax.enable_x64(x64):
        dqd.illuminate(**options, out=folder / "whole")
        disturbed(options, folder / "disturbed", random.Random(number), monkeypatch)
    assert digests(folder / "disturbed") == digests(folder / "whole"), number
    jax.clear_caches()


@pytest.mark.parametrize("number", mostly_long(SETUPS, QUICK))
def test_a_set_up_that_is_disturbed_ends_as_the_undisturbed_one(number, tmp_path, monkeypatch):
    check(number, tmp_path, monkeypatch)
