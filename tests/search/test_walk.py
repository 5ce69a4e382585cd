"""The walk on the host: it overwrites its own buffers, and nothing else."""

import re
import signal

import jax
import numpy as np
import pytest
from conformance.table import (
    EMITTERS,
    SPHERE,
    asking,
    assert_same,
    copied,
    evaluate,
    evaluate_with_jacobian,
    play,
    problem,
    search,
)
from small import mostly_long

import dqd
from dqd.search.motion import Division
from dqd.search.search import Search
from dqd.search.walk import Walk

CELLS = 20 * 20  # a size that nothing else has


def copies(program, *arguments):
    """Copies of arrays with an axis of all cells in the compiled program."""
    text = program.lower(*arguments).compile().as_text()
    return re.findall(rf"\w+\[{CELLS}\b[^=]* copy\(.*", text)


@pytest.mark.parametrize("name", mostly_long(EMITTERS, "cma_mega", "map_elites", "combine"))
def test_no_half_step_copies_the_archive(name):
    search = asking(name)
    found = []
    for _ in range(2):  # the initial population, or none, and a round
        walk, programs = search._walk, search._walk._programs
        state = (walk._state, walk._fixed)
        if search._initial_left:
            solutions = walk.ask_initial()
            found += copies(programs.tell_initial, *state, solutions, evaluate(problem(SPHERE), solutions))
        else:
            noise, points = walk._drawn(walk.iteration), walk.ask_dqd()
            told = evaluate_with_jacobian(problem(SPHERE), points.solutions) if walk.has_points else walk.nothing
            found += copies(programs.tell_dqd, *state, points, told, noise)
            found += copies(programs.ask_dqd, *state, noise)
            proposal = jax.eval_shape(programs.tell_dqd, *state, points, told, noise)[1]
            told = jax.eval_shape(problem(SPHERE).evaluate, proposal.solutions)
            found += copies(programs.tell, *state, proposal, told, noise)
        if not search._initial_left:
            break
        search.tell(*jax.tree.leaves(evaluate(problem(SPHERE), search.ask())))
    assert found == []


def test_the_search_for_copies_sees_one():
    walk = asking("cma_mega")._walk
    assert copies(walk._programs.copy, walk._state, walk._fixed)


def test_the_state_that_was_looked_at_stays_as_it_was():
    search = asking("cma_mega")
    play(search, 2, *evaluators())
    looked = search.result().state
    before = jax.tree.map(np.array, looked.archive)
    play(search, 4, *evaluators())
    assert_same(looked.archive, before)


def evaluators():
    return (lambda x: evaluate_with_jacobian(problem(SPHERE), x)), (lambda x: evaluate(problem(SPHERE), x))


@pytest.mark.parametrize("name", ["cma_mega", "map_elites", "combine"])
def test_what_is_called_fixed_never_changes(name):
    before, after = (
        Division.of(state).divide(state)[1] for state in (search(name, iterations=i).state for i in (1, 20))
    )
    assert len(before) > 5
    assert_same(before, after)


def test_a_walk_goes_on_from_any_state():
    first, whole = (play(asking("cma_mega"), iterations, *evaluators()) for iterations in (3, 30))
    other = asking("cma_mega")
    other._walk = Walk(other._search, copied(first.result().state))
    assert_same(play(other, 30, *evaluators()).result().state, whole.result().state)


def test_a_released_state_is_that_of_the_search():
    search = Search(dqd.cma_mega(1.0, batch_size=13))
    state = play(asking("cma_mega"), 2, *evaluators()).result().state
    assert_same(Walk(search, copied(state)).release(), state)


@pytest.mark.parametrize("phase", ["tell_dqd", "tell"])
def test_ctrl_c_in_a_tell_comes_after_it(phase, monkeypatch, request):
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, earlier))
    search, undisturbed = asking("cma_mega"), play(asking("cma_mega"), 3, *evaluators()).result()
    step = getattr(Walk, phase)

    def interrupted(walk, evaluation):
        signal.raise_signal(signal.SIGINT)
        step(walk, evaluation)
        signal.raise_signal(signal.SIGINT)

    with_jacobian, plain = evaluators()
    for _ in range(3):
        points = search.ask_dqd()
        told = with_jacobian(points)
        if phase == "tell_dqd":
            monkeypatch.setattr(Walk, phase, interrupted)
            with pytest.raises(KeyboardInterrupt):
                search.tell_dqd(told.objective, told.measures, told.jacobian)
            monkeypatch.setattr(Walk, phase, step)
        else:
            search.tell_dqd(told.objective, told.measures, told.jacobian)
        told = plain(search.ask())
        if phase == "tell":
            monkeypatch.setattr(Walk, phase, interrupted)
            with pytest.raises(KeyboardInterrupt):
                search.tell(told.objective, told.measures)
            monkeypatch.setattr(Walk, phase, step)
        else:
            search.tell(told.objective, told.measures)
    assert_same(search.result().state, undisturbed.state)
