"""The runner: seeds, early ends, bounds, pytrees, bad numbers, optimisers, and what a result can do."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small import GRID, Jitted, score
from small import illuminate as run

import dqd
from dqd.archives import Archive
from dqd.emitters.gradient_operator import Branching
from dqd.inputs.layout import Layout
from dqd.inputs.names import METRICS
from dqd.storage import record
from dqd.types import AddResult, Evaluation, Points


@pytest.fixture(scope="module")
def result():
    return run()


def test_figures_agree_with_the_archive(result):
    elites = result.elites
    assert result.qd_score == pytest.approx(elites.objective.sum() / 144, rel=1e-6)
    assert result.coverage == pytest.approx(100 * len(elites) / 144)
    assert result.mean == pytest.approx(elites.objective.mean(), rel=1e-6)
    assert result.best >= elites.objective.max()
    assert (result.iterations, result.evaluations, result.gradients) == (40, 40 * 9, 40)
    assert result.stopped is None
    for name in METRICS:
        assert result.history[name].shape == (40,)
        assert result.history[name][-1] == pytest.approx(getattr(result, name))


def test_a_summary_is_json_as_it_is(result):
    assert json.loads(json.dumps(result.summary()))["evaluations"] == 360


def test_to_pandas_has_a_row_per_elite(result):
    table = result.to_pandas()
    assert list(table.columns[:5]) == ["cell", "objective", "measure_0", "measure_1", "solution_0"]
    assert table.shape == (len(result.archive), 5 + 6)
    np.testing.assert_array_equal(table["objective"], result.elites.objective)


def test_seeds_run_side_by_side_and_differ():
    results = run(seeds=[4, 7])
    assert [each.seed for each in results] == [4, 7]
    assert results.qd_score.shape == (2,)
    assert results.qd_score[0] != results.qd_score[1]
    assert results[-1].qd_score == pytest.approx(results.qd_score[1])
    assert results[0].history["coverage"].shape == (40,)


def test_until_ends_the_run_after_a_chunk():
    seen = []
    result = run(until=lambda metrics: seen.append(metrics["iteration"]) or metrics["iteration"] >= 20)
    assert (result.stopped, result.iterations, seen) == ("until", 20, [10, 20])


def test_the_first_ctrl_c_returns_what_was_found_and_the_second_interrupts():
    def press(times):
        def until(metrics):
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
            return False

        return until

    before = signal.getsignal(signal.SIGINT)
    result = run(until=press(1))
    assert (result.stopped, result.iterations) == ("interrupted", 20)
    with pytest.raises(KeyboardInterrupt):
        run(until=press(2))
    assert signal.getsignal(signal.SIGINT) is before


def test_no_iterations_leave_the_initial_population():
    result = run(emitter=dqd.map_elites(0.1, batch_size=4, initial_population=10), iterations=0)
    assert (result.evaluations, result.iterations) == (10, 0)
    assert len(result.archive) > 0


def test_solutions_may_be_a_pytree_and_bounds_hold_in_every_phase():
    x0 = {"a": np.zeros((2, 2)), "b": np.zeros(3)}
    bounds = ({"a": np.full((2, 2), -0.5), "b": -1.0}, 0.75)

    def pytree_score(x):
        assert x["a"].shape == (2, 2)
        return -jnp.sum(x["a"] ** 2), jnp.array([x["a"].sum(), x["b"].sum()])

    for emitter in (dqd.omg_mega(2.0, batch_size=8), dqd.cma_mega(2.0, batch_size=9), dqd.cma_me(2.0, batch_size=8)):
        found = run(pytree_score, emitter, x0=x0, bounds=bounds, iterations=10)
        solutions = found.elites.solutions
        assert (solutions[:, :4] >= -0.5).all()
        assert (solutions[:, 4:] >= -1.0).all()
        assert (solutions <= 0.75).all()
        assert (solutions == 0.75).any()  # sigma is large: the bound was met
        assert found.best_solution()["a"].shape == (2, 2)


def test_bounds_hold_for_everything_that_is_handed_out():
    search = dqd.AskTell(dqd.omg_mega(5.0, batch_size=8, initial_population=20), GRID, x0=np.zeros(6), bounds=(-1, 1))
    for _ in range(6):
        points = search.ask_dqd()
        if len(points):
            search.tell_dqd(-(points**2).sum(1), points[:, :2], np.tile(np.eye(3, 6), (len(points), 1, 1)))
        solutions = search.ask()
        assert np.abs(solutions).max() <= 1
        assert np.abs(points).max(initial=0) <= 1
        search.tell(-(solutions**2).sum(1), solutions[:, :2])


@pytest.mark.x64
def test_a_pytree_is_searched_as_the_vector_that_it_is_made_of():
    def on_tree(x):
        return score(jnp.concatenate([x["a"].reshape(-1), x["b"]]))

    flat = run(x0=np.linspace(-1, 1, 6), iterations=10)
    x0 = {"b": np.linspace(0.6, 1, 2), "a": np.linspace(-1, 0.2, 4).reshape(2, 2)}
    tree = run(on_tree, x0=x0, iterations=10)
    np.testing.assert_allclose(flat.elites.solutions, tree.elites.solutions, rtol=0, atol=1e-9)
    best = tree.best_solution()
    np.testing.assert_allclose(np.concatenate([best["a"].reshape(-1), best["b"]]), flat.best_solution(), atol=1e-9)
    assert tree.solution(tree.elites.measures[0])["a"].shape == (2, 2)


@pytest.mark.parametrize("x64", [False, True])
def test_numbers_have_the_precision_of_the_session_or_of_x0(x64):
    with jax.enable_x64(x64):
        default = run(x0=np.zeros(6), iterations=1)
        assert {np.asarray(default.archive.solutions).dtype, default.elites.objective.dtype} == {
            np.dtype("float64" if x64 else "float32")
        }
        single = run(x0=jnp.zeros(6, "float32"), iterations=1)
        assert single.archive.solutions.dtype == single.archive.measures.dtype == "float32"


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_a_start_in_half_precision_is_searched_in_single(dtype):
    result = run(x0=jnp.full(6, 0.5, dtype), iterations=5)
    assert result.archive.solutions.dtype == np.float32


@pytest.mark.x64
def test_a_score_may_compute_in_another_precision_than_the_search():
    def doubled(x):
        return -jnp.sum(jnp.asarray(x, jnp.float64) ** 2), jnp.asarray(x[:2], jnp.float64)

    for emitter in (dqd.cma_mega(0.5, batch_size=7), dqd.omg_mega(0.5, batch_size=6)):
        result = run(doubled, emitter, x0=jnp.zeros(6, jnp.float32), iterations=5)
        assert result.archive.objective.dtype == result.archive.best.dtype == np.float32


def test_a_list_of_numbers_is_a_vector():
    plain = run(x0=[0.5] * 6, iterations=3)
    np.testing.assert_array_equal(plain.elites.solutions, run(x0=jnp.full(6, 0.5), iterations=3).elites.solutions)
    assert plain.best_solution().shape == (6,)


def test_bounds_may_be_plain_lists():
    result = run(bounds=([-0.1] * 6, [0.2] * 6), iterations=5)
    assert result.elites.solutions.min() >= np.float32(-0.1)
    assert result.elites.solutions.max() <= np.float32(0.2)


def test_it_runs_outside_the_main_thread_where_no_signal_can_be_handled(result):
    with ThreadPoolExecutor(1) as pool:
        np.testing.assert_array_equal(pool.submit(run).result().elites.solutions, result.elites.solutions)


def test_without_a_terminal_progress_is_plain_lines(monkeypatch, capsys):
    monkeypatch.setattr("dqd.runners.progress.LOG_SECONDS", 0.0)
    run(progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("dqd: 40/40 iterations, QD-score ")
    run(progress=False)
    assert capsys.readouterr().err == ""


# Numbers that are not finite ------------------------------------------------------------------------------------------


def test_bad_samples_are_counted_and_never_stored():
    def half_bad(x):
        return jnp.where(x[0] > 0.3, jnp.nan, 50 - jnp.sum(x**2)), x[:2]

    result = run(half_bad, dqd.map_elites(0.3, batch_size=8))
    assert 0 < result.nonfinite < result.evaluations
    assert np.isfinite(result.elites.objective).all()
    assert (result.elites.solutions[:, 0] <= 0.3).all()


def test_a_bad_jacobian_restarts_from_an_elite_and_counts_once():
    def kink(x):  # finite everywhere; its slope is infinite at the start
        return 10 - jnp.sqrt(jnp.abs(x[0])), x[:2]

    result = run(kink, dqd.cma_mega(0.5, batch_size=9), iterations=1, x0=jnp.zeros(6))
    assert result.nonfinite == 1
    assert result.restart_reasons["jacobian not finite"] == 1
    np.testing.assert_array_equal(result.state.emitter.theta, np.zeros(6))  # the only elite there is
    assert result.evaluations == 9


def test_a_run_that_is_mostly_not_finite_stops_with_advice():
    with pytest.raises(dqd.NonFiniteError, match="evaluations were NaN or infinite"):
        run(lambda x: (jnp.sum(x) * jnp.nan, x[:2]), iterations=1000, chunk=50)


@pytest.mark.parametrize("emitter", [dqd.cma_mega(0.5, batch_size=9), dqd.omg_mega(0.5, batch_size=8)])
def test_a_run_without_any_finite_jacobian_stops_with_advice(emitter):
    def pole(x):  # finite everywhere, but not its gradient
        return jnp.sqrt(x[0] - x[0]) - jnp.sum(x**2), x[:2]

    with pytest.raises(dqd.NonFiniteError, match="jacobians was finite"):
        run(pole, emitter, iterations=300, chunk=50)


def test_a_few_finite_jacobians_are_enough_to_go_on():
    def half_bad(x):
        return -jnp.sum(x**2), jnp.array([x[0], x[1] + jnp.sqrt(jnp.where(x[0] > 0, x[1] - x[1], 1))])

    result = run(half_bad, dqd.omg_mega(0.5, batch_size=8), iterations=300, chunk=50)
    assert result.iterations == 300
    assert 0 < result.nonfinite < result.gradients


def test_a_run_too_short_to_be_stopped_warns_of_its_bad_numbers():
    with pytest.warns(UserWarning, match="evaluations were NaN or infinite"):
        run(lambda x: (jnp.sum(x) * jnp.nan, x[:2]), iterations=2)
    with pytest.warns(UserWarning, match="jacobians was finite"):
        run(lambda x: (-jnp.linalg.norm(x), x[:2]), iterations=2)


# Records --------------------------------------------------------------------------------------------------------------


def test_a_record_holds_the_elites_the_metrics_and_the_settings(tmp_path, result):
    read = record.read(result.save(tmp_path / "run"))
    np.testing.assert_array_equal(read.arrays["solutions"], result.elites.solutions)
    np.testing.assert_array_equal(read.arrays["cell"], result.elites.cell)
    assert read.metrics[-1]["qd_score"] == pytest.approx(result.qd_score)
    assert read.config["emitter"]["strategy"]["sigma"] == 0.5
    assert read.config["summary"]["gradients"] == 40


def test_out_writes_the_same(tmp_path, result):
    run(out=tmp_path / "run")
    written, saved = record.read(tmp_path / "run"), record.read(result.save(tmp_path / "saved"))
    assert written.metrics == saved.metrics
    assert written.config.keys() == saved.config.keys()
    for name in saved.arrays:
        np.testing.assert_array_equal(written.arrays[name], saved.arrays[name])


def test_a_record_that_cannot_be_written_leaves_nothing(tmp_path, result, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(record.durable, "write_file", full)
    with pytest.raises(OSError, match="no space"):
        result.save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_record_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config\.json and steps/ missing"):
        record.read(tmp_path)


# Algorithms by hand ---------------------------------------------------------------------------------------------------


def test_acceptance_thresholds_are_settings_of_the_archive():
    result = run(threshold=dqd.Threshold(0.1, 0.0))
    assert result.archive.threshold is not None
    stored = np.asarray(result.archive.objective)
    held = stored > -np.inf
    assert (np.asarray(result.archive.threshold)[held] <= stored[held]).all()
    assert result.qd_score > 0


def test_og_map_elites_steps_along_the_raw_gradient():
    """A step of 0.5 along the gradient -2 (x - s) of the sphere lands on its optimum."""
    domain = dqd.LinearProjection("sphere", 10)
    result = dqd.illuminate(
        domain, dqd.og_map_elites(0.5, 0.5, batch_size=4), domain.grid(10), x0=jnp.zeros(10), iterations=1
    )
    assert result.best == pytest.approx(100)
    np.testing.assert_allclose(result.best_solution(), 2.048, rtol=1e-6)


def test_omg_mega_never_descends_the_objective():
    jacobian = jnp.eye(3)[None].repeat(50, 0)
    offset = Branching(2.0).offset(jacobian, {"normal": jax.random.normal(jax.random.key(0), (50, 3))})
    assert (offset[:, 0] > 0).all()
    assert (offset[:, 1:] < 0).any()
    assert float(jnp.std(offset[:, 1:])) == pytest.approx(2.0, rel=0.2)  # sigma is a standard deviation


@pytest.mark.x64
@pytest.mark.parametrize("keep", [True, False])
def test_adam_is_the_authors_and_its_step_counter_survives_a_restart_if_so_set(keep):
    """theta += a M / (sqrt(V) + eps), a = eta sqrt(1 - b2^t) / (1 - b1^t); a restart zeroes M, V and maybe t."""
    emitter = Jitted(dqd.cma_mega_adam(0.1, 0.05, batch_size=7, keep_step_count=keep))
    strategy_tell, archive = Jitted(emitter.strategy).tell, Archive.empty(GRID, 4)
    state = emitter.init(np.arange(4.0), 2, None)
    archive, _ = jax.jit(Archive.add)(archive, np.ones((1, 4)), Evaluation(np.ones(1), np.zeros((1, 2))))
    theta, first, second, t = np.arange(4.0), 0.0, 0.0, 0
    for i in range(6):
        restart = i == 3
        noise = emitter.noise(jax.random.key(i), 4, 2)
        jacobian = np.random.default_rng(i).normal(size=(1, 3, 4))
        points = Points(np.asarray(state.theta)[None], np.ones(1, bool))
        state, proposal = emitter.ask(state, archive, points, Evaluation(np.ones(1), np.zeros((1, 2)), jacobian), noise)
        status, before = np.full(6, 0 if restart else 1), state
        result = AddResult(status, np.arange(6.0), np.zeros(6, int), np.zeros(6, bool))
        state = emitter.tell(state, archive, proposal.drawn, result)
        strategy = strategy_tell(before.strategy, proposal.drawn["coefficients"], np.arange(6)[::-1], 3)
        direction = np.asarray(strategy.mean) @ np.asarray(proposal.drawn["jacobian"])
        t += 1
        first, second = 0.9 * first + 0.1 * direction, 0.999 * second + 0.001 * direction**2
        theta = theta + 0.05 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * first / (np.sqrt(second) + 1e-8)
        if restart:
            theta, first, second, t = np.ones(4), 0.0, 0.0, t if keep else 0
        np.testing.assert_allclose(state.theta, theta, rtol=1e-4)  # optax adds eps after the correction of V


@pytest.mark.x64
def test_any_optax_optimiser_moves_theta_and_forgets_at_a_restart():
    """Momentum, by hand from what is handed out: v = 0.8 v + (mean of the parents - theta), theta += 0.3 v."""
    search = dqd.AskTell(dqd.cma_mega(0.5, 0.3, optax.sgd, momentum=0.8, batch_size=7), GRID, x0=np.arange(4.0))
    jacobian = np.random.default_rng(1).normal(size=(1, 3, 4))
    weights = np.log(3.5) - np.log([1, 2, 3])
    theta, velocity = np.arange(4.0), np.zeros(4)
    for i in range(8):
        np.testing.assert_allclose(search.ask_dqd()[0], theta, rtol=1e-12)
        search.tell_dqd([0.0], [[2.9, 2.9]], jacobian)
        branches, objective = search.ask(), np.random.default_rng(i).permutation(6) + 1.0
        if i == 4:  # nothing is accepted
            search.tell(-objective, np.full((6, 2), 2.9))
            theta, velocity = search.ask_dqd()[0], np.zeros(4)
            assert theta.tolist() in search.archive.elites.solutions.tolist()
            continue
        search.tell(objective, np.stack([np.linspace(-2.9, 2, 6), np.full(6, 0.5 * i - 2.9)], axis=1))  # new cells
        velocity = 0.8 * velocity + weights / weights.sum() @ branches[np.argsort(-objective)][:3] - theta
        theta = theta + 0.3 * velocity
    assert search.result().restarts == 1


@pytest.mark.parametrize(
    ("learning_rate", "optimizer", "arguments"),
    [
        (optax.constant_schedule(0.3), None, {}),
        (optax.linear_schedule(0.3, 0.3, 10), optax.adam, {"b1": 0.8}),
        pytest.param(0.3, optax.sgd, {"momentum": 0.8, "nesterov": True}, marks=pytest.mark.long),
        pytest.param(0.3, optax.rmsprop, {"centered": True}, marks=pytest.mark.long),
        (0.3, optax.adam, {"mu_dtype": "bfloat16"}),
    ],
)
def test_schedules_and_choices_of_an_optimiser_are_part_of_the_program(learning_rate, optimizer, arguments):
    result = run(emitter=dqd.cma_mega(0.5, learning_rate, optimizer, batch_size=7, **arguments), iterations=30)
    assert len(result.elites) > 5


def test_a_schedule_is_the_number_that_it_stands_for():
    constant, number = (
        run(emitter=dqd.cma_mega(0.5, rate, batch_size=7), iterations=30)
        for rate in (optax.constant_schedule(0.25), 0.25)
    )
    np.testing.assert_array_equal(constant.elites.solutions, number.elites.solutions)


def test_numbers_of_numpy_are_numbers():
    plain = run(emitter=dqd.cma_mega(0.5, 0.25, batch_size=7), iterations=5)
    numpys = dqd.cma_mega(np.float32(0.5), np.float64(0.25), batch_size=np.int64(7))
    np.testing.assert_array_equal(run(emitter=numpys, iterations=5).elites.solutions, plain.elites.solutions)


def test_an_iteration_without_progress_leaves_theta_at_an_elite_not_at_the_origin():
    x0 = jnp.full(6, 0.5)
    result = run(lambda x: (jnp.zeros(()) * x[0], jnp.zeros(2) * x[:2]), x0=x0, iterations=3)
    assert len(result.archive) == 1  # the first theta; nothing later is better
    np.testing.assert_array_equal(result.state.emitter.theta, x0)
    assert result.restart_reasons["no change in the archive"] + result.restart_reasons["flat values"] == 3


@pytest.mark.parametrize("far", [pytest.param(1e12, marks=pytest.mark.long), 3e38])
def test_a_huge_measure_lands_in_the_top_border_cell(far):
    grid = dqd.Grid([0, 0], [1, 1], [5, 5])
    with pytest.warns(UserWarning, match="outside the grid"):
        result = dqd.illuminate(
            lambda x: (x[0], jnp.array([far, -far])),
            dqd.map_elites(0.1, batch_size=4),
            grid,
            x0=jnp.zeros(2),
            iterations=1,
            progress=False,
        )
    assert result.elites.cell.tolist() == [20]


@pytest.mark.parametrize("domain", [dqd.LinearProjection("sphere"), dqd.Arm()], ids=["sphere", "arm"])
def test_a_finished_archive_of_full_size_is_true(domain):
    """Float32: objectives to 2e-3 of 100, measures to 0.3 of a range of thousands; cells equal unless near an edge."""
    sigma = 0.05 if isinstance(domain, dqd.Arm) else 10.0
    result = dqd.illuminate(
        domain, dqd.cma_mega(sigma), domain.grid(), x0=jnp.zeros(1000), iterations=500, progress=False
    )
    elites = result.elites
    again = jax.jit(domain.evaluate)(elites.solutions)
    np.testing.assert_allclose(again.objective, elites.objective, atol=2e-3)
    np.testing.assert_allclose(again.measures, elites.measures, atol=0.3)
    cells = np.asarray(domain.grid().index_of(jnp.asarray(elites.measures)))
    np.testing.assert_array_equal(cells, elites.cell)
    assert len(elites) > 300


@pytest.mark.x64
def test_a_start_of_python_numbers_has_the_full_precision():
    """A broadcast Python number is weakly typed: JAX would let it become float32."""
    x0 = jnp.broadcast_to(jnp.asarray(0.5), (3,))
    assert x0.weak_type
    assert Layout.of(x0)[1].dtype == jnp.float64
