"""AskTell: the compiled runner's equal for any evaluator, and a careful host."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import (
    EMITTERS,
    PROBLEMS,
    RESOLUTION,
    SPHERE,
    N,
    Tensor,
    asking,
    assert_same,
    evaluate,
    evaluate_with_jacobian,
    found,
    play,
    played,
    problem,
    quick_to_compile,
    start,
)

import dqd
from dqd.domains import Arm, LinearProjection
from dqd.emitters.emitter import usable
from dqd.inputs.arrays import to_numpy
from dqd.storage.lock import LockedError
from dqd.types import Points, Proposal, pytree

pytestmark = pytest.mark.x64
GRID = PROBLEMS[SPHERE].grid(RESOLUTION)


# The compiled runner's equal ------------------------------------------------------------------------------------------


@pytest.mark.exact
@pytest.mark.parametrize(
    ("domain", "emitter"),
    [
        pytest.param(LinearProjection("sphere", N), dqd.cma_me(0.5), marks=pytest.mark.long),
        pytest.param(LinearProjection("rastrigin", N), dqd.omg_mega(1.0), marks=pytest.mark.long),
        (Arm(N), dqd.cma_mega(0.05, rank_one="dqd2021")),
    ],
    ids=["sphere", "rastrigin", "arm"],
)
def test_the_same_on_a_problem_of_its_own_at_the_papers_batch_size_and_fully_optimised(domain, emitter):
    search = dqd.AskTell(emitter, domain.grid(20), x0=start())
    with quick_to_compile(False):
        result = dqd.illuminate(domain, emitter, domain.grid(20), x0=start(), iterations=30, chunk=30, progress=False)
        play(search, 30, jax.jit(domain.evaluate_with_jacobian), jax.jit(domain.evaluate))
    assert_same(result.state, search.result().state)


# Arrays of any kind ---------------------------------------------------------------------------------------------------


def real_torch(array):
    torch = pytest.importorskip("torch")
    return torch.tensor(np.asarray(array), requires_grad=True)


def test_numbers_in_bfloat16_are_understood():
    torch = pytest.importorskip("torch")
    assert to_numpy(torch.tensor([0.5, 2.0], dtype=torch.bfloat16)).tolist() == [0.5, 2.0]


def test_tensors_with_gradients_may_come_in_lists():
    torch = pytest.importorskip("torch")
    row = torch.tensor([0.5, 2.0], requires_grad=True)
    assert to_numpy([row, 2 * row]).tolist() == [[0.5, 2.0], [1.0, 4.0]]
    assert to_numpy([[row], (row,)]).shape == (2, 1, 2)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, Tensor, np.ndarray.tolist, real_torch])
def test_arrays_of_any_kind_are_welcome(kind):
    given = played(asking("cma_mega"), kind=lambda array: kind(np.asarray(array)))
    assert_same(given.archive, found("cma_mega", iterations=5).archive)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, Tensor, list])
def test_x0_may_be_of_any_kind(kind):
    search = dqd.AskTell(EMITTERS["cma_mega"](), GRID, x0=kind(start()))
    assert_same(search.ask_dqd(), start()[None])


def test_the_callers_arrays_are_never_changed_and_may_change_afterwards():
    x0 = start()
    search = dqd.AskTell(EMITTERS["cma_mega"](), GRID, x0=x0)
    x0[:] = np.nan
    while search.iteration < 5:
        for ask, tell, evaluator in (
            (search.ask_dqd, search.tell_dqd, evaluate_with_jacobian),
            (search.ask, search.tell, evaluate),
        ):
            arrays = [np.array(leaf) for leaf in jax.tree.leaves(evaluator(problem(SPHERE), ask()))]
            copies = [array.copy() for array in arrays]
            tell(*arrays)
            assert_same(arrays, copies)
            for array in arrays:
                array[:] = np.nan
    assert_same(search.archive, found("cma_mega", iterations=5).archive)


def test_what_is_handed_out_is_the_callers_own():
    search = asking("cma_mega")
    points = search.ask_dqd()
    points[:] = np.nan
    assert_same(search.ask_dqd(), start()[None])
    told = evaluate_with_jacobian(problem(SPHERE), search.ask_dqd())
    search.tell_dqd(told.objective, told.measures, told.jacobian)
    solutions = search.ask()
    copy = solutions.copy()
    solutions[:] = np.nan
    assert_same(search.ask(), copy)
    told = evaluate(problem(SPHERE), copy)
    search.tell(told.objective, told.measures)
    assert_same(search.archive, found("cma_mega", iterations=1).archive)


# The order of calls ---------------------------------------------------------------------------------------------------


def test_asking_twice_gives_the_same_and_costs_nothing():
    search = asking("omg_mega")
    while search.iteration < 3:
        if len(points := search.ask_dqd()):
            assert_same(search.ask_dqd(), points)
            told = evaluate_with_jacobian(problem(SPHERE), points)
            search.tell_dqd(told.objective, told.measures, told.jacobian)
        assert_same(search.ask(), search.ask())
        told = evaluate(problem(SPHERE), search.ask())
        search.tell(told.objective, told.measures)
    assert_same(search.archive, found("omg_mega", iterations=3).archive)


def test_a_failed_tell_changes_nothing_and_can_be_repeated():
    search = asking("cma_mega")
    while search.iteration < 5:
        for ask, tell, evaluator in (
            (search.ask_dqd, search.tell_dqd, evaluate_with_jacobian),
            (search.ask, search.tell, evaluate),
        ):
            asked, before = ask(), search.result().state
            arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(evaluator(problem(SPHERE), asked))]
            for i in range(len(arrays)):
                for wrong in (arrays[i][..., None], arrays[i].astype(complex), None):
                    with pytest.raises((TypeError, ValueError), match=r"expected|must be"):
                        tell(*arrays[:i], wrong, *arrays[i + 1 :])
            assert_same(search.result().state, before)
            assert_same(ask(), asked)
            tell(*arrays)
    assert_same(search.archive, found("cma_mega", iterations=5).archive)


def test_every_call_out_of_order_says_what_to_call_first():
    search, numbers = asking("cma_mega"), (np.zeros(1), np.zeros((1, 2)), np.zeros((1, 3, N)))
    with pytest.raises(RuntimeError, match=r"tell_dqd: call ask_dqd\(\) first"):
        search.tell_dqd(*numbers)
    with pytest.raises(RuntimeError, match=r"ask: this algorithm uses gradients; first call ask_dqd\(\)"):
        search.ask()
    with pytest.raises(RuntimeError, match=r"tell: call ask\(\) first"):
        search.tell(*numbers[:2])
    search.ask_dqd()
    search.tell_dqd(*numbers)
    with pytest.raises(RuntimeError, match=r"told already; go on with ask\(\)"):
        search.tell_dqd(*numbers)
    with pytest.raises(RuntimeError, match=r"told already; go on with ask\(\)"):
        search.ask_dqd()
    search.ask()
    search.tell(np.zeros(12), np.zeros((12, 2)))
    with pytest.raises(RuntimeError, match=r"tell: call ask\(\) first"):
        search.tell(np.zeros(12), np.zeros((12, 2)))
    assert search.iteration == 1


def test_the_first_round_is_the_initial_population_if_there_is_one():
    search = asking("map_elites")
    population = search.ask()
    assert population.shape == (36, N)
    assert np.abs(population - start()).std() > 0.3  # N(0, 1) whatever sigma is
    search.tell(np.zeros(36), np.zeros((36, 2)))
    assert search.iteration == 0
    assert search.ask().shape == (12, N)
    search.tell(np.zeros(12), np.zeros((12, 2)))
    assert (search.iteration, search.result().evaluations) == (1, 48)


def test_a_gradient_phase_without_points_may_be_played_or_left_out():
    search = asking("map_elites")
    while search.iteration < 5:
        points = search.ask_dqd()
        assert points.shape == (0, N)
        told = evaluate_with_jacobian(problem(SPHERE), points)
        search.tell_dqd(told.objective, told.measures, told.jacobian)
        told = evaluate(problem(SPHERE), search.ask())
        search.tell(told.objective, told.measures)
    without = asking("map_elites")
    while without.iteration < 5:
        told = evaluate(problem(SPHERE), without.ask())
        without.tell(told.objective, told.measures)
    assert_same(search.archive, without.archive)
    assert_same(search.archive, found("map_elites", iterations=5).archive)


def test_points_cannot_be_told_where_none_were_asked_for():
    search = asking("combine")  # the first round is its initial population
    with pytest.raises(ValueError, match="tell_dqd: no points were asked for"):
        search.tell_dqd(np.zeros(1), np.zeros((1, 2)), np.zeros((1, 3, N)))


def test_figures_on_the_way_are_those_of_the_result():
    search = played(asking("cma_mega"))
    result = search.result()
    assert (search.qd_score, search.coverage, search.best) == (result.qd_score, result.coverage, result.best)
    assert result.history["qd_score"][-1] == result.qd_score
    assert (result.iterations, result.stopped, result.seed) == (5, None, 0)
    figures = f"qd_score={result.qd_score:.4g}, coverage={result.coverage:.2f} %, best={result.best:.4g}"
    assert repr(search) == f"AskTell(iteration=5, {figures})"


# On disk --------------------------------------------------------------------------------------------------------------


def on_disk(folder, name="cma_mega", **options):
    return dqd.AskTell(EMITTERS[name](), GRID, x0=start(), out=dqd.Folder(folder, **options))


@pytest.mark.parametrize("name", ["cma_mega", "map_elites"])  # without and with an initial population
def test_a_search_on_disk_goes_on_bit_for_bit(name, tmp_path):
    whole = played(asking(name), iterations=6).result()
    for iterations in (0, 2, 6):
        with on_disk(tmp_path / "run", name) as search:
            assert search.iteration == max(0, {2: 0, 6: 2}.get(iterations, 0))
            played(search, iterations=iterations)
    result = search.result()
    assert_same(result.state, whole.state)
    assert_same(result.history, whole.history)
    assert_same(dqd.load(tmp_path / "run").objective, whole.elites.objective)


def test_a_search_that_dies_goes_on_from_its_last_checkpoint(tmp_path):
    search = on_disk(tmp_path / "run", checkpoint_seconds=0)
    played(search, iterations=3)
    told = evaluate_with_jacobian(problem(SPHERE), search.ask_dqd())
    search.tell_dqd(told)
    search.ask()
    search._folder.close()  # as the system would
    with on_disk(tmp_path / "run") as again:
        assert again.iteration == 3
        assert_same(played(again, iterations=5).archive, found("cma_mega", iterations=5).archive)


def test_a_round_that_was_begun_is_asked_for_again(tmp_path):
    with on_disk(tmp_path / "run") as search:
        played(search, iterations=2)
        search._checkpoints.next = 0  # a checkpoint is due
        played(search, iterations=3)
        points = search.ask_dqd()
        search.tell_dqd(evaluate_with_jacobian(problem(SPHERE), points))
    with on_disk(tmp_path / "run") as again:
        assert again.iteration == 3
        assert_same(again.ask_dqd(), points)


def test_a_closed_search_takes_nothing_more(tmp_path):
    with on_disk(tmp_path / "run") as search:
        search.tell_dqd(evaluate_with_jacobian(problem(SPHERE), search.ask_dqd()))
    with pytest.raises(RuntimeError, match="tell: this search was closed; make it again, with the same `out`"):
        search.tell(evaluate(problem(SPHERE), search.ask()))


def test_one_process_writes_and_other_settings_are_refused(tmp_path):
    with on_disk(tmp_path / "run"), pytest.raises(LockedError, match="being written"):
        on_disk(tmp_path / "run")
    with pytest.raises(ValueError, match="other settings"):
        on_disk(tmp_path / "run", "map_elites")


def test_a_search_without_an_end_leaves_views_of_its_whole_length(tmp_path):
    with on_disk(tmp_path / "run") as search:
        played(search, iterations=60)
    views = sorted(int(path.stem) for path in (tmp_path / "run" / "views").iterdir())
    assert len(views) == 50
    assert (views[0], views[-1]) == (1, 60)


def test_seconds_are_those_of_all_sessions(tmp_path):
    with on_disk(tmp_path / "run") as search:
        played(search, iterations=2)
    first = search.result()
    assert first.seconds > 0
    with on_disk(tmp_path / "run") as search:
        assert search.result().seconds + search.result().compile_seconds > 0.3 * first.seconds


def test_solutions_are_unflattened_as_x0_is():
    search = dqd.AskTell(EMITTERS["cma_mega"](), GRID, x0={"a": np.zeros((2, 3)), "b": np.ones(N - 6)})
    one = search.unflatten(search.ask_dqd()[0])
    assert_same(one, {"a": np.zeros((2, 3)), "b": np.ones(N - 6)})


# Fewer points than the most -------------------------------------------------------------------------------------------


@pytree
class Thrifty:
    """Asks for the last 1, 2 or 3 of four points, in turn, and steps up the objective from all four."""

    sigma: float
    num_points = batch_size = 4
    initial_population = 0

    def noise(self, key, n, k):
        return jax.random.normal(key, (4, n))

    def init(self, x0, k, bounds):
        return {"x0": x0, "round": jnp.zeros((), jnp.int32)}

    def points(self, state, archive, noise):
        return Points(state["x0"] + self.sigma * noise, jnp.arange(4) >= 3 - state["round"] % 3)

    def ask(self, state, archive, points, evaluation, noise):
        gradient = jnp.where(usable(points, evaluation)[:, None], evaluation.jacobian[:, 0], 0)
        return state, Proposal(points.solutions + 0.1 * gradient + 1.0, drawn=())

    def tell(self, state, archive, drawn, result):
        return {**state, "round": state["round"] + 1}

    def restarts(self, state):
        return {}


def test_only_points_that_are_wanted_are_handed_out_counted_and_stored():
    search, handed_out, sizes = dqd.AskTell(Thrifty(0.5), GRID, x0=start()), [], []

    def remember(evaluator):
        def evaluated(solutions):
            handed_out.extend(solutions.tolist())
            sizes.append(len(solutions))
            return evaluator(problem(SPHERE), solutions)

        return evaluated

    result = play(search, 6, remember(evaluate_with_jacobian), remember(evaluate)).result()
    assert sizes == [1, 4, 2, 4, 3, 4] * 2
    assert (result.gradients, result.evaluations) == (12, 36)
    assert result.state.tally.finite == 36
    assert all(solution in handed_out for solution in result.elites.solutions.tolist())


def test_a_mask_means_the_same_compiled():
    hosted = played(dqd.AskTell(Thrifty(0.5), GRID, x0=start()), iterations=6)
    compiled = dqd.illuminate(problem(SPHERE), Thrifty(0.5), GRID, x0=start(), iterations=6, progress=False)
    assert_same(hosted.result().state, compiled.state)


def test_what_is_not_finite_at_a_point_that_was_not_wanted_does_not_count():
    def score(x):
        objective, measures = PROBLEMS[SPHERE].score(x)
        return jnp.where(x[0] > 0, jnp.nan, objective), measures  # of four normals about half

    result = dqd.illuminate(score, Thrifty(5.0), GRID, x0=np.zeros(N), iterations=6, progress=False)
    search, bad = dqd.AskTell(Thrifty(5.0), GRID, x0=np.zeros(N)), 0
    while search.iteration < 6:
        points = search.ask_dqd()
        told = evaluate_with_jacobian(problem(SPHERE), points)
        nan = points[:, 0] > 0
        jacobian = np.where(nan[:, None, None] & (np.arange(3) == 0)[:, None], 0, told.jacobian)
        search.tell_dqd(np.where(nan, np.nan, told.objective), told.measures, jacobian)
        solutions = search.ask()
        told = evaluate(problem(SPHERE), solutions)
        search.tell(np.where(solutions[:, 0] > 0, np.nan, told.objective), told.measures)
        bad += int(nan.sum() + (solutions[:, 0] > 0).sum())
    assert 0 < bad < 36
    assert result.nonfinite == search.result().nonfinite == bad
