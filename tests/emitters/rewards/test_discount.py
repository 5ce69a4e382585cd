"""The network beside PyTorch's, step by step; and what it is fitted to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from small import add

import dqd
from dqd.archives import Archive
from dqd.emitters.rewards.discount import Discount, _empty
from dqd.emitters.rewards.network import BATCH, EPOCHS, Network
from dqd.types import AddResult, Evaluation, replace

GRID = dqd.Grid((-1.0, 0.0), (1.0, 5.0), (4, 4))


def in_torch(network):
    layers = []
    for weight, bias in network.layers:
        linear = torch.nn.Linear(*weight.shape, dtype=torch.float64)
        linear.weight.data, linear.bias.data = torch.tensor(np.array(weight)).T, torch.tensor(np.array(bias))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def points(count, k=3, seed=0):
    generator = np.random.default_rng(seed)
    rows = generator.uniform(-1, 1, (count, k))
    return rows, np.sin(3 * rows[:, 0]) + 2.0, generator.uniform(size=(count, EPOCHS))


@pytest.mark.x64
@pytest.mark.parametrize(("count", "ignored"), [(64, 0), (70, 9)])
def test_a_fit_is_that_of_pytorch_step_by_step(count, ignored):
    """All five epochs, for the targets stay out of reach; the last batch is not full, and some points do not count."""
    rows, targets, orders = points(count)
    weights = np.ones(count)
    weights[:ignored] = 0
    ours = jax.jit(Network.fitted)(Network.zero(3, jnp.float64), *map(jnp.asarray, (rows, targets, weights, orders)))

    network = in_torch(Network.zero(3, jnp.float64))
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    counted = np.flatnonzero(weights)
    for epoch in range(EPOCHS):
        order = counted[np.argsort(orders[counted, epoch])]
        for begin in range(0, len(order), BATCH):
            some = order[begin : begin + BATCH]
            loss = torch.mean((network(torch.tensor(rows[some]))[:, 0] - torch.tensor(targets[some])) ** 2)
            adam.zero_grad()
            loss.backward()
            adam.step()
    for (weight, bias), linear in zip(ours.layers, network[::2], strict=True):
        np.testing.assert_allclose(weight, linear.weight.detach().numpy().T, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(bias, linear.bias.detach().numpy(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours(jnp.asarray(rows)), network(torch.tensor(rows)).detach().numpy()[:, 0], rtol=1e-7)


def test_a_network_that_is_good_enough_is_fitted_once():
    rows, _, orders = (jnp.asarray(part, jnp.float32) for part in points(64))
    once = Network.zero(3, jnp.float32).fitted(rows, jnp.full(64, 0.1), jnp.ones(64), orders)
    assert int(once.adam[0].count) == 64 // BATCH


def told(objective, measures):
    zeros = jnp.zeros(len(objective))
    cell = jnp.where(jnp.isfinite(jnp.asarray(objective)), 0, GRID.num_cells)
    return AddResult(zeros.astype(int), zeros, cell, zeros.astype(bool), jnp.asarray(objective), jnp.asarray(measures))


def test_worth_is_the_objective_above_the_network_as_a_share_of_their_range():
    archive = Archive.empty(GRID, 2)
    network = Network.zero(2, jnp.float32)
    raised = replace(network, layers=[*network.layers[:-1], (network.layers[-1][0], jnp.array([0.25]))])
    worth = Discount(0.1, -10.0, 30.0).worth(raised, archive, told([-10.0, 30.0, 0.0], np.zeros((3, 2))))
    np.testing.assert_allclose(worth, [-0.25, 0.75, 0.0], atol=1e-6)


def test_the_network_rises_where_solutions_are_and_stays_down_in_empty_cells():
    """Objectives of 30 in one corner, again and again; NaN teaches nothing."""
    discount, generator = Discount(0.5, -10.0, 30.0, empty=40), np.random.default_rng(0)
    corner = generator.uniform((-1.0, 0.0), (-0.5, 1.25), (40, 2)).astype(np.float32)
    archive, _ = add(
        Archive.empty(GRID, 2), jnp.zeros((40, 2)), Evaluation(jnp.full(40, 30.0), jnp.asarray(corner)), iteration=1
    )
    objective = np.full(40, 30.0, np.float32)
    objective[7] = np.nan
    result, learn = told(objective, corner), jax.jit(Discount.learn)
    network = discount.init(2, jnp.float32)
    for i in range(150):
        noise = discount.noise(jax.random.key(i), 40, 2)
        network = learn(discount, network, archive, result, result.cell == 0, noise)
    level = -discount.worth(network, archive, told(np.full(2, -10.0), np.array([[-0.75, 0.6], [0.75, 4.4]])))
    assert level[0] > 0.8
    assert abs(level[1]) < 0.1


def test_empty_cells_are_those_without_an_elite_and_their_middles():
    middles = GRID.centers()
    archive, _ = add(
        Archive.empty(GRID, 2),
        jnp.zeros((13, 2)),
        Evaluation(jnp.ones(13), jnp.asarray(middles[:13], jnp.float32)),
        iteration=1,
    )
    found, exist = _empty(archive, jax.random.uniform(jax.random.key(0), (50,)), jnp.float32)
    assert exist.tolist() == [True] * 3 + [False] * 47  # no more than there are
    for row in np.asarray(found):
        assert np.abs(middles[13:] - row).max(axis=1).min() < 1e-5


@pytest.mark.parametrize("cells", [GRID, dqd.CVT(np.random.default_rng(0).normal(size=(12, 3)))])
def test_middles_are_the_centers_for_numpy_and_jax(cells):
    numbers = np.array([0, 5, 11, 3])
    for each in (numbers, jnp.asarray(numbers)):
        np.testing.assert_allclose(cells.middles(each), cells.centers()[numbers], rtol=1e-6)


def test_a_tessellation_without_middles_is_refused_in_words():
    class Bare:
        num_cells = 3

    archive = Archive.empty(GRID, 2)
    archive = replace(archive, competition=replace(archive.competition, tessellation=Bare()))
    with pytest.raises(TypeError, match="Bare has no method middles"):
        _empty(archive, jnp.zeros(2), jnp.float32)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"minimum": 5.0, "maximum": 5.0}, "minimum below maximum, got 5.0 and 5.0"),
        ({"annealing": 1.5}, "annealing: expected a number in"),
        ({"restart": 0}, "restart: expected .* a whole number of iterations, at least 1, got 0"),
    ],
)
def test_wrong_settings_are_refused_in_words(settings, words):
    with pytest.raises(ValueError, match=words):
        dqd.dms(0.5, **settings)
