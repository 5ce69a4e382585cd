"""The best possible score of an uneven projection is what a solver of constrained problems finds, cell by cell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from dqd.benchmark.uneven import least, uneven
from dqd.domains.linear_projection import LIMIT

SEPARATE = 1  # a seed that puts three coordinates into three blocks


@pytest.mark.parametrize("flat", [0.0, 2.0])
def test_the_least_cost_of_an_interval(flat):
    random = np.random.default_rng(0)
    n = 8
    row, best, radius, curvature = (
        random.uniform(low, high, n) for low, high in ((-1, 1), (-2, 2), (flat / 2, flat), (0.5, 3))
    )
    row = row / np.abs(row).sum()
    edges = np.linspace(-LIMIT, LIMIT, 101)

    def cost(x):
        beyond = np.maximum(np.abs(x - best) - radius, 0)
        return curvature @ beyond**2, 2 * curvature * beyond * np.sign(x - best)

    found = least(row, best, radius, curvature)
    for i in (2, 30, 49, 60, 90):
        inside = LinearConstraint(row, edges[i], edges[i + 1])
        solved = minimize(cost, best, jac=True, method="SLSQP", bounds=[(-LIMIT, LIMIT)] * n, constraints=inside,
                          options={"maxiter": 500, "ftol": 1e-10})  # fmt: skip
        assert solved.success
        assert found[i] == pytest.approx(solved.fun, rel=1e-3, abs=1e-4)


def test_a_ceiling_is_100_where_all_is_flat_and_less_where_it_is_not():
    assert uneven(20, 1, flat=20.0).ceiling == pytest.approx(100)
    assert uneven(20, 1).ceiling < uneven(20, 1, scale=8.0).ceiling < 100
    assert uneven(20, 1, ripples=5.0).ceiling is None  # not convex: nobody knows


def test_the_ceiling_of_three_blocks_of_one_coordinate_is_that_of_each_cell_s_nearest_values():
    """The cost of a coordinate is read off the objective, on a line through 0; then its least in 22 intervals."""
    n, scale, function = 3, 4.0, uneven(3, SEPARATE, ends=(0.3, 0.6), spread=1.0)
    steps = np.linspace(-LIMIT, LIMIT, 22 * 200 + 1)
    lines = np.eye(n)[:, None] * steps[:, None]  # (n, steps, n)
    objective, measures = jax.vmap(jax.vmap(function.score))(jnp.asarray(lines))
    costs = n * scale * (100 / np.asarray(objective) - 1)
    least_costs = np.zeros((n, 22))
    for i in range(n):
        j = np.abs(measures[i, -1]).argmax()  # the measure that is this coordinate, or minus it
        line = (costs[i] - costs[i].min())[:: int(np.sign(measures[i, -1, j]))]
        least_costs[j] = [line[200 * cell : 200 * cell + 201].min() for cell in range(22)]
    first, second, third = least_costs
    total = first[:, None, None] + second[:, None] + third
    assert function.shape == (22, 22, 22)
    assert function.ceiling == pytest.approx(np.mean(100 / (1 + total / n / scale)), rel=1e-3)
