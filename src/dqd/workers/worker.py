"""What a worker does: evaluate some rows of a batch. It loads JAX only if the evaluator does."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING

import numpy as np

from dqd.inputs.evaluator import answer

if TYPE_CHECKING:
    from dqd.inputs.evaluator import Evaluator

KEPT = 8  # evaluators, the oldest goes first
_kept: dict[str, Evaluator] = {}


def begin() -> None:
    """Nothing; but whoever did it has imported what it takes to evaluate."""


def evaluate_rows(run: str, evaluator: Evaluator, solutions: np.ndarray, jacobian: bool) -> dict[str, np.ndarray]:
    """Objective (b,), measures (b, k) and, if wanted, the jacobian (b, 1 + k, n) of solutions (b, n), by name."""
    try:
        return answer(_first_copy(run, evaluator), solutions, jacobian)
    except Exception as error:
        if _can_travel(error):
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
    except BaseException as error:
        if threading.current_thread() is threading.main_thread():  # Ctrl-C, or the end of the program
            raise
        raise RuntimeError(leaving(error)) from error  # which would end a worker of Dask


def leaving(error: BaseException) -> str:
    """In words, what is raised to end a program."""
    if isinstance(error, SystemExit):
        return f"the evaluator called sys.exit({error.code!r})"
    return f"the evaluator raised {type(error).__name__}: {error}".removesuffix(": ")


def _can_travel(error: Exception) -> bool:
    """One that cannot be made again, from its arguments, breaks the whole pool where it arrives."""
    try:
        copy.copy(error)
    except Exception:
        return False
    return True


def _first_copy(run: str, evaluator: Evaluator) -> Evaluator:
    """Every call brings a copy of the evaluator. The first of a run stays, with all it has compiled or loaded."""
    if run not in _kept:
        while len(_kept) >= KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[run] = evaluator
    return _kept[run]
