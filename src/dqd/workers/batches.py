"""Evaluates batches with an engine, so that how many workers there are, and which of them die, never shows.

A batch is cut into pieces of as many rows; what they return is put together in the order of the batch. A piece that a
hanging or killing neighbour may have torn along is tried again by itself; the solutions of one that fails are tried one
by one. So a solution that raises, hangs or kills its worker is found, and costs only itself.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.inputs.arrays import EXTRAS, check_shape, checked, expected_shapes, extras
from dqd.inputs.estimates import Bounds
from dqd.inputs.evaluator import Evaluator, MisuseError, Sampled
from dqd.inputs.fields import Shapes, nested
from dqd.interop.torch import TorchEvaluator
from dqd.interop.torch_arrays import to_jax
from dqd.types import Evaluation
from dqd.workers.engine import ClusterError, Task, WorkerDiedError
from dqd.workers.failures import EvaluationError, Failures
from dqd.workers.worker import evaluate_rows
from dqd.workers.workers import Workers

Outputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Batch:
    """Solutions (b, n), and which of a run they are."""

    solutions: np.ndarray
    iteration: int
    phase: str
    jacobian: bool  # whether jacobians are wanted


class Evaluations:
    """An evaluator that JAX cannot trace, and where it runs. There are `k` measures; solutions lie within `bounds`.

    Where an answer takes several evaluations, workers share these: their pieces are cut from all of them.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        workers: Workers,
        k: int,
        out: str | os.PathLike[str] | None,
        bounds: Bounds | None = None,
        fields: Shapes | None = None,
    ) -> None:
        self.sampled = evaluator if isinstance(evaluator, Sampled) else None
        self.evaluator = evaluator.single if isinstance(evaluator, Sampled) else evaluator
        self.workers, self.k, self.bounds, self.fields = workers, k, bounds, fields or {}
        self.engine, self.failures = workers.engine(self.evaluator), Failures(out)
        self.run = uuid.uuid4().hex
        self.shared: dict[str, Evaluation] = {}  # the last of each phase that JAX was given as tensors

    def evaluate(self, solutions: Any, iteration: int, phase: str) -> Evaluation:
        """Solutions (b, n) of one iteration, points with their jacobians; NaN where one was skipped."""
        if self._share(solutions, phase):
            return self.shared[phase]
        solutions = np.asarray(solutions)

        def each(rows: np.ndarray, jacobian: bool) -> Outputs:
            return self._evaluated(Batch(rows, iteration, phase, jacobian))

        if self.sampled is None:
            found: Any = each(solutions, phase == "points")
        else:
            found = self.sampled.answered(solutions, phase == "points", each, self.bounds)
        exact = {name: part if name in EXTRAS else np.asarray(part, solutions.dtype) for name, part in found.items()}
        return Evaluation(**nested(exact))

    def _evaluated(self, batch: Batch) -> Outputs:
        """Every row evaluated once, in arrays that nobody else has."""
        shapes, count = self.shapes(batch, slice(None)), len(batch.solutions)
        dtype = batch.solutions.dtype if self.sampled is None else np.float64  # means and differences want all digits
        size = self.workers.rows_per_call or max(count, 1)
        pieces = [slice(start, min(start + size, count)) for start in range(0, count, size)]
        outcomes = self._gather(batch, pieces)
        if len(outcomes) == 1 and not isinstance(outcomes[0], Exception):
            return {name: np.array(part, dtype if name in shapes else None) for name, part in outcomes[0].items()}
        arrays = {name: np.full(shape, np.nan, dtype) for name, shape in shapes.items()}
        for piece, outcome in zip(pieces, outcomes, strict=True):
            for part, outputs in self.settled(batch, piece, outcome):
                for name, output in outputs.items():
                    if name not in arrays:
                        arrays[name] = np.full(count, EXTRAS[name][1])
                    arrays[name][part] = output
        return arrays

    def _share(self, solutions: Any, phase: str) -> bool:
        """Torch evaluates where JAX computes, and no array leaves the GPU. Not if that fails."""
        evaluator, whole = self.evaluator, self.workers.rows_per_call is None and not self.fields
        if not (whole and isinstance(evaluator, TorchEvaluator) and evaluator.shares(solutions)):
            return False
        jacobian = phase == "points"
        try:
            outputs = (evaluator.evaluate_with_jacobian if jacobian else evaluator.evaluate)(solutions)
        except MisuseError:
            raise
        except Exception:
            return False
        shapes = expected_shapes(len(solutions), self.k, solutions.shape[1], jacobian)
        plain = outputs if isinstance(outputs, tuple) else [getattr(outputs, name) for name in shapes]
        for (name, shape), output in zip(shapes.items(), plain, strict=True):
            check_shape("evaluator", name, tuple(output.shape), shape)
        shared: Any = dict(zip(shapes, (to_jax(output, solutions.dtype) for output in plain), strict=True))
        if (feasible := getattr(outputs, "feasible", None)) is not None:
            shared["feasible"] = to_jax(feasible, bool)
        self.shared[phase] = Evaluation(**shared)
        return True

    def nothing(self, batch: Batch) -> Outputs:
        """Of a batch that nothing is known of."""
        return {name: np.full(shape, np.nan) for name, shape in self.shapes(batch, slice(None)).items()}

    def close(self) -> None:
        self.engine.close()
        self.failures.close()

    def settled(self, batch: Batch, piece: slice, outcome: Outputs | Exception) -> list[tuple[slice, Outputs]]:
        """What is known of a piece in the end: all of it, or what its solutions gave one by one."""
        if not isinstance(outcome, Exception):
            return [(piece, outcome)]
        again = self._alone(batch, piece) if isinstance(outcome, WorkerDiedError | TimeoutError) else outcome
        found = self._one_by_one(batch, piece, again) if isinstance(again, Exception) else [(piece, again)]
        if sum(part.stop - part.start for part, _ in found) == piece.stop - piece.start:
            self.failures.overcome(batch.iteration, batch.phase, piece, outcome)
        return found

    def _one_by_one(self, batch: Batch, piece: slice, error: Exception) -> list[tuple[slice, Outputs]]:
        """What those solutions of a piece gave that did not fail; the error is that of the piece."""
        found: list[tuple[slice, Outputs]] = []
        alone = piece.stop - piece.start == 1
        for index in range(piece.start, piece.stop):
            single = slice(index, index + 1)
            outcome = error if alone else self._alone(batch, single)
            if isinstance(outcome, Exception):
                self._report(batch, index, outcome)
            else:
                found.append((single, outcome))
        return found

    def _alone(self, batch: Batch, piece: slice) -> Outputs | Exception:
        """With nothing else running. A worker may die for reasons of its own, so that is tried again."""
        outcome: Outputs | Exception = WorkerDiedError()
        for _ in range(self.engine.deaths):
            (outcome,) = self._gather(batch, [piece])
            if not isinstance(outcome, WorkerDiedError):
                break
        return outcome

    def _gather(self, batch: Batch, pieces: Sequence[slice]) -> list[Outputs | Exception]:
        """Pieces side by side. When nothing has ended for `timeout` seconds, what a worker is busy with hangs."""
        outcomes: dict[int, Outputs | Exception] = {}
        tasks = {self.submit(batch, piece): number for number, piece in enumerate(pieces)}
        try:
            while tasks:
                ended = self.engine.wait(list(tasks), self.workers.timeout)
                for task in ended:  # fetched and let go at once: a result that waits on a worker can die with it
                    number = tasks.pop(task)
                    outcomes[number] = self.outcome(task, batch, pieces[number])
                    del task
                if not ended:
                    for task in self.engine.stop(list(tasks)):
                        outcomes[tasks.pop(task)] = TimeoutError(f"not finished after {self.workers.timeout:g} s")
        finally:
            for task in tasks:
                task.cancel()
        return [outcomes[number] for number in range(len(pieces))]

    def submit(self, batch: Batch, piece: slice) -> Task[Outputs]:
        solutions = batch.solutions[piece].copy()  # an evaluator may overwrite what it is given
        return self.engine.submit(evaluate_rows, self.run, self.evaluator, solutions, batch.jacobian)

    def outcome(self, task: Task[Outputs], batch: Batch, piece: slice) -> Outputs | Exception:
        try:
            outputs = self.engine.result(task)
        except (ClusterError, MisuseError):
            raise
        except Exception as error:
            return error
        shapes = self.shapes(batch, piece)
        arrays = {name: checked("evaluator", name, outputs.get(name), shape) for name, shape in shapes.items()}
        return arrays | extras("evaluator", outputs, piece.stop - piece.start)

    def shapes(self, batch: Batch, piece: slice) -> dict[str, tuple[int, ...]]:
        count, n = batch.solutions[piece].shape
        return expected_shapes(count, self.k, n, batch.jacobian, self.fields)

    def _report(self, batch: Batch, index: int, error: Exception) -> None:
        solution = batch.solutions[index]
        words = self.failures.add(batch.iteration, batch.phase, index, solution, error)
        if self.workers.on_failure == "raise":
            raise EvaluationError(
                f"evaluation failed: {words}. Its solution is in this error's `solution`; "
                'on_failure="skip" goes on without such solutions',
                solution,
            ) from error
        self.failures.skipped.add(error, words)
