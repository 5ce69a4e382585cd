"""Evaluators that other processes import: NumPy only, so that a worker starts quickly."""

import os
import sys
import time
from pathlib import Path

import numpy as np

N = 6


def sphere(solutions):
    """Objective and two measures of a batch (b, 6)."""
    return -np.sum(solutions**2, axis=1), solutions[:, :2] + 0.1 * solutions[:, 2:4] ** 2


def slow_sphere(solutions):
    time.sleep(0.01)
    return sphere(solutions)


class Sphere:
    """With jacobians."""

    def evaluate(self, solutions):
        return sphere(solutions)

    def evaluate_with_jacobian(self, solutions):
        jacobian = np.zeros((len(solutions), 3, N))
        jacobian[:, 0] = -2 * solutions
        for measure in range(2):
            jacobian[:, 1 + measure, measure] = 1
            jacobian[:, 1 + measure, 2 + measure] = 0.2 * solutions[:, 2 + measure]
        return *sphere(solutions), jacobian


def bad(solutions):
    """Which solutions misbehave: about one in fifty, whoever evaluates them."""
    return np.modf(np.abs(solutions[:, 5]) * 100)[0] < 0.02


def raising(solutions):
    if bad(solutions).any():
        raise ArithmeticError("the simulation diverged")
    return sphere(solutions)


class DivergedError(Exception):
    """Cannot be unpickled: it is made of two things, and keeps one."""

    def __init__(self, when, where):
        super().__init__(f"diverged at {when} in {where}")


def raising_an_odd_error(solutions):
    if bad(solutions).any():
        raise DivergedError(3, "a corner")
    return sphere(solutions)


def leaving(solutions):
    if bad(solutions).any():
        sys.exit(3)
    return sphere(solutions)


def interrupting(solutions):
    if bad(solutions).any():
        raise KeyboardInterrupt
    return sphere(solutions)


class LeavingError(BaseException):
    """Not an Exception, so most of Python lets it pass."""


def raising_no_exception(solutions):
    if bad(solutions).any():
        raise LeavingError("for good")
    return sphere(solutions)


def misshapen(solutions):
    """Forgets a measure of bad solutions."""
    objective, measures = sphere(solutions)
    return objective, measures[:, :1] if bad(solutions).any() else measures


def answering_nothing(solutions):
    """Has no objective, and nothing that could travel, for bad solutions."""
    objective, measures = sphere(solutions)
    return [sys if is_bad else number for is_bad, number in zip(bad(solutions), objective, strict=True)], measures


def as_lists(solutions):
    objective, measures = sphere(solutions)
    return [objective.tolist(), measures.tolist()]


def as_float64(solutions):
    return sphere(solutions.astype(np.float64))


def spoiling(solutions):
    """Overwrites what it is given, then raises."""
    answer = sphere(solutions.copy())
    spoiled = bad(solutions).any()
    solutions[:] = 9
    if spoiled:
        raise ArithmeticError("the simulation diverged")
    return answer


def poisonous(solutions):
    if bad(solutions).any():
        os._exit(1)
    return sphere(solutions)


def hanging(solutions):
    if bad(solutions).any():
        time.sleep(3600)
    return sphere(solutions)


def lingering(solutions):
    print("evaluating", flush=True)
    time.sleep(3600)


def with_holes(solutions):
    """What is left of a misbehaving evaluator when its bad solutions are skipped."""
    objective, measures = sphere(solutions)
    return np.where(bad(solutions), np.nan, objective), measures


class KillsAWorker:
    """Kills the process it runs in, once for each file that can be made in a folder."""

    def __init__(self, folder, kills):
        self.folder, self.kills = str(folder), kills

    def __call__(self, solutions):
        for kill in range(self.kills):
            try:
                (Path(self.folder) / f"kill-{kill}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), 9)
        return sphere(solutions)


class DiesAt:
    """Kills the process that evaluates this one solution, every time."""

    def __init__(self, solution):
        self.solution = solution

    def __call__(self, solutions):
        if (solutions == self.solution).all(axis=1).any():
            os._exit(1)
        return sphere(solutions)


class HangsAt(DiesAt):
    """Never ends with this one solution."""

    def __call__(self, solutions):
        time.sleep(3600 * (solutions == self.solution).all(axis=1).any())
        return sphere(solutions)


def die():
    os._exit(1)
