"""Evaluations outside the compiled program: the same search as inside, and words for what does not fit."""

import functools
import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import dask
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import EMITTERS, PROBLEMS, RESOLUTION, assert_same, problem, search, start
from reliability import evaluators

import dqd
from dqd.workers import worker
from dqd.workers.executor import check_address, connect

pytestmark = pytest.mark.quick
GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])


def run(evaluator=evaluators.sphere, emitter=None, **options):
    emitter = emitter or dqd.map_elites(0.3, batch_size=6, initial_population=7)
    settings = {"x0": np.zeros(evaluators.N), "iterations": 3, "progress": False, "evaluator": evaluator}
    return dqd.illuminate(options.pop("score", None), emitter, GRID, **{**settings, **options})


@pytest.mark.x64
def test_hosted_equals_compiled_bit_for_bit():
    name = "og_map_elites"  # which wants only some of its points
    compiled = search(name, iterations=5, chunk=5)
    emitter, grid = EMITTERS[name](), PROBLEMS[0].grid(RESOLUTION)
    hosted = dqd.illuminate(
        None,
        emitter,
        grid,
        x0=start(),
        iterations=5,
        evaluator=problem(0),
        evaluation_chunk=emitter.batch_size,
        progress=False,
    )
    assert_same(hosted.state, compiled.state)


def test_chunks_have_a_fixed_size_and_keep_the_order():
    seen = []

    def evaluator(solutions):
        seen.append(solutions.copy())
        return evaluators.sphere(solutions)

    result = run(evaluator, iterations=1, evaluation_chunk=4)
    assert [len(solutions) for solutions in seen] == [4, 3, 4, 2]  # 7 before iteration 1, then 6
    elites = result.elites
    every = np.concatenate(seen)
    for solution, objective in zip(elites.solutions, elites.objective, strict=True):
        assert (every == solution).all(axis=1).any()
        assert objective == evaluators.sphere(solution[None])[0][0]


def test_a_domain_is_compiled_for_one_size_only():
    traced = []

    def score(x):
        traced.append(None)
        return -jnp.sum(x**2), x[:2]

    with ThreadPoolExecutor(1) as pool:
        result = run(None, score=score, executor=pool)  # batches of 7 and 6, in chunks of 4
    assert len(traced) == 2  # once to check it, once to compile it
    assert result.evaluations == 7 + 3 * 6


def test_a_function_that_returns_three_things_serves_gradients():
    def all_three(solutions):
        return evaluators.Sphere().evaluate_with_jacobian(solutions)

    emitter = dqd.cma_mega(0.5, batch_size=6)
    one, other = run(all_three, emitter), run(evaluators.Sphere(), emitter)
    np.testing.assert_array_equal(one.elites.solutions, other.elites.solutions)
    assert one.gradients == 3


def test_until_and_progress_come_after_every_iteration():
    seen = []
    result = run(iterations=50, until=lambda metrics: seen.append(metrics["iteration"]) or len(seen) == 4)
    assert (seen, result.iterations, result.stopped) == ([1, 2, 3, 4], 4, "until")


@pytest.mark.parametrize("evaluator", [evaluators.sphere, evaluators.Sphere()], ids=["function", "object"])
def test_a_run_goes_on_where_it_stopped(evaluator, tmp_path):
    emitter = dqd.cma_me(0.5, batch_size=6)
    whole = run(evaluator, emitter, iterations=6)
    run(evaluator, emitter, iterations=2, out=tmp_path / "run")
    resumed = run(evaluator, emitter, iterations=6, out=tmp_path / "run")
    assert_same(resumed.state, whole.state)
    np.testing.assert_array_equal(resumed.history["qd_score"], whole.history["qd_score"])


def test_a_run_that_goes_on_does_not_evaluate_its_initial_population_again(tmp_path):
    seen = []

    def evaluator(solutions):
        seen.extend(solutions)
        return evaluators.sphere(solutions)

    run(evaluator, iterations=1, out=tmp_path / "run")
    assert len(seen) == 7 + 6
    run(evaluator, iterations=2, out=tmp_path / "run")
    assert len(seen) == 7 + 6 + 6


def test_the_settings_of_a_run_name_its_evaluator(tmp_path):
    names = {}
    for evaluator in (evaluators.sphere, evaluators.Sphere(), dqd.Arm(evaluators.N)):
        run(evaluator, iterations=1, out=tmp_path / str(len(names)))
        config = json.loads((tmp_path / str(len(names)) / "config.json").read_text())
        names[len(names)] = config["domain"]["evaluator"]
    assert names[0] == "reliability.evaluators.sphere"
    assert names[1] == "reliability.evaluators.Sphere"
    assert names[2]["n"] == evaluators.N


def scaled(scale, solutions):
    objective, measures = evaluators.sphere(solutions)
    return scale * objective, measures


@dataclass
class Scaled:
    scale: float

    def __call__(self, solutions):
        return scaled(self.scale, solutions)


@pytest.mark.parametrize("make", [lambda scale: functools.partial(scaled, scale), Scaled], ids=["partial", "dataclass"])
def test_an_evaluator_of_another_setting_is_another_run(make, tmp_path):
    run(make(1.0), iterations=1, out=tmp_path / "run")
    with pytest.raises(ValueError, match=r"domain\.evaluator\..*: 1\.0 there, 2\.0 here"):
        run(make(2.0), iterations=2, out=tmp_path / "run")
    assert run(make(1.0), iterations=2, out=tmp_path / "run").iterations == 2


