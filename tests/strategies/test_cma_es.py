import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd.strategies.decomposition as decomposition
import dqd.strategies.roots as roots
from dqd.strategies import CMAES
from dqd.types import replace

pytestmark = pytest.mark.x64

MODES = ["textbook", "dqd2021"]
LARGE = 20  # beyond decomposition.SMALL: the lazy path
POPULATION = 8  # everywhere, so that little is compiled

ask, tell, covariance = jax.jit(CMAES.ask), jax.jit(CMAES.tell), jax.jit(CMAES.covariance)
stop, reset = jax.jit(CMAES.stop), jax.jit(CMAES.reset)


def ranks_of(points):
    """Of a function without symmetries."""
    weights = 1.0 + np.arange(points.shape[-1])
    values = -np.sum(weights * (np.asarray(points) - 0.3 * weights) ** 2, axis=-1)
    return np.argsort(np.argsort(-values))


def normals_for(d, *shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(*shape, POPULATION, d)))


def step(strategy, state, normals, parents):
    """One generation around the mean.

    Samples do not go through the eigenvectors: where eigenvalues are equal those are arbitrary, and the last bit of C
    decides. What is learnt depends on them only through C^(-1/2), which is unique.
    """
    state, _ = ask(strategy, state, normals)
    points = state.mean + state.sigma * normals
    return tell(strategy, state, points, ranks_of(points), parents)


def after(strategy, d, generations, seed=0):
    """A state that has learnt something."""
    state = strategy.init(jnp.linspace(-1, 1, d))
    for normals in normals_for(d, generations, seed=seed):
        state = step(strategy, state, normals, POPULATION // 2)
    return state


def assert_close(one, other, tolerance=1e-12):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), one, other)


def assert_same_search(strategy, one, other, tolerance=1e-9):
    """The same distribution and paths, whatever basis represents them."""
    for name in ("mean", "sigma", "path_c", "path_s", "evaluations", "decomposed_at"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance)
    assert_close(covariance(strategy, one), covariance(strategy, other), tolerance)


# Invariance -----------------------------------------------------------------------------------------------------------


def rescaled(rank_one, factor, d, generations):
    """(C, sigma, mean) after the same points at scale 1 and at `factor`, the latter two in units of the factor."""
    results = []
    for scale in (1.0, factor):
        strategy = CMAES(0.5 * scale, POPULATION, rank_one)
        state = strategy.init(jnp.linspace(-1, 1, d) * scale)
        for points in normals_for(d, generations):
            state, _ = ask(strategy, state, points)
            state = tell(strategy, state, points * scale, ranks_of(points), 4)
        results.append((covariance(strategy, state), state.sigma / scale, state.mean / scale))
    return results


@pytest.mark.parametrize("factor", [1000.0, 1e-3])
@pytest.mark.parametrize("d", [3, LARGE])
def test_the_textbook_update_is_invariant_to_rescaling_the_points(factor, d):
    one, other = rescaled("textbook", factor, d, 10)
    assert_close(one, other, tolerance=1e-9)
    assert np.abs(one[0] - np.eye(d)).max() > 0.1  # C was learnt


def test_the_authors_update_is_not_invariant_to_rescaling_the_points():
    (one, *_), (other, *_) = rescaled("dqd2021", 1000.0, 3, 6)
    assert np.linalg.norm(other) > 100 * np.linalg.norm(one)


@pytest.mark.parametrize("rank_one", MODES)
@pytest.mark.parametrize("d", [3, LARGE])
@pytest.mark.parametrize("parents", [1, 5, 8])
def test_tell_ignores_the_order_of_the_batch(rank_one, d, parents):
    strategy = CMAES(0.5, POPULATION, rank_one)
    state, points = ask(strategy, after(strategy, d, 3), normals_for(d, seed=1))
    ranks, order = ranks_of(points), np.random.default_rng(2).permutation(POPULATION)
    one = tell(strategy, state, points, ranks, parents)
    other = tell(strategy, state, points[order], ranks[order], parents)
    assert_same_search(strategy, one, other, 1e-12)


@pytest.mark.parametrize("rank_one", MODES)
@pytest.mark.parametrize("parents", [1, 4, 8])
def test_a_number_of_parents_known_while_compiling_gives_the_same_update_as_a_traced_one(rank_one, parents):
    strategy, points = CMAES(0.5, POPULATION, rank_one), normals_for(3)
    state, ranks = after(strategy, 3, 2), ranks_of(points)
    known = jax.jit(lambda state, points: strategy.tell(state, points, ranks, parents))(state, points)
    assert_same_search(strategy, known, tell(strategy, state, points, ranks, parents), 1e-14)


