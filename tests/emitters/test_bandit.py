"""The bandit: whom pyribs would ask, and that those who find something are asked."""

import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import GridArchive
from ribs.emitters import EmitterBase
from ribs.schedulers import BanditScheduler
from small import GRID, score

import dqd
from dqd.conformance.searching import quick_to_compile
from dqd.emitters.bandit import Bandit, BanditState

POOL, ACTIVE, EACH = 5, 2, 4


class Stub(EmitterBase):
    """Proposes whatever; starts anew when told to."""

    def __init__(self, archive, number, ends):
        super().__init__(archive, solution_dim=2, bounds=None, lower_bounds=None, upper_bounds=None)
        self.number, self.ends, self.restarts = number, ends, 0 if ends else -1

    def ask(self):
        return np.full((EACH, 2), float(self.number))

    def tell(self, solution, objective, measures, add_info, **_):
        if self.ends and np.random.default_rng(int(1e6 * abs(objective[0]))).random() < 0.4:
            self.restarts += 1


def pool(reselect, zeta=0.0):
    emitters = [dqd.cma_me(0.1, batch_size=EACH) for _ in range(3)] + [dqd.map_elites(0.1, batch_size=EACH)] * 2
    return dqd.bandit(*emitters, active=ACTIVE, reselect=reselect, zeta=zeta)


@pytest.mark.parametrize("reselect", ["terminated", "all"])
def test_the_same_are_asked_as_by_pyribs(reselect):
    archive = GridArchive(solution_dim=2, dims=[30, 30], ranges=[(-1, 1)] * 2)
    theirs = [Stub(archive, i, ends=i < 3) for i in range(POOL)]
    scheduler = BanditScheduler(archive, theirs, num_active=ACTIVE, reselect=reselect, zeta=0.0)
    ours: Bandit = pool(reselect)
    random, active = np.random.default_rng(0), jnp.arange(POOL) < ACTIVE
    seen = set()
    for _ in range(60):
        solutions = scheduler.ask()
        assert np.asarray(active).tolist() == scheduler.active.tolist()
        seen.add(tuple(scheduler.active.tolist()))
        before = [emitter.restarts for emitter in theirs]
        scale = 0.1 + 0.15 * solutions[:, :1]  # some find more than others
        scheduler.tell(random.normal(size=len(solutions)), scale * random.normal(size=solutions.shape))
        ended = np.array([new.restarts > old or new.restarts < 0 for new, old in zip(theirs, before, strict=True)])
        free = ended if reselect == "terminated" else np.asarray(active)
        counts = (jnp.asarray(each.astype(float)) for each in (scheduler._selection, scheduler._success))
        active = ours._chosen(BanditState((), active, *counts), jnp.asarray(free))
    assert len(seen) > 5


def test_zeta_is_the_benefit_of_the_doubt():
    """UCB1 by hand: a_i / s_i + zeta sqrt(ln(sum s) / s_i)."""
    judged, changed = np.array([400.0, 40.0, 8.0, 80.0, 200.0]), np.array([40.0, 3.0, 0.0, 7.0, 19.0])
    everybody = jnp.ones(POOL, bool)
    for zeta in (0.0, 0.02, 0.05, 1.0):
        bound = changed / judged + zeta * np.sqrt(np.log(judged.sum()) / judged)
        state = BanditState((), everybody, jnp.asarray(judged), jnp.asarray(changed))
        chosen = pool("all", zeta)._chosen(state, everybody)
        assert set(np.flatnonzero(chosen).tolist()) == set(np.argsort(bound)[-ACTIVE:].tolist())


def test_who_finds_something_is_asked_more_often():
    emitters = [dqd.map_elites(sigma, batch_size=9, initial_population=0) for sigma in (1e-9, 0.5, 1e-9)]
    with quick_to_compile():
        result = dqd.illuminate(
            score, dqd.bandit(*emitters), GRID, x0=jnp.zeros(6), iterations=60, initial_sigma=1.0, progress=False
        )
    judged = np.asarray(result.state.emitter.judged)
    assert judged.sum() == 60 * 9
    assert judged[1] > 0.7 * judged.sum()
    assert "2: 9" in result.account or "2: 8" in result.account or "2: 7" in result.account


def test_pools_that_cannot_be_are_refused_in_words():
    one = dqd.map_elites(0.1)
    with pytest.raises(ValueError, match=r"bandit: emitters of a pool need equal \(num_points, batch_size\)"):
        dqd.bandit(one, dqd.cma_mega(0.1))
    with pytest.raises(ValueError, match=r"bandit: active: expected 1 to 1 of 2 emitters, got 2"):
        dqd.bandit(one, one, active=2)
    with pytest.raises(ValueError, match=r"unknown reselect 'al'; did you mean 'all'"):
        dqd.bandit(one, one, reselect="al")
