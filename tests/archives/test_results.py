"""An archive beside the one that is searched in: everything is stored there too, and it is what is reported."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small
from conformance.table import quick_to_compile

import dqd
from dqd.archives import Archive
from dqd.types import Evaluation

RANDOM = dqd.random_sampling(1.0, batch_size=9)  # whatever the archive holds, it proposes the same
OPTIONS = {"x0": jnp.zeros(6), "iterations": 20, "chunk": 10, "progress": False}
BESIDE = {"tessellation": dqd.DNS(2, 15), "result_archive": small.GRID}


def search(emitter=RANDOM, **options):
    with quick_to_compile():
        return dqd.illuminate(small.score, emitter, **OPTIONS | options)


@pytest.fixture(scope="module")
def alone():
    return search(tessellation=small.GRID, seeds=[0, 1])


def test_it_holds_what_an_archive_alone_would_hold(alone, tmp_path):
    for iterations in (10, 20):  # a run that goes on, too
        both = search(**BESIDE, seeds=[0, 1], iterations=iterations, out=tmp_path / "run")
    for ours, expected in zip(both, alone, strict=True):
        for name in ("solutions", "objective", "found"):
            np.testing.assert_array_equal(getattr(ours.archive, name), getattr(expected.archive, name))
        assert len(ours.searched) == 15
        assert ours.qd_score == expected.qd_score
        np.testing.assert_array_equal(ours.history["qd_score"], expected.history["qd_score"])
    saved = dqd.load(tmp_path / "run" / "seed-1")
    np.testing.assert_array_equal(saved.solutions, alone[1].elites.solutions)
    assert saved.config["result_archive"]["type"] == "Grid"
    assert saved.config["grid"] == {"type": "DNS", "measures": 2, "capacity": 15, "neighbours": 3}


def test_a_loop_of_ones_own_reports_it(alone):
    own = dqd.AskTell(RANDOM, **BESIDE, x0=jnp.zeros(6), seed=1)
    domain, expected = alone[1].domain, alone[1]
    evaluate = jax.jit(domain.evaluate)
    while own.iteration < 20:
        own.tell(evaluate(own.ask()))
    np.testing.assert_array_equal(own.archive.solutions, expected.archive.solutions)
    assert own.qd_score == own.result().qd_score == expected.qd_score
    assert len(own.result().searched) == 15


def test_a_soft_archive_keeps_out_what_the_result_archive_takes():
    soft = Archive.empty(small.GRID, 1, threshold=dqd.Threshold(0.1, 0.0), results=small.GRID)
    told = Evaluation(jnp.array([-3.0, -1.0, 2.0]), jnp.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]))
    soft, result = small.add(soft, jnp.zeros((3, 1)), told)
    assert result.status.tolist() == [0, 0, 2]
    assert soft.elites.objective.tolist() == [2.0]
    assert soft.reported.elites.objective.tolist() == [-1.0, 2.0]


def test_a_sigma_that_is_left_out_is_chosen_by_its_cells():
    result = search(dqd.map_elites(batch_size=9, initial_population=9), **BESIDE, iterations=1)
    assert set(result.chosen) == {"solutions", "initial_sigma"}


def test_cells_for_another_number_of_measures_are_refused():
    with pytest.raises(ValueError, match="result_archive: expected cells for 2 measures, as the search has, got 1"):
        search(tessellation=dqd.DNS(2, 15), result_archive=dqd.Grid([0], [1], [4]))