def test_points_beyond_the_parents_do_not_matter():
    strategy, points = CMAES(0.5, POPULATION), normals_for(3)
    one = tell(strategy, strategy.init(jnp.zeros(3)), points, jnp.arange(8), 2)
    other = tell(strategy, strategy.init(jnp.zeros(3)), points.at[2:].add(99.0), jnp.arange(8), 2)
    assert_same_search(strategy, one, other, 1e-15)


@pytest.mark.parametrize("d", [3, LARGE])
def test_samples_have_the_mean_and_the_covariance_of_the_state(d):
    strategy = CMAES(0.5, POPULATION)
    state, _ = ask(strategy, after(strategy, d, 12), normals_for(d))  # decomposes what was learnt
    state = replace(state, decomposed_at=state.evaluations)
    _, points = jax.jit(jax.vmap(CMAES.ask, (None, None, 0)))(strategy, state, normals_for(d, 2500, seed=1))
    points = points.reshape(-1, d)  # 20,000 samples
    expected = float(state.sigma) ** 2 * np.asarray(state.decomposition.covariance)
    assert np.abs(expected - np.diag(np.diag(expected))).max() > 0.05 * expected.max()  # not merely diagonal
    np.testing.assert_allclose(np.cov(points.T), expected, atol=0.02 * expected.max())
    np.testing.assert_allclose(np.mean(points, axis=0), state.mean, atol=5 * np.sqrt(expected.max() / 20_000))


def test_it_finds_the_optimum_of_an_ill_conditioned_quadratic():
    strategy = CMAES(0.5, POPULATION)
    weights, target = jnp.array([1.0, 100.0, 1e4]), jnp.array([1.0, -2.0, 0.5])

    def body(state, normals):
        state, points = strategy.ask(state, normals)
        values = -jnp.sum(weights * (points - target) ** 2, axis=1)
        return strategy.tell(state, points, jnp.argsort(jnp.argsort(-values)), 4), None

    state, _ = jax.lax.scan(body, strategy.init(jnp.zeros(3)), normals_for(3, 300))
    np.testing.assert_allclose(state.mean, target, atol=1e-7)
    assert state.sigma < 1e-6


# Stop and reset -------------------------------------------------------------------------------------------------------


def reason(state, best=1.0, worst=0.0):
    value = jnp.array([-9.0, worst, 3.0, 3.0, best, 3.0, 3.0, 9.0])
    ranks = jnp.array([1, 7, 2, 3, 0, 4, 5, 6])
    fired = stop(CMAES(1.0, POPULATION), state, ranks, value)
    return next((name for name, fires in zip(CMAES.reasons, fired, strict=True) if fires), "running")


def healthy():
    return CMAES(1.0, POPULATION).init(jnp.zeros(3))


def with_eigenvalues(*eigenvalues):
    state = healthy()
    extremes = {"smallest": jnp.array(min(eigenvalues)), "largest": jnp.array(max(eigenvalues))}
    known = replace(state.decomposition.roots, **extremes)
    fresh = replace(state.decomposition, roots=known, is_identity=jnp.array(False))
    return replace(state, decomposition=fresh)


def test_a_healthy_search_goes_on():
    assert reason(healthy()) == "running"
    assert reason(with_eigenvalues(1.0, 0.99e14, 2.0)) == "running"


def test_it_stops_when_the_condition_number_exceeds_1e14():
    assert reason(with_eigenvalues(1.0, 1.01e14, 2.0)) == "condition number"


def test_it_stops_when_the_longest_axis_is_below_1e_11():
    state = with_eigenvalues(1.0, 4.0, 0.25)
    assert reason(replace(state, sigma=jnp.array(0.49e-11))) == "step size"
    assert reason(replace(state, sigma=jnp.array(0.51e-11))) == "running"


def test_it_stops_when_the_best_and_the_worst_are_equal():
    assert reason(healthy(), 5.0, 5.0 + 0.9e-12) == "flat values"
    assert reason(healthy(), 5.0, 5.0 - 1e-11) == "running"


def test_a_value_of_minus_infinity_is_not_flat():
    assert reason(healthy(), 5.0, -np.inf) == "running"


def test_the_first_reason_is_told_when_several_apply():
    broken = replace(with_eigenvalues(1e-20, 1e-40, 1e-40), sigma=jnp.array(1e-30))
    assert reason(broken, 5.0, 5.0) == "condition number"


def test_the_condition_stop_happens_in_a_degenerate_search_before_anything_is_not_finite():
    """All points on a line, so two eigenvalues decay. The lazily updated decomposition decides."""
    strategy, line, reasons = CMAES(1.0, POPULATION), jnp.array([1.0, 2.0, -1.0]), []
    state = strategy.init(jnp.zeros(3))
    for normals in normals_for(3, 300):
        state, _ = ask(strategy, state, normals)
        points = state.mean + state.sigma * normals[:, :1] * line
        state = replace(tell(strategy, state, points, jnp.arange(8), 4), sigma=jnp.ones(()))
        reasons.append(reason(state))
        if reasons[-1] != "running":
            break
    assert reasons[-1] == "condition number"
    assert len(reasons) > 10
    assert np.isfinite(np.asarray(covariance(strategy, state))).all()


