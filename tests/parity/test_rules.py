"""Who is a parent, and when an emitter starts anew: as pyribs has it, generation by generation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter, GradientArborescenceEmitter
from small import GRID

import dqd
from dqd.archives import Archive
from dqd.emitters.selection import num_parents
from dqd.types import AddResult, Evaluation

N, SAMPLES = 5, 8
# How many of each generation changed the archive; none, twice in a row, too.
CHANGED = (8, 3, 0, 1, 0, 0, 2, 5, 0)
RULES = [("filter", "no_improvement"), ("mu", "no_improvement"), ("filter", "basic"), ("mu", 3), ("filter", 4)]


def statuses(changed):
    return np.array([2] * changed + [0] * (SAMPLES - changed))


def values(generation):
    return np.random.default_rng(generation).normal(size=SAMPLES)  # of which no two are alike: nothing converges


def of_pyribs(make, selection, restart):
    """Restarts after every generation, and the number of parents in each."""
    archive = GridArchive(solution_dim=N, dims=[4, 4], ranges=[(-1, 1)] * 2)
    archive.add(np.zeros((1, N)), np.zeros(1), np.zeros((1, 2)))
    emitter = make(archive, selection_rule=selection, restart_rule=restart, ranker="2imp", seed=1)
    parents, restarts, learn = [], [], emitter._opt.tell
    emitter._opt.tell = lambda indices, ranking, count: parents.append(int(count)) or learn(indices, ranking, count)
    for generation, changed in enumerate(CHANGED):
        if isinstance(emitter, GradientArborescenceEmitter):
            theta = emitter.ask_dqd()
            told = {"status": np.array([0]), "value": np.zeros(1)}
            emitter.tell_dqd(theta, np.zeros(1), np.zeros((1, 2)), np.eye(3, N)[None], told)
        told = {"status": statuses(changed), "value": values(generation)}
        emitter.tell(emitter.ask(), values(generation), np.zeros((SAMPLES, 2)), told)
        restarts.append(emitter.restarts)
    return parents, restarts


def of_ours(emitter):
    archive = Archive.empty(GRID, N)
    state, parents, restarts = emitter.init(jnp.zeros(N), 2, None), [], []
    for generation, changed in enumerate(CHANGED):
        noise = emitter.noise(jax.random.key(generation), N, 2)
        points = emitter.points(state, archive, noise)
        evaluation = Evaluation(jnp.zeros(1), jnp.zeros((1, 2)), jnp.eye(3, N)[None])
        state, proposal = emitter.ask(state, archive, points, evaluation, noise)
        told = AddResult(
            jnp.asarray(statuses(changed)), jnp.asarray(values(generation)), jnp.zeros(SAMPLES, int), jnp.zeros(SAMPLES)
        )
        parents.append(int(num_parents(emitter.selection, told)))
        state = emitter.tell(state, archive, proposal.drawn, told)
        restarts.append(sum(int(count) for count in emitter.restarts(state).values()))
    return parents, restarts


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("selection", "restart"), RULES)
def test_samples_of_cma_me(selection, restart):
    def make(archive, **options):
        return EvolutionStrategyEmitter(archive, x0=np.zeros(N), sigma0=0.5, batch_size=SAMPLES, **options)

    ours = dqd.cma_me(0.5, batch_size=SAMPLES, selection=selection, restart=restart)
    assert of_ours(ours) == of_pyribs(make, selection, restart)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("selection", "restart"), RULES)
def test_branches_of_cma_mega(selection, restart):
    def make(archive, **options):
        return GradientArborescenceEmitter(archive, x0=np.zeros(N), sigma0=0.5, lr=1.0, batch_size=SAMPLES, **options)

    ours = dqd.cma_mega(0.5, batch_size=SAMPLES + 1, selection=selection, restart=restart)
    assert of_ours(ours) == of_pyribs(make, selection, restart)


def test_a_branching_that_nobody_teaches_stays_where_it_is():
    """pyribs would go to the origin."""
    emitter = dqd.cma_mega(0.5, batch_size=SAMPLES + 1, selection="filter", restart="basic")
    archive, start = Archive.empty(GRID, N), jnp.arange(1.0, N + 1)
    state = emitter.init(start, 2, None)
    for generation, changed in enumerate([SAMPLES, 0]):
        noise, before = emitter.noise(jax.random.key(generation), N, 2), state.theta
        evaluation = Evaluation(jnp.zeros(1), jnp.zeros((1, 2)), jnp.eye(3, N)[None])
        state, proposal = emitter.ask(state, archive, emitter.points(state, archive, noise), evaluation, noise)
        told = AddResult(jnp.asarray(statuses(changed)), jnp.asarray(values(generation)), jnp.zeros(SAMPLES, int), None)
        state = emitter.tell(state, archive, proposal.drawn, told)
        assert bool(jnp.all(state.theta == before)) == (changed == 0)


@pytest.mark.parametrize("preset", [dqd.cma_me, dqd.cma_mae, dqd.cma_mega, dqd.cma_maega, dqd.dds, dqd.dms_mega])
def test_rules_that_are_not_known_are_explained(preset):
    with pytest.raises(ValueError, match=r"unknown selection 'filtre'; did you mean 'filter'\?"):
        preset(0.5, selection="filtre")
    with pytest.raises(ValueError, match=r"unknown restart 'no-improvement'; did you mean 'no_improvement'\?"):
        preset(0.5, restart="no-improvement")
    with pytest.raises(ValueError, match="a whole number of iterations, at least 1, got 0"):
        preset(0.5, restart=0)
