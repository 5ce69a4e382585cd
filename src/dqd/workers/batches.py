"""Evaluates batches with an engine, so that how many workers there are, and which of them die, never shows.

A batch is cut into chunks of fixed size; what they return is put together in the order of the batch. A chunk that a
hanging or killing neighbour may have torn along is tried again by itself; the solutions of one that fails are tried one
by one. So a solution that raises, hangs or kills its worker is found, and costs only itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from dqd.console import saying
from dqd.inputs.arrays import checked, expected_shapes
from dqd.types import Evaluation
from dqd.workers.executor import ClusterError, Engine, WorkerDiedError
from dqd.workers.failures import EvaluationError, Failures
from dqd.workers.worker import MisuseError, evaluate_chunk

Outputs = tuple[np.ndarray, ...]


class Evaluations:
    """An evaluator that JAX cannot trace, and where it runs."""

    def __init__(
        self,
        evaluator: Any,
        engine: Engine,
        *,
        k: int,
        chunk: int | None,
        timeout: float | None,
        skip: bool,
        failures: Failures,
    ) -> None:
        self.evaluator, self.engine, self.failures = evaluator, engine, failures
        self.k, self.chunk, self.timeout, self.skip = k, chunk, timeout, skip
        self.run = uuid.uuid4().hex

    def evaluate(self, solutions: Any, iteration: int, phase: str) -> Evaluation:
        """Solutions (b, n) of one iteration; the points of a gradient phase with their jacobians."""
        rows, jacobian = np.array(solutions), phase == "points"
        shapes = expected_shapes(len(rows), self.k, rows.shape[1], jacobian)
        arrays: Any = {name: np.full(shape, np.nan, rows.dtype) for name, shape in shapes.items()}
        size = self.chunk or max(len(rows), 1)
        chunks = [slice(start, start + size) for start in range(0, len(rows), size)]
        for piece, outcome in zip(chunks, self._gather(rows, chunks, jacobian), strict=True):
            for part, outputs in self._settled(rows, piece, outcome, jacobian, iteration, phase):
                for array, output in zip(arrays.values(), outputs, strict=True):
                    array[part] = output
        return Evaluation(**arrays)

    def _settled(
        self, rows: np.ndarray, piece: slice, outcome: Outputs | Exception, jacobian: bool, iteration: int, phase: str
    ) -> list[tuple[slice, Outputs]]:
        """What is known of a chunk in the end: all of it, or what its solutions gave one by one."""
        if isinstance(outcome, WorkerDiedError | TimeoutError):
            outcome = self._alone(rows, piece, jacobian)
        if not isinstance(outcome, Exception):
            return [(piece, outcome)]
        found: list[tuple[slice, Outputs]] = []
        indices = range(*piece.indices(len(rows)))
        for index in indices:
            single = slice(index, index + 1)
            if len(indices) > 1:
                outcome = self._alone(rows, single, jacobian)
            if isinstance(outcome, Exception):
                self._report(rows[index], index, outcome, iteration, phase)
            else:
                found.append((single, outcome))
        return found

    def _alone(self, rows: np.ndarray, piece: slice, jacobian: bool) -> Outputs | Exception:
        """With nothing else running. A worker may die for reasons of its own, so that is tried again."""
        outcome: Outputs | Exception = WorkerDiedError()
        for _ in range(self.engine.deaths):
            (outcome,) = self._gather(rows, [piece], jacobian)
            if not isinstance(outcome, WorkerDiedError):
                break
        return outcome

    def _gather(self, rows: np.ndarray, pieces: Sequence[slice], jacobian: bool) -> list[Outputs | Exception]:
        """Pieces side by side. When nothing has ended for `timeout` seconds, what a worker is busy with hangs."""
        outcomes: dict[int, Outputs | Exception] = {}
        tasks = {
            self.engine.submit(evaluate_chunk, self.run, self.evaluator, rows[piece].copy(), jacobian): number
            for number, piece in enumerate(pieces)
        }
        try:
            while tasks:
                ended = self.engine.wait(list(tasks), self.timeout)
                for task in ended:  # fetched and let go at once: a result that waits on a worker can die with it
                    number = tasks.pop(task)
                    outcomes[number] = self._outcome(task, rows[pieces[number]], jacobian)
                    del task
                if not ended:
                    for task in self.engine.stop(list(tasks)):
                        outcomes[tasks.pop(task)] = TimeoutError(f"not finished after {self.timeout:g} s")
        finally:
            for task in tasks:
                task.cancel()
        return [outcomes[number] for number in range(len(pieces))]

    def _outcome(self, task: Any, rows: np.ndarray, jacobian: bool) -> Outputs | Exception:
        try:
            outputs = self.engine.result(task)
        except (ClusterError, MisuseError):
            raise
        except Exception as error:
            return error
        shapes = expected_shapes(len(rows), self.k, rows.shape[1], jacobian)
        return tuple(
            checked("evaluator", name, output, shape)
            for output, (name, shape) in zip(outputs, shapes.items(), strict=True)
        )

    def _report(self, solution: np.ndarray, index: int, error: Exception, iteration: int, phase: str) -> None:
        words = self.failures.add(iteration, phase, index, solution, error)
        if not self.skip:
            raise EvaluationError(
                f"evaluation failed: {words}. Its solution is in this error's `solution`; "
                'on_failure="skip" goes on without such solutions',
                solution,
            ) from error
        saying.warn(f"evaluation skipped: {words}", stacklevel=2)