def test_another_size_of_chunks_is_another_run(tmp_path):
    run(iterations=1, out=tmp_path / "run")
    with pytest.raises(ValueError, match="evaluation_chunk"):
        run(iterations=2, out=tmp_path / "run", evaluation_chunk=3)


def test_a_worker_keeps_the_first_copy_of_an_evaluator_and_few_of_them():
    calls = []

    def copy(number):
        return lambda solutions: (calls.append(number), evaluators.sphere(solutions))[1]

    x = np.zeros((1, evaluators.N))
    for number in range(3):
        worker.evaluate_chunk("run", copy(number), x, False)
    assert calls == [0, 0, 0]
    for other in range(20):
        worker.evaluate_chunk(f"other {other}", copy(other), x, False)
    assert len(worker._kept) == worker.KEPT


MISTAKES = [
    ({"score": lambda x: (x.sum(), x[:2])}, ValueError, "score and evaluator: give one"),
    ({"evaluator": None}, TypeError, "score: expected a function"),
    ({"evaluator": 3}, TypeError, r"evaluator: expected a function of a batch \(b, n\)"),
    ({"evaluator": lambda x: x.sum(1)}, TypeError, "evaluator: expected it to return objective and measures"),
    ({"evaluator": lambda x: (x.sum(1), x)}, ValueError, r"evaluator: measures: expected \(7, 2\) = .*got \(7, 6\)"),
    ({"evaluator": lambda x: (x.sum(), x[:, :2])}, ValueError, r"evaluator: objective: expected \(7,\)"),
    ({"emitter": dqd.cma_mega(0.5)}, TypeError, "uses gradients; expected objective, measures and jacobian"),
    ({"seeds": [0, 1]}, ValueError, "seeds: .*one seed at a time"),
    ({"evaluation_chunk": 0}, ValueError, "evaluation_chunk: expected a whole number, at least 1, got 0"),
    ({"on_failure": "ignore"}, ValueError, 'on_failure: expected "raise" or "skip", got \'ignore\''),
    ({"timeout": 0.0}, ValueError, "timeout: expected seconds, above 0"),
    ({"timeout": 1.0}, ValueError, "timeout: .*in this process cannot be stopped; give an executor"),
    ({"executor": 3}, TypeError, "executor: expected a concurrent.futures.Executor.*got 3"),
    ({"executor": lambda: 3}, TypeError, "the function must return a concurrent.futures.Executor, got 3"),
    ({"executor": "tcp://10.1.2.3:8786"}, ValueError, "neither on this machine nor encrypted.*tls://10.1.2.3:8786"),
    ({"evaluator": None, "score": lambda x: (x.sum(), x[:2]), "timeout": 1.0}, ValueError, "give one of these as well"),
]


@pytest.mark.parametrize(("options", "kind", "words"), MISTAKES, ids=[words[:30] for _, _, words in MISTAKES])
def test_mistakes_are_explained(options, kind, words):
    with pytest.raises(kind, match=words):
        run(**options)


def test_a_pool_that_forks_is_refused():
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool,
        pytest.raises(ValueError, match=r"this pool forks.*get_context\('spawn'\)"),
    ):
        run(executor=pool)


def test_an_evaluator_that_cannot_travel_is_named():
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(TypeError, match=r"evaluator: it cannot be sent to another process.*top of a module"),
    ):
        run(lambda x: evaluators.sphere(x), executor=pool)


@pytest.mark.parametrize(
    ("address", "fine"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("tcp://localhost:8786", True),
        ("127.0.0.1:8786", True),
        ("tcp://[::1]:8786", True),
        ("tls://cluster.example.org:8786", True),
        ("tcp://cluster.example.org:8786", False),
        ("192.168.0.7:8786", False),
        ("tcp://127.0.0.1.example.org:8786", False),
        ("tcp://localhost@example.org:8786", False),
        ("ucx://127.0.0.1:8786", False),
    ],
)
def test_unencrypted_only_to_this_machine(address, fine):
    if fine:
        check_address(address, insecure=False)
        return
    with pytest.raises(ValueError, match="executor:"):
        check_address(address, insecure=False)


def test_insecure_is_a_choice():
    check_address("tcp://cluster.example.org:8786", insecure=True)


def test_an_encrypted_cluster_without_a_certificate_is_explained():
    with pytest.raises(ConnectionError, match=r"no certificate; set one in Dask's configuration"):
        connect("tls://127.0.0.1:1")


def test_a_certificate_that_cannot_be_read_is_named_as_the_cause(tmp_path):
    files = {name: str(tmp_path / "absent.pem") for name in ("cert", "key")}
    with (
        dask.config.set({"distributed.comm.tls.ca-file": files["cert"], "distributed.comm.tls.client": files}),
        pytest.raises(ConnectionError, match=r"cannot be read \(.*No such file.*\); set one in Dask's configuration"),
    ):
        connect("tls://127.0.0.1:1")


def test_a_program_without_a_certificate_ends():
    script = "from dqd.workers.executor import connect; connect('tls://127.0.0.1:1')"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "has no certificate" in answer.stderr