@pytest.mark.parametrize("d", [3, LARGE])
@pytest.mark.parametrize("generations", [1, 3, 9])
def test_after_a_reset_the_search_goes_on_as_a_fresh_one(d, generations):
    strategy, mean = CMAES(0.5, POPULATION), jnp.linspace(2, 3, d)
    used = reset(strategy, after(strategy, d, generations), True, mean)
    fresh = strategy.init(mean)
    for i, normals in enumerate(normals_for(d, 14, seed=3)):
        assert_same_search(strategy, used, fresh)
        parents = [4, 0, 8, 1][i % 4]
        used, fresh = step(strategy, used, normals, parents), step(strategy, fresh, normals, parents)
    assert fresh.decomposed_at > 0  # including a decomposition


@pytest.mark.parametrize("d", [3, LARGE])
def test_a_reset_that_is_not_due_changes_nothing(d):
    strategy = CMAES(0.5, POPULATION)
    state = after(strategy, d, 4)
    jax.tree.map(np.testing.assert_array_equal, reset(strategy, state, False, jnp.ones(d)), state)


@pytest.mark.parametrize("d", [3, LARGE])
def test_a_reset_recovers_from_points_that_were_not_finite(d):
    strategy = CMAES(0.5, POPULATION)
    state, points = ask(strategy, after(strategy, d, 2), normals_for(d, seed=4))
    broken = tell(strategy, state, points.at[0].set(jnp.inf), jnp.arange(8), 4)
    used, fresh = reset(strategy, broken, True, jnp.ones(d)), strategy.init(jnp.ones(d))
    for normals, parents in zip(normals_for(d, 14, seed=5), [0, 4] * 7, strict=True):
        used, fresh = step(strategy, used, normals, parents), step(strategy, fresh, normals, parents)
    assert_same_search(strategy, used, fresh)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((1.0, 1), "population: CMA-ES needs at least 2 samples, got 1"), ((1.0, 8, "text book"), "rank_one: expected")],
)
def test_wrong_settings_are_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        CMAES(*arguments)


# Lazy decompositions under vmap ---------------------------------------------------------------------------------------


def members(strategy, d, count):
    """States that have run 0, 1, 2, ... generations, so that some are due for a decomposition and others are not."""
    return [after(strategy, d, i, seed=i) for i in range(count)]


def due(strategy, states):
    gap = strategy.gap(states[0].mean.size)
    return [bool(state.evaluations > state.decomposed_at + gap) for state in states]


def stacked(states):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


@pytest.mark.parametrize("d", [3, LARGE])
def test_vmap_over_members_equals_a_loop_while_some_are_due_and_others_are_not(d):
    strategy = CMAES(0.5, POPULATION)
    alone = members(strategy, d, 4)
    together = stacked(alone)
    ask_all = jax.jit(jax.vmap(CMAES.ask, in_axes=(None, 0, 0)))
    tell_all = jax.jit(jax.vmap(CMAES.tell, in_axes=(None, 0, 0, 0, 0)))
    reset_all = jax.jit(jax.vmap(CMAES.reset, in_axes=(None, 0, 0, 0)))
    parents, means, mixed = jnp.array([3, 8, 0, 1]), jnp.ones((4, d)), 0
    for i, normals in enumerate(normals_for(d, 8, 4)):
        flags, restarts = due(strategy, alone), jnp.arange(4) == i
        mixed += any(flags) and not all(flags)
        alone = [step(strategy, *member) for member in zip(alone, normals, parents, strict=True)]
        alone = [reset(strategy, *member) for member in zip(alone, restarts, means, strict=True)]
        together, _ = ask_all(strategy, together, normals)
        points = together.mean[:, None] + together.sigma[:, None, None] * normals
        together = tell_all(strategy, together, points, ranks_of(points), parents)
        together = reset_all(strategy, together, restarts, means)
    for j, state in enumerate(alone):
        assert_same_search(strategy, jax.tree.map(lambda leaf, j=j: leaf[j], together), state)
    assert d == 3 or mixed > 1


def test_nested_vmap_equals_vmap():
    strategy = CMAES(0.5, POPULATION)
    states, normals = stacked(members(strategy, LARGE, 6)), normals_for(LARGE, 6)
    fold = lambda tree: jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), tree)  # noqa: E731
    once = jax.vmap(CMAES.ask, in_axes=(None, 0, 0))
    twice = jax.vmap(once, in_axes=(None, 0, 0))
    flat, nested = jax.jit(once)(strategy, states, normals), jax.jit(twice)(strategy, fold(states), fold(normals))
    assert_close(fold(flat), nested)


