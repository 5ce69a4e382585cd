"""Several devices in one process, simulated by a CPU cut into 8: what they find is what one device finds."""

import json
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

import dqd

pytestmark = pytest.mark.exact


@pytest.fixture(scope="module")
def answer():
    program = Path(__file__).parent / "devices_program.py"
    done = subprocess.run([sys.executable, "-W", "ignore", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_each_device_runs_its_seeds_as_one_device_runs_as_many(answer):
    assert answer["seeds on"] == 8
    assert answer["seeds"] == [True] * 16


def test_a_run_on_several_devices_goes_on_where_it_stopped(answer):
    assert answer["resumed"] == [True] * 16


def test_another_number_of_seeds_per_device_is_statistically_the_same(answer):
    shared, together, spread = answer["means"]
    assert abs(shared - together) < 2 * spread / 16**0.5  # two standard errors, though the seeds are even the same
    assert answer["evaluations"] == [19 + 30 * 13, 19 + 30 * 13]


def test_copies_of_an_emitter_and_their_evaluations_are_shared(answer):
    assert answer["copies on"] == 8
    assert answer["copy of one device"] == [2, 20]
    assert answer["copies"]


def test_batches_that_do_not_divide_are_filled_up(answer):
    assert answer["rows"]


def test_mistakes_are_explained(answer):
    words = ["9 seeds cannot be shared among 8", "expected 1 to 8", "expected a number, or a list", "at least one"]
    for word, said in zip(words, answer["mistakes"], strict=True):
        assert said.startswith("devices: ")
        assert word in said


def test_devices_and_evaluations_elsewhere_exclude_each_other():
    with pytest.raises(ValueError, match="where: devices share what is compiled"):
        dqd.illuminate(
            dqd.evaluator(lambda x: (x.sum(1), x[:, :1])),
            dqd.map_elites(0.1),
            dqd.Grid([0], [1], [2]),
            x0=jnp.zeros(2),
            where=dqd.Devices(1),
        )
