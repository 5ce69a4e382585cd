"""Searches with an emitter on the small problems, quickly compiled as nothing here runs for long."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax

from dqd.ask_tell import AskTell
from dqd.conformance.problems import (
    PROBLEMS,
    RESOLUTION,
    SPHERE,
    evaluate,
    evaluate_with_jacobian,
    problem,
    start,
)
from dqd.emitters.emitter import Emitter
from dqd.illumination import illuminate
from dqd.result import Result
from dqd.types import Evaluation

S = TypeVar("S", bound=AskTell)
Make = Callable[..., Emitter]  # make(scale=1.0); the scale multiplies every number that the emitter holds as data
ITERATIONS, CHUNK = 20, 10
_quick = [False]  # the innermost choice is the last


@contextlib.contextmanager
def quick_to_compile(quick: bool = True) -> Iterator[None]:
    """Without the optimisations of LLVM, which take longest. XLA's own stay: they decide what is rounded together."""
    _quick.append(quick)
    jax.config.update("jax_disable_most_optimizations", _quick[-1])
    try:
        yield
    finally:
        _quick.pop()
        jax.config.update("jax_disable_most_optimizations", _quick[-1])


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """The names of the programs compiled since it began."""
    programs: list[str] = []

    def listen(event: str, duration_secs: float, **about: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            programs.append(str(about.get("fun_name", "?")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield programs
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def search(
    make: Make,
    number: int = SPHERE,
    *,
    domain: Any = None,
    grid: Any = None,
    scale: float = 1.0,
    iterations: int = ITERATIONS,
    chunk: int = CHUNK,
    **options: Any,
) -> Any:
    """The compiled runner with this emitter."""
    with quick_to_compile():
        return illuminate(
            problem(number) if domain is None else domain,
            make(scale),
            PROBLEMS[number].grid(RESOLUTION) if grid is None else grid,
            x0=start(),
            iterations=iterations,
            chunk=chunk,
            progress=False,
            **options,
        )


@functools.cache
def found(make: Make, number: int = SPHERE, seed: int = 0, iterations: int = ITERATIONS) -> Result:
    """The same, kept for all checks that only look at it; they run in float64."""
    return search(make, number, seed=seed, iterations=iterations)


def asking(make: Make, number: int = SPHERE, **options: Any) -> AskTell:
    return AskTell(make(), PROBLEMS[number].grid(RESOLUTION), x0=start(), **options)


def play(search: S, iterations: int, with_jacobian: Callable[..., Evaluation], plain: Callable[..., Evaluation]) -> S:
    """The loop of AskTell's documentation, a gradient phase without points left out."""
    while search.iteration < iterations:
        points = search.ask_dqd()
        if len(points):
            told = with_jacobian(points)
            search.tell_dqd(told.objective, told.measures, told.jacobian)
        told = plain(search.ask())
        search.tell(told.objective, told.measures)
    return search


def played(search: S, number: int = SPHERE, iterations: int = 5, kind: Callable = lambda array: array) -> S:
    """An AskTell played on one of the problems, whose answers may be any kind of array."""

    def answer(evaluator: Callable) -> Callable[..., Evaluation]:
        return lambda solutions: jax.tree.map(kind, evaluator(problem(number), solutions))

    return play(search, iterations, answer(evaluate_with_jacobian), answer(evaluate))