def test_vmap_where_only_a_part_of_the_state_is_batched_equals_a_loop():
    strategy = CMAES(0.5, POPULATION)
    state = next(state for state in members(strategy, LARGE, 6) if due(strategy, [state])[0])
    normals = normals_for(LARGE)
    decays = jnp.array([1.0, 0.9, 0.5])
    sample = lambda decay: ask(strategy, replace(state, decay=decay), normals)[1]  # noqa: E731
    expected = jnp.stack([sample(decay) for decay in decays])
    assert_close(jax.jit(jax.vmap(sample))(decays), expected)
    assert np.abs(expected[0] - expected[2]).max() > 0.01


@pytest.fixture
def decompositions(monkeypatch):
    """How many matrices were really decomposed, counted on the host while compiled code runs."""
    count = []
    genuine = roots.eigh

    def called(_):
        count.append(1)
        return np.int32(0)

    def counted(matrix):
        some = matrix[0, 0].astype(jnp.float32)  # the host's threads know nothing of x64
        zero = jax.pure_callback(called, jax.ShapeDtypeStruct((), jnp.int32), some, vmap_method="sequential")
        return genuine(matrix + zero)  # it is added, so that no compiler leaves the call out

    monkeypatch.setattr(roots, "eigh", counted)
    jax.clear_caches()  # newer versions of JAX keep what they traced before, and would keep this
    yield count
    jax.clear_caches()


def test_a_decomposition_that_is_not_due_is_not_computed(decompositions):
    strategy = CMAES(0.5, POPULATION)
    fresh_ask = jax.jit(lambda state, normals: strategy.ask(state, normals))
    for state in members(strategy, LARGE, 6):
        before = len(decompositions)
        jax.block_until_ready(fresh_ask(state, normals_for(LARGE)))
        jax.effects_barrier()
        assert len(decompositions) - before == due(strategy, [state])[0]


@pytest.mark.parametrize("nested", [False, True])
def test_under_vmap_only_members_that_are_due_are_decomposed(decompositions, nested):
    strategy = CMAES(0.5, POPULATION)
    states = members(strategy, LARGE, 6)
    expected = sum(due(strategy, states))
    assert 0 < expected < 6
    sample = lambda state, normals: strategy.ask(state, normals)  # noqa: E731
    batch, normals = stacked(states), normals_for(LARGE, 6)
    sample_all = jax.vmap(sample)
    if nested:
        sample_all = jax.vmap(sample_all)
        batch, normals = jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), (batch, normals))
    jax.effects_barrier()
    decompositions.clear()  # those that made the states
    jax.block_until_ready(jax.jit(sample_all)(batch, normals))
    jax.effects_barrier()
    assert len(decompositions) == expected


def test_copies_can_be_traced_within_a_branch_of_several_seeds():
    """As the compiled runner has them; an array that the program closes over would be refused there."""
    strategy = CMAES(0.5, POPULATION)
    copies = jax.vmap(strategy.ask)

    def branch(state, normals):
        return jax.lax.cond(state.evaluations[0] >= 0, copies, lambda state, z: (state, z), state, normals)

    batch = jax.tree.map(lambda leaf: leaf[None], stacked([strategy.init(jnp.zeros(LARGE))] * 2))
    _, samples = jax.eval_shape(jax.vmap(branch), batch, normals_for(LARGE, 1, 2))
    assert samples.shape == (1, 2, POPULATION, LARGE)


# By products, as a GPU does it ----------------------------------------------------------------------------------------


def test_blocks_of_members_decomposed_by_products_equal_eigenvectors_one_by_one(monkeypatch):
    """Six of them, in rounds of up to four, of which some are not due."""
    strategy = CMAES(0.5, POPULATION)
    states = members(strategy, LARGE, 6)
    assert 0 < sum(due(strategy, states)) < 6
    batch, normals = stacked(states), normals_for(LARGE, 6)
    expected, samples = jax.jit(jax.vmap(CMAES.ask, (None, 0, 0)))(strategy, batch, normals)
    monkeypatch.setattr(decomposition, "roots", roots.by_products)
    monkeypatch.setattr(decomposition, "BLOCK", {"cpu": 4})
    jax.clear_caches()
    found, others = jax.jit(jax.vmap(lambda state, z: strategy.ask(state, z)))(batch, normals)
    jax.clear_caches()
    assert_close(samples, others, 1e-9)
    np.testing.assert_array_equal(expected.decomposed_at, found.decomposed_at)
    assert_close(expected.decomposition.roots.inverse, found.decomposition.roots.inverse, 1e-9)
