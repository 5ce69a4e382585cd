"""What does a search around a PyTorch model cost beyond the model itself, and beside the same function in JAX?

    python benchmarks/torch_loop.py [--device cuda] [--out benchmarks/results/torch-loop-cpu.json]

CMA-MEGA, 35 branches and a point with its jacobian per iteration, 100 x 100 cells. All contestants take turns in one
process. `by-hand` is the same loop around forwards and backwards written out for this very function: what
`dqd.torch_evaluator` adds is its time less that, round by round. `model` is these forwards and backwards without any
search, `loop` a search whose evaluations cost nothing. `shared_on_gpu` says whether torch and JAX shared their arrays.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch needs memory, too

import jax
import jax.numpy as jnp
import numpy as np
import torch

import dqd
from device import describe_device, source_digest, today
from dqd.archives.archive import Archive
from dqd.domains.function import FunctionDomain
from dqd.runners.compiled import Compiled
from dqd.runners.hosted import Hosted
from dqd.runners.hosted import _iterate as iterate
from dqd.search.search import Search
from dqd.search.walk import Walk

MODELS = {"small": (32, 64, 256), "large": (256, 1024, 1024)}  # numbers in a solution, hidden units, outputs
GRID = dqd.Grid([-0.5, -0.5], [0.5, 0.5], [100, 100])
EMITTER = dqd.cma_mega(sigma=0.5)
ADDED = ("one", "batch", "ask-tell")  # contestants around the torch model
WARM_UP, TURN = 3, 10  # turns; iterations
COMPILED_TURN = 250  # a launch of full length, for which a GPU has a program of its own


class Model:
    """A perceptron, as a function of one solution or of a batch, in torch and in JAX."""

    def __init__(self, sizes: tuple[int, int, int], device: str) -> None:
        torch.manual_seed(0)
        inner, outer = torch.nn.Linear(*sizes[:2]), torch.nn.Linear(*sizes[1:])
        self.n, self.device = sizes[0], device
        self.network = torch.nn.Sequential(inner, torch.nn.Tanh(), outer).to(device)
        self.weights = [jnp.asarray(part.detach().cpu().numpy()) for part in self.network.parameters()]

    def one(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.network(z)
        return -z.square().mean() + out[2:].mean(), out[:2]

    def batch(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.network(z)
        return -z.square().mean(dim=1) + out[:, 2:].mean(dim=1), out[:, :2]

    def in_jax(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        first, first_bias, second, second_bias = self.weights
        out = second @ jnp.tanh(first @ z + first_bias) + second_bias
        return -jnp.mean(z**2) + out[2:].mean(), out[:2]


class ByHand:
    """Forward and backward written out. It takes and returns what an evaluator does."""

    def __init__(self, function: Callable, device: str) -> None:
        self.function, self.device = function, device

    def evaluate(self, solutions: np.ndarray) -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            return self.function(torch.from_numpy(solutions).to(self.device))

    def evaluate_with_jacobian(self, solutions: np.ndarray) -> tuple[torch.Tensor, ...]:
        points = torch.from_numpy(solutions).to(self.device).requires_grad_()
        objective, measures = self.function(points)
        columns = (objective, *measures.unbind(1))
        rows = [torch.autograd.grad(column.sum(), points, retain_graph=True)[0] for column in columns]
        return objective, measures, torch.stack(rows, dim=1)


class Alone:
    """The evaluations of an iteration, and no search."""

    def __init__(self, evaluator: ByHand, n: int) -> None:
        self.evaluator, self.rows = evaluator, np.random.default_rng(0).normal(size=(36, n)).astype(np.float32)

    def __call__(self, iterations: int) -> None:
        for _ in range(iterations):
            answers = self.evaluator.evaluate_with_jacobian(self.rows[:1]), self.evaluator.evaluate(self.rows[1:])
            [tensor.detach().cpu() for answer in answers for tensor in answer]


class Free:
    """An evaluator that costs nothing: it has all its answers ready."""

    def __init__(self, n: int) -> None:
        draw, b = np.random.default_rng(0), EMITTER.batch_size
        shapes = [(b,), (b, 2), (1,), (1, 2), (1, 3, n)]
        self.answers = [[draw.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(64)]
        self.asked = 0

    def evaluate(self, solutions: np.ndarray) -> list[np.ndarray]:
        self.asked += 1
        return self.answers[self.asked % 64][:2]

    def evaluate_with_jacobian(self, solutions: np.ndarray) -> list[np.ndarray]:
        return self.answers[self.asked % 64][2:]


class Hosting:
    """`dqd.illuminate` with an evaluator, iteration by iteration."""

    def __init__(self, evaluator: dqd.Evaluator, n: int) -> None:
        runner = Hosted.of(Search(EMITTER), evaluator, 2, dqd.Workers(), None)
        self.walk = Walk(runner.search, runner.start(*beginning(n)))
        self.evaluations = runner.evaluations

    def __call__(self, iterations: int) -> None:
        for _ in range(iterations):
            iterate(self.walk, self.evaluations)
        jax.block_until_ready(self.walk._state)


class Compiling:
    """`dqd.illuminate` with the same function in JAX."""

    def __init__(self, function: Callable, n: int) -> None:
        self.runner = Compiled(Search(EMITTER), FunctionDomain(function), False)
        self.state = self.runner.start(*beginning(n))

    def __call__(self, iterations: int) -> None:
        self.state, rows, _ = self.runner.launch(self.state, iterations)
        jax.tree.map(np.asarray, rows)


def beginning(n: int) -> tuple:
    return Archive.empty(GRID, n), jnp.zeros(n), jnp.asarray(0)


class OwnLoop:
    """The loop that a user of torch writes."""

    def __init__(self, evaluator: dqd.Evaluator, x0: torch.Tensor) -> None:
        self.evaluator, self.search = evaluator, dqd.AskTell(EMITTER, GRID, x0=x0)

    def __call__(self, iterations: int) -> None:
        end = self.search.iteration + iterations
        while self.search.iteration < end:
            self.search.tell_dqd(*self.evaluator.evaluate_with_jacobian(self.search.ask_dqd()))
            self.search.tell(*self.evaluator.evaluate(self.search.ask()))
        jax.block_until_ready(self.search._walk._state)


def contestants(model: Model) -> dict[str, Callable[[int], None]]:
    one, batch = dqd.torch_evaluator(model.one), dqd.torch_evaluator(model.batch, batched=True)
    one_by_hand, batch_by_hand = ByHand(torch.func.vmap(model.one), model.device), ByHand(model.batch, model.device)

    return {
        "loop": Hosting(Free(model.n), model.n),
        "model-one": Alone(one_by_hand, model.n),
        "by-hand-one": Hosting(one_by_hand, model.n),
        "one": Hosting(one, model.n),
        "model-batch": Alone(batch_by_hand, model.n),
        "by-hand-batch": Hosting(batch_by_hand, model.n),
        "batch": Hosting(batch, model.n),
        "ask-tell": OwnLoop(batch, torch.zeros(model.n, device=model.device)),
        "jax-hosted": Hosting(FunctionDomain(model.in_jax), model.n),
        "jax-compiled": Compiling(model.in_jax, model.n),
    }


def measure(model: Model, rounds: int) -> dict:
    """Milliseconds per iteration, by the clock and of the processor, one number per round.

    Turns are short, so that what else the machine does meets all contestants alike.
    """
    running = contestants(model)
    turns = {name: COMPILED_TURN if name == "jax-compiled" else TURN for name in running}
    for name, advance in running.items():
        for _ in range(WARM_UP):
            advance(turns[name])
    costs: dict = {name: {"ms": [], "cpu_ms": []} for name in running}
    names = list(running)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            begin, used = time.perf_counter(), time.process_time()
            running[name](turns[name])
            costs[name]["ms"].append(1000 * (time.perf_counter() - begin) / turns[name])
            costs[name]["cpu_ms"].append(1000 * (time.process_time() - used) / turns[name])
    return costs


def added(costs: dict, name: str, kind: str) -> float:
    """What `torch_evaluator` costs beyond the same written out, median of the rounds."""
    by_hand = costs["by-hand-one" if name == "one" else "by-hand-batch"][kind]
    return median(ours - theirs for ours, theirs in zip(costs[name][kind], by_hand, strict=True))


def summary(costs: dict) -> dict:
    """Of the rounds, a tenth, a half and nine tenths took less."""
    return {
        name: {
            kind: [round(float(part), 4) for part in np.quantile(times, (0.1, 0.5, 0.9))]
            for kind, times in cost.items()
        }
        for name, cost in costs.items()
    }


def table(models: dict) -> str:
    lines = ["| model | contestant | ms | CPU ms | added ms | added CPU ms |", "|---|---|---:|---:|---:|---:|"]
    for model, costs in models.items():
        for name, cost in costs.items():
            times = [f"{median(cost[kind]):.2f}" for kind in ("ms", "cpu_ms")]
            more = [f"{added(costs, name, kind):.2f}" if name in ADDED else "" for kind in ("ms", "cpu_ms")]
            lines.append(f"| {' | '.join([model, name, *times, *more])} |")
    return "\n".join(lines)


def main() -> None:
    given = _arguments()
    if given.threads:
        torch.set_num_threads(given.threads)
    shared = dqd.torch_evaluator(Model(MODELS["small"], given.device).batch, batched=True).shares(jnp.zeros(1))
    results = {
        "date": today(),
        "device": describe_device(),
        "source": source_digest(),
        "torch": {"version": torch.__version__, "device": given.device, "threads": torch.get_num_threads()},
        "jax": {"version": jax.__version__, "device": jax.devices()[0].device_kind},
        "shared_on_gpu": shared,
    }
    models = {name: measure(Model(MODELS[name], given.device), given.rounds) for name in given.models}
    results["added_ms"] = {
        model: {name: {kind: added(costs, name, kind) for kind in ("ms", "cpu_ms")} for name in ADDED}
        for model, costs in models.items()
    }
    results["models"] = {model: summary(costs) for model, costs in models.items()}
    given.out.write_text(json.dumps(results, indent=1) + "\n")
    print(f"shared on one GPU: {shared}\n{table(models)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="where the torch model lies, such as cuda")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    given.out = given.out or Path(__file__).parent / "results" / f"torch-loop-{given.device.split(':')[0]}.json"
    return given


if __name__ == "__main__":
    main()
