"""Functions in PyTorch: the same numbers as in JAX, whatever they are given, and words for what goes wrong."""

import copy
import json
import multiprocessing
import pickle
import re
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.interop import torch_arrays
from dqd.workers.batches import Evaluations

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

LATENT, K = 6, 2
GRID = dqd.Grid([-0.6, -0.6], [0.6, 0.6], [8, 8])
MEGA = dqd.cma_mega(0.5, batch_size=9)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Torch's threads spin while others have work to do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def mlp(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(LATENT, 12), nn.Tanh(), nn.Linear(12, 3), nn.Tanh())


decoder = mlp()


def score(z):
    out = decoder(z)
    return -(z**2).mean() + out[0], out[1:]


def batch_score(z):
    out = decoder(z)
    return -(z**2).mean(dim=1) + out[:, 0], out[:, 1:]


def in_jax(z):
    first, second = ([jnp.asarray(part.detach().numpy()) for part in decoder[i].parameters()] for i in (0, 2))
    out = jnp.tanh(second[0] @ jnp.tanh(first[0] @ z + first[1]) + second[1])
    return -(z**2).mean() + out[0], out[1:]


def solutions(rows=5):
    return np.random.default_rng(0).normal(size=(rows, LATENT)).astype(np.float32)


def illuminate(evaluator, emitter=MEGA, **options):
    return dqd.illuminate(
        evaluator, emitter, GRID, **{"x0": np.zeros(LATENT), "iterations": 12, "progress": False, **options}
    )


def assert_close(answer, expected, atol=1e-5):
    for one, other in zip(answer, expected, strict=True):
        np.testing.assert_allclose(torch.as_tensor(one).detach(), np.asarray(other), atol=atol, rtol=0)


def reference(x):
    """By JAX."""
    jacobian = jax.vmap(jax.jacrev(lambda z: jnp.hstack(in_jax(z))))(x)
    return (*jax.vmap(in_jax)(x), jacobian)


# The same numbers as in JAX -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"chunk": 2}], ids=["whole", "chunks"])
@pytest.mark.parametrize(("function", "batched"), [(score, False), (batch_score, True)], ids=["one", "batch"])
def test_values_and_jacobians_equal_those_of_jax(function, batched, options):
    evaluator, x = dqd.torch_evaluator(function, batched=batched, **options), solutions()
    assert_close(evaluator.evaluate_with_jacobian(x), reference(x))
    assert_close(evaluator.evaluate(x), reference(x)[:2])
    assert not any(tensor.requires_grad for tensor in evaluator.evaluate_with_jacobian(x))


def test_a_map_made_with_torch_is_like_one_made_with_jax():
    ours, theirs = dqd.torch_evaluator(score), dqd.evaluator(jax.jit(jax.vmap(in_jax)), jax.jit(reference))
    for seed in range(3):
        found, expected = (illuminate(each, iterations=40, seed=seed) for each in (ours, theirs))
        assert found.coverage == pytest.approx(expected.coverage, abs=8)
        assert found.best == pytest.approx(expected.best, abs=0.02)
        assert found.coverage > 30


def test_check_jacobian_takes_it():
    assert dqd.check_jacobian(dqd.torch_evaluator(score), solutions(1)[0])
    module = nn.Linear(3, 2)
    evaluator = dqd.torch_evaluator(lambda model: (-model.weight.square().sum(), model.bias), module=module)
    assert dqd.check_jacobian(evaluator, evaluator.x0)


def test_autocast_is_respected():
    seen = []

    def noting(z):
        out = decoder(z)
        seen.append(out.dtype)
        return out[:, 0].float(), out[:, 1:]

    with torch.autocast("cpu", dtype=torch.bfloat16):
        illuminate(dqd.torch_evaluator(noting, batched=True), iterations=2)
    assert set(seen) == {torch.bfloat16}


