"""A search that begins with an archive: whatever holds elites, inserted by the one rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import assert_same
from small import add

import dqd
from dqd.archives import Archive
from dqd.archives.beginning import ROWS, Beginning
from dqd.types import Evaluation

N = 4
GRID = dqd.Grid([-2, -2], [2, 2], [40, 40])
ELITES = dqd.map_elites(0.3, batch_size=6, initial_population=7)
THRESHOLD = dqd.Threshold(0.5, minimum=-50.0)


def score(x):
    return -jnp.sum(x**2), x[:2]


def run(**options):
    settings = {"x0": np.zeros(N), "iterations": 3, "progress": False}
    return dqd.illuminate(score, ELITES, GRID, **{**settings, **options})


@pytest.fixture(scope="module")
def arrays():
    """More than are inserted at once; several meet in a cell, and two are the same."""
    solutions = np.random.default_rng(0).normal(size=(ROWS + 50, N)).astype(np.float32)
    solutions[-1] = solutions[0]
    objective, measures = jax.vmap(score)(solutions)
    return {"solution": solutions, "objective": np.asarray(objective), "measures": np.asarray(measures)}


def by_hand(arrays, **options):
    archive = Archive.empty(GRID, N, **options)
    return add(archive, arrays["solution"], Evaluation(arrays["objective"], arrays["measures"]))[0]


@pytest.mark.parametrize("threshold", [dqd.Threshold(), THRESHOLD], ids=["elites", "thresholds"])
def test_it_is_what_inserting_by_hand_gives(arrays, threshold):
    empty = Archive.empty(GRID, N, threshold=threshold)
    begun = Beginning.of(arrays, empty, None).into(empty)
    assert_same(begun, by_hand(arrays, threshold=threshold))
    assert 100 < len(begun) < len(arrays["objective"])


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run, and where it lies."""
    folder = tmp_path_factory.mktemp("first") / "run"
    return run(iterations=20, out=folder), folder


def test_every_holder_of_elites_is_welcome(first, tmp_path):
    result, folder = first
    result.archive.save(tmp_path / "elites.csv")
    elites = result.elites
    held = {"solutions": elites.solutions, "objective": elites.objective, "measures": elites.measures}
    givens = (result, result.archive, dqd.load(folder), folder, str(tmp_path / "elites.csv"), held)
    empty = Archive.empty(GRID, N)
    one, *others = (Beginning.of(given, empty, None) for given in givens)
    assert len(one.objective) == len(result.archive)
    for other in others:
        assert_same(vars(other), vars(one))


def test_a_search_goes_on_from_it_and_loses_nothing(first):
    result, _ = first
    further = run(archive=result, seed=1)
    assert further.evaluations == 7 + 3 * 6
    assert len(further.archive) >= len(result.archive)
    there = further.archive.retrieve(result.elites.measures)
    assert (there.objective >= result.elites.objective).all()
    assert (further.elites.found == 0).sum() > 0.8 * len(result.archive)
    assert further.history["coverage"][0] >= result.coverage


def test_the_same_in_ones_own_loop_and_around_an_evaluator_and_for_several_seeds(first):
    result, _ = first
    compiled, domain = run(archive=result), jax.jit(jax.vmap(score))
    search = dqd.AskTell(ELITES, GRID, x0=np.zeros(N), archive=result)
    while search.iteration < 3:
        search.tell(*domain(search.ask()))
    hosted = dqd.illuminate(
        dqd.evaluator(domain), ELITES, GRID, x0=np.zeros(N), archive=result, iterations=3, progress=False
    )
    for other in (search.result(), hosted, run(archive=result, seeds=[0, 1])[0]):
        assert_same(other.elites.cell, compiled.elites.cell)
        np.testing.assert_allclose(other.elites.solutions, compiled.elites.solutions, rtol=1e-4, atol=1e-6)


def test_a_run_knows_what_it_began_with(first, tmp_path):
    result, folder = first
    whole = run(archive=result, iterations=6)
    run(archive=result, out=tmp_path / "run")
    assert_same(run(archive=folder, iterations=6, out=tmp_path / "run").state, whole.state)
    for other in (None, whole):
        with pytest.raises(ValueError, match=r"holds a run of other settings \(archive"):
            run(archive=other, iterations=9, out=tmp_path / "run")


def test_another_grid_places_them_anew(first):
    result, _ = first
    coarse = Archive.empty(dqd.Grid([-2, -2], [2, 2], [2, 2]), N)
    begun = Beginning.of(result, coarse, None).into(coarse)
    assert len(begun) == 4
    assert float(begun.best) == result.elites.objective.max()


MISTAKES = [
    (lambda held: 3, TypeError, "archive: expected a dqd.Result, .* got int"),
    (lambda held: held | {"objective": held["objective"][:-1]}, ValueError, r"solutions: expected \(\d+, 4\)"),
    (lambda held: held | {"measures": held["measures"][:, :1]}, ValueError, r"measures: expected \(\d+, 2\)"),
    (lambda held: held | {"solution": held["solution"][:, :3]}, ValueError, r"solutions: expected .* got \(\d+, 3\)"),
    (lambda held: held | {"objective": held["objective"] * np.nan}, ValueError, "objective: expected finite"),
    (lambda held: {"objective": held["objective"]}, ValueError, "solutions, measures missing"),
    (lambda held: held | {"solution": held["solution"] + 9}, ValueError, r"306 of its 306 solutions lie outside"),
]


@pytest.mark.parametrize(("change", "kind", "words"), MISTAKES, ids=[words[:30] for _, _, words in MISTAKES])
def test_mistakes_are_explained(arrays, change, kind, words):
    with pytest.raises(kind, match=words):
        run(archive=change(arrays), bounds=(-5, 5))


def test_elites_without_solutions_are_refused(first, tmp_path):
    first[0].archive.save(tmp_path / "elites.npz", solutions=False)
    with pytest.raises(ValueError, match="its solutions were not saved"):
        run(archive=tmp_path / "elites.npz")