@pytest.mark.parametrize("batched", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_compiled_function_gives_the_same(batched):
    torch._dynamo.reset()
    compiled = torch.compile(batch_score if batched else score, backend="aot_eager")
    evaluator, x = dqd.torch_evaluator(compiled, batched=batched), solutions()
    for _ in range(2):
        assert_close(evaluator.evaluate_with_jacobian(x), reference(x))
    assert_close(evaluator.evaluate(x), reference(x)[:2])


def test_the_precision_of_the_model_is_that_of_its_solutions():
    precise = mlp().double()

    def scored(z):
        assert z.dtype == torch.float64
        out = precise(z)
        return out[0], out[1:]

    result = illuminate(dqd.torch_evaluator(scored), iterations=3)
    assert result.elites.solutions.dtype == np.float32


# What the function is given -------------------------------------------------------------------------------------------


class Policy(nn.Module):
    """Its parameters are not in the order of their names."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.zeroth, self.first = nn.Linear(1, 2), nn.Linear(2, 1, bias=False)
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
        self.register_buffer("counted", torch.zeros(1))

    def forward(self, x):
        return torch.tanh(self.first(torch.tanh(self.zeroth(x)))) * self.frozen


INPUTS = torch.linspace(-1, 1, 10).reshape(10, 1)
NAMES = ["zeroth.weight", "zeroth.bias", "first.weight"]


def behaviour(model):
    answer = model(INPUTS)
    return -model.zeroth.weight.square().mean() - answer.square().mean(), answer.reshape(2, 5).mean(dim=1)


def test_a_module_is_searched_by_its_parameters_in_their_order():
    policy = Policy()
    evaluator = dqd.torch_evaluator(behaviour, module=policy)
    assert list(evaluator.x0) == NAMES
    flat = torch.cat([policy.get_parameter(name).detach().reshape(-1) for name in NAMES])
    x = torch.stack([flat, flat + 1])
    objective, measures, jacobian = evaluator.evaluate_with_jacobian(x)
    torch.testing.assert_close((objective[0], measures[0]), behaviour(policy))
    policy.load_state_dict(evaluator.unflatten(x[1]))
    torch.testing.assert_close((objective[1], measures[1]), behaviour(policy))
    behaviour(policy)[0].backward()
    gradient = torch.cat([policy.get_parameter(name).grad.reshape(-1) for name in NAMES])
    torch.testing.assert_close(jacobian[1, 0], gradient)
    assert jacobian.shape == (2, 1 + K, flat.numel())


@pytest.mark.parametrize("start", [lambda x0: None, dict, lambda x0: {name: x0[name] for name in sorted(x0)}])
def test_the_elites_of_a_module_are_state_dicts_whatever_order_they_started_in(start):
    policy = Policy()
    evaluator = dqd.torch_evaluator(behaviour, module=policy)
    result = illuminate(evaluator, x0=start(evaluator.x0), initial_sigma=0.5, iterations=5)
    best = result.best_solution()
    assert list(best) == NAMES
    policy.load_state_dict(evaluator.unflatten(best))
    assert float(behaviour(policy)[0].detach()) == pytest.approx(result.best, abs=1e-5)


def test_tied_weights_stay_tied():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    evaluator = dqd.torch_evaluator(lambda net: (net(torch.ones(2)).sum(), net[1].weight[0]), module=model)
    x, other = solutions(3)[:, :4], copy.deepcopy(model)
    other.load_state_dict(evaluator.unflatten(x[0]))
    assert other[1].weight.reshape(-1).tolist() == x[0].tolist()
    assert float(evaluator.evaluate(x)[0][0]) == pytest.approx(float(other(torch.ones(2)).sum().detach()))


def test_named_tensors_keep_their_order_and_shapes():
    start = {"b": torch.zeros(2, 2), "a": torch.ones(()), "c": torch.full((3,), 2.0)}

    def scored(parts):
        assert [(name, tuple(part.shape)) for name, part in parts.items()] == [("b", (2, 2)), ("a", ()), ("c", (3,))]
        return -parts["c"].square().sum() * parts["a"], parts["b"][0]

    evaluator = dqd.torch_evaluator(scored, parameters=start)
    jacobian = evaluator.evaluate_with_jacobian(np.array([[0, 0, 0, 0, 1, 2, 2, 2]], np.float32))[2]
    assert jacobian[0].tolist() == [[0, 0, 0, 0, -12, -4, -4, -4], [1, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(illuminate(evaluator, x0=None, iterations=0).state.x0, [0, 0, 0, 0, 1, 2, 2, 2])
    assert evaluator.unflatten(np.arange(8.0))["a"] == 4


def test_batches_of_named_tensors():
    def scored(parts):
        return -(parts["w"] ** 2).sum(dim=(1, 2)), parts["w"][:, 0]

    evaluator = dqd.torch_evaluator(scored, batched=True, parameters={"w": torch.zeros(3, 2)})
    assert_close(evaluator.evaluate(solutions(4)), (-(solutions(4) ** 2).sum(axis=1), solutions(4)[:, :2]))


# In every kind of search ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("emitter", [MEGA, dqd.og_map_elites(0.3, 0.1, batch_size=4, initial_population=5)])
def test_a_loop_of_ones_own_finds_the_same(emitter):
    evaluator = dqd.torch_evaluator(score)
    search = dqd.AskTell(emitter, GRID, x0=torch.zeros(LATENT))
    while search.iteration < 12:
        points = search.ask_dqd()
        assert isinstance(points, torch.Tensor)
        search.tell_dqd(*evaluator.evaluate_with_jacobian(points))
        search.tell(*evaluator.evaluate(search.ask()))
    expected = illuminate(evaluator, emitter)
    np.testing.assert_array_equal(search.archive.elites.solutions, expected.elites.solutions)


def test_solutions_of_a_loop_have_the_structure_of_x0():
    search = dqd.AskTell(MEGA, GRID, x0={"b": torch.ones(2), "a": torch.zeros(4)})
    (point,) = search.ask_dqd()
    assert {name: part.tolist() for name, part in search.unflatten(point).items()} == {"a": [0] * 4, "b": [1] * 2}
    point += 1  # ours to overwrite
    assert search.ask_dqd()[0, 0] == 0


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "on one device"])
def test_what_is_not_feasible_stays_out_and_fields_are_kept(shared, monkeypatch):
    """As with a score in JAX, in one chunk and in several, compiled and in a loop of one's own."""
    if shared:
        monkeypatch.setattr(torch_arrays, "CPU", 0)

    def fenced(z):
        return *score(z), z[0] > 0, {"energy": z.square().sum()}

    for fields in ({}, {"energy": ()}):
        found = illuminate(dqd.torch_evaluator(fenced, chunk=4), fields=fields)
        elites = found.elites
        assert found.infeasible > 0
        assert len(elites.solutions) > 3
        assert (elites.solutions[:, 0] > 0).all()
    np.testing.assert_allclose(elites.fields["energy"], (elites.solutions**2).sum(1), rtol=1e-5)

    search, evaluator = dqd.AskTell(MEGA, GRID, x0=torch.zeros(LATENT)), dqd.torch_evaluator(fenced)
    while search.iteration < 12:
        search.tell_dqd(evaluator.evaluate_with_jacobian(search.ask_dqd()))
        search.tell(evaluator.evaluate(search.ask()))
    assert search.result().infeasible == found.infeasible


def test_a_run_is_resumed_and_names_its_function(tmp_path):
    whole = illuminate(dqd.torch_evaluator(score), out=tmp_path / "whole")
    for iterations in (5, 12):
        resumed = illuminate(dqd.torch_evaluator(score), iterations=iterations, out=tmp_path / "run")
    np.testing.assert_array_equal(resumed.elites.solutions, whole.elites.solutions)
    told = json.loads((tmp_path / "run" / "config.json").read_text())["domain"]["evaluator"]
    assert told["function"].endswith("test_torch.score")
    assert told["type"] == "TorchEvaluator"


def test_a_run_does_not_go_on_with_other_weights(tmp_path):
    def scored(seed):
        model = mlp(seed)
        return dqd.torch_evaluator(lambda z: (model(z)[0], model(z)[1:]))

    illuminate(scored(0), iterations=2, out=tmp_path / "run")
    illuminate(scored(0), iterations=3, out=tmp_path / "run")
    with pytest.raises(ValueError, match="weights"):
        illuminate(scored(1), iterations=4, out=tmp_path / "run")


def test_weights_that_are_searched_may_differ():
    policies = Policy(), Policy()
    with torch.no_grad():
        policies[1].zeroth.weight.add_(1)
    one, other = (dqd.torch_evaluator(behaviour, module=policy).weights for policy in policies)
    assert one == other
    with torch.no_grad():
        policies[1].frozen.add_(1)
    assert dqd.torch_evaluator(behaviour, module=policies[1]).weights != one


def test_threads_do_not_meet_in_a_module():
    def slow(model):
        before = model.zeroth.weight.sum()
        time.sleep(0.002)
        return before - model.zeroth.weight.sum(), model.zeroth.bias

    evaluator = dqd.torch_evaluator(slow, module=Policy())
    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(evaluator.evaluate, solutions(40)[:, None])
    assert {float(objective) for objective, _ in answers} == {0}


def test_nothing_is_evaluated_to_nothing():
    evaluator, none = dqd.torch_evaluator(score), np.zeros((0, LATENT), np.float32)
    assert [len(part) for part in (*evaluator.evaluate(none), *evaluator.evaluate_with_jacobian(none))] == [0] * 5


def test_it_travels():
    evaluator, x = dqd.torch_evaluator(behaviour, module=Policy()), solutions(2)
    evaluator.evaluate(x)
    assert_close(pickle.loads(pickle.dumps(evaluator)).evaluate(x), evaluator.evaluate(x))


def test_on_one_device_arrays_pass_without_a_copy(monkeypatch):
    """As on a GPU, here with the CPU that both know."""
    expected = illuminate(dqd.torch_evaluator(score))
    taken, given = [], []
    from_dlpack, to_jax = torch.from_dlpack, jax.dlpack.from_dlpack
    monkeypatch.setattr(torch_arrays, "CPU", 0)
    monkeypatch.setattr(torch, "from_dlpack", lambda array: taken.append(array) or from_dlpack(array))
    monkeypatch.setattr(jax.dlpack, "from_dlpack", lambda array: given.append(array) or to_jax(array))
    found = illuminate(dqd.torch_evaluator(score))
    assert len(taken) == 2 * 12
    assert len(given) == 5 * 12
    np.testing.assert_allclose(found.elites.solutions, expected.elites.solutions, atol=1e-4)
    search, evaluator = dqd.AskTell(MEGA, GRID, x0=torch.zeros(LATENT)), dqd.torch_evaluator(score)
    search.tell_dqd(*evaluator.evaluate_with_jacobian(search.ask_dqd()))
    with pytest.raises(ValueError, match="tell: measures"):
        search.tell(torch.zeros(8), torch.zeros(8, 3))
    search.tell(*evaluator.evaluate(search.ask()))
    assert search.iteration == 1


def test_on_one_device_too_a_solution_that_fails_costs_itself_alone(monkeypatch):
    monkeypatch.setattr(torch_arrays, "CPU", 0)

    def picky(z):
        if (z[:, 0] > 0).any():
            raise RuntimeError("too large")
        return z.sum(dim=1), z[:, :2]

    evaluations = Evaluations(dqd.torch_evaluator(picky, batched=True), dqd.Workers(on_failure="skip"), K, None)
    with pytest.warns(UserWarning, match="too large"):
        found = evaluations.evaluate(jnp.array([[-1.0, 2.0], [1.0, 2.0]]), 1, "solutions")
    np.testing.assert_array_equal(found.objective, [1, np.nan])


# What goes wrong ------------------------------------------------------------------------------------------------------


class Dropping(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(LATENT, 3), *layers)

    def score(self, z):
        out = self.layers(z)
        return out[..., 0], out[..., 1:]


def through(path):
    """A score with a mistake on the way from the solution."""
    return lambda z: (path(z), z[:2])


def clamped(z):
    z.clamp_(0, 1)
    return z.sum(), z[:2]


def without_gradients(z):
    with torch.no_grad():
        return score(z)


dropping, normalising = Dropping(nn.Dropout(0.5)), Dropping(nn.BatchNorm1d(3))
one = dqd.torch_evaluator
MISTAKES = [
    (lambda: one(3), ["function", "int"]),
    (lambda: one(score, chunk=0), ["chunk", "at least 1", "0"]),
    (lambda: one(score, module=decoder, batched=True), ["module", "one solution", "batched=True"]),
    (lambda: one(score, module=decoder, parameters={}), ["module", "parameters as well"]),
    (lambda: one(score, module=3), ["module", "torch.nn.Module", "int"]),
    (lambda: one(score, module=mlp().requires_grad_(False)), ["module", "requires_grad_(True)"]),
    (lambda: one(score, parameters=[1]), ["parameters", "named tensors", "list"]),
    (lambda: one(score, parameters={"a": torch.zeros(2, dtype=int)}), ["parameters", "a", "torch.int64"]),
    # Modes
    (lambda: illuminate(one(dropping.score)), ["Dropping is in train mode", "Dropout (layers.1)", "Dropping.eval()"]),
    (lambda: illuminate(one(lambda z: dropping.score(z))), ["dropping", "Dropout", "dropping.eval()"]),
    (lambda: illuminate(one(normalising.score, batched=True)), ["BatchNorm1d", "other solutions"]),
    (lambda: illuminate(one(partial(lambda net, z: net.score(z), dropping))), ["argument 0", "train mode"]),
    (lambda: one(behaviour, module=dropping).evaluate(solutions()), ["module is in train mode", "module.eval()"]),
    # Gradients that are lost
    (lambda: illuminate(one(through(lambda z: z.sum().detach()))), ["the objective", "detach()"]),
    (lambda: illuminate(one(lambda z: (z.sum(), z[:2].detach()))), ["the measures", "detach()"]),
    (lambda: illuminate(one(lambda z: (z.sum(), [z[0], z[1].detach()]))), ["measure 1", "not tied"]),
    (lambda: illuminate(one(lambda z: (z.sum(), torch.stack([decoder(z.detach())[0], z[1]])))), ["measure 0"]),
    (lambda: illuminate(one(without_gradients)), ["the objective", "torch.no_grad()"]),
    (lambda: illuminate(one(through(lambda z: z.sum().item()))), ["the objective", ".item()"]),
    (lambda: illuminate(one(through(lambda z: torch.tensor(np.sum(z.numpy()))))), ["NumPy", "tied"]),
    (lambda: illuminate(one(through(lambda z: (z > 0).float().mean()))), ["the objective", "comparison"]),
    (lambda: illuminate(one(lambda z: (z[:, 0], z[:, :2].detach()), batched=True)), ["the measures"]),
    # Solutions that are overwritten
    (lambda: illuminate(one(clamped)), ["overwrites", "clamp instead of clamp_"]),
    (lambda: one(clamped).evaluate(solutions()), ["overwrites", "x.clone()"]),
    # Shapes
    (lambda: illuminate(one(lambda z: z.sum())), ["return objective, measures", "Tensor"]),
    (lambda: illuminate(one(lambda z: (z[:1], z[:2]))), ["objective", "one number, shape ()", "(1,)", "batched=True"]),
    (lambda: illuminate(one(lambda z: (z[0], z[1]))), ["measures", "(k,)", "()"]),
    (lambda: illuminate(one(lambda z: (z.sum(), z[:2]), batched=True)), ["objective", "(1,) for 1 solutions", "()"]),
    (lambda: illuminate(one(lambda z: (z[0], z[:3]))), ["measures", "(1, 2)", "(1, 3)", "an axis for each measure"]),
    (lambda: illuminate(one(lambda z: (z[0], z[:2], z[0] > 0, z[1]))), ["objective, measures", "4 things"]),
    (lambda: illuminate(one(lambda z: (z[0], z[:2], z[0]))), ["feasible", "booleans", "torch.float32"]),
    (lambda: illuminate(one(lambda z: (z[0], z[:2], z > 0))), ["feasible", "one boolean", "(6,)"]),
    # Where to start
    (lambda: illuminate(one(score), x0={"a": torch.zeros(6)}), ["x0", "parameters=x0"]),
    (lambda: illuminate(one(behaviour, module=Policy()), x0={"a": 0}), ["x0", "zeroth.weight", "['a']"]),
    (lambda: illuminate(one(behaviour, module=Policy()), x0=np.zeros(3)), ["x0", "all 6 numbers"]),
    (lambda: one(behaviour, module=Policy()).evaluate(np.zeros((2, 5))), ["6 numbers", "got 5", "x0=evaluator.x0"]),
    (lambda: one(score, parameters={"a": torch.zeros(2)}).start({"a": torch.zeros(3)}), ["a", "(2,)", "(3,)"]),
]


@pytest.mark.parametrize(("mistake", "words"), MISTAKES, ids=range(len(MISTAKES)))
@pytest.mark.filterwarnings("ignore:.*vmap cannot map", "ignore:There is a performance drop")
def test_a_mistake_is_explained(mistake, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        mistake()
    for word in words:
        assert word in str(raised.value), str(raised.value)


def test_a_gradient_of_zero_is_one():
    result = illuminate(one(lambda z: (z.sum(), [torch.round(z[0]), 0 * z.sum()])), iterations=2)
    assert result.gradients == 2


def test_without_gradients_nothing_need_be_tied():
    assert_close(one(without_gradients).evaluate(solutions()), reference(solutions())[:2])


@pytest.mark.parametrize(
    "function",
    [
        lambda z: (z.sum() if z.sum() > 0 else -z.sum(), z[:2]),
        lambda z: (torch.zeros(LATENT).add_(z).sum(), z[:2]),
    ],
    ids=["if", "in place"],
)
def test_what_vmap_cannot_do_is_done_one_by_one(function):
    evaluator, x = one(function), torch.from_numpy(solutions())
    with pytest.warns(UserWarning, match="vmap cannot map .*one by one"):
        found = evaluator.evaluate(x)
    assert_close(found, [torch.stack(part) for part in zip(*map(function, x), strict=True)])
    assert evaluator.evaluate_with_jacobian(x)[2].shape == (5, 1 + K, LATENT)  # and is said once


def test_chance_is_said_and_allowed():
    evaluator = one(lambda z: (functional.dropout(z).sum(), z[:2]))
    with pytest.warns(UserWarning, match=r"draws random numbers.*eval\(\)"):
        objective, _ = evaluator.evaluate(np.ones((40, LATENT), np.float32))
    assert len(objective.unique()) > 1


def test_too_little_memory_is_said_with_a_way_out():
    def hungry(z):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    for batched in (True, False):
        with pytest.raises(MemoryError, match=r"8 solutions in one forward.*chunk=4.*PREALLOCATE"):
            one(hungry, batched=batched, chunk=8).evaluate(solutions(20))


def test_a_function_that_fails_says_so_itself():
    with pytest.raises(dqd.EvaluationError, match=r"IndexError: Dim.*given one solution; .*batched=True"):
        illuminate(one(lambda z: (z.sum(dim=1), z[:2])))
    with pytest.raises(dqd.EvaluationError, match=r"RuntimeError.*given a whole batch; .*one solution at a time"):
        illuminate(one(lambda z: (z @ torch.ones(3), z[:2]), batched=True))


def test_under_inference_mode_there_are_gradients_all_the_same():
    evaluator = one(score)
    with torch.inference_mode():
        given = torch.from_numpy(solutions())
        assert_close(evaluator.evaluate_with_jacobian(given), reference(solutions()))
        assert_close(evaluator.evaluate(given), reference(solutions())[:2])


def test_without_torch_one_is_told_what_to_do(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"dqd\[torch\]"):
        one(score)


def test_the_code_of_its_page_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "pytorch.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks).replace("iterations=300", "iterations=3").replace("iteration < 10", "iteration < 3"), {})
    assert Path("pytorch.png").exists()


@pytest.mark.long
def test_workers_evaluate_torch():
    """Behind `long`: every worker imports torch."""
    where = dqd.Workers(lambda: ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")), rows=9)
    evaluator = dqd.torch_evaluator(_in_a_worker)
    found, expected = (illuminate(evaluator, iterations=3, where=place) for place in (where, None))
    np.testing.assert_allclose(found.elites.solutions, expected.elites.solutions, atol=1e-5)


def _in_a_worker(z):
    return -(z**2).sum(), z[:2]
