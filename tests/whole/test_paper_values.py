"""Whole published runs: n = 1000, 10,000 iterations, one seed, float32, against the printed numbers.

Four of them in every test run, the other cells of the tables behind `-m long`.
"""

import math

import jax.numpy as jnp
import pytest

import dqd
from dqd.paper import presets, suites

pytestmark = pytest.mark.optimised

QUICK = {"lp-sphere.cma-mega", "lp-rastrigin.cma-mega", "arm.cma-mega", "lp-sphere.omg-mega"}
LP_BUDGET, ARM_BUDGET = "paper-budget", "released-budget"  # what the printed dagger rows were made with


def published_cells():
    for name in ("table1", "normalization", "operators"):
        for cell in suites.suite(name).cells:
            wrong_budget = LP_BUDGET if cell.domain == "arm" else ARM_BUDGET
            if cell.variant != wrong_budget and (name == "table1" or cell.algorithm not in suites.TABLE_1):
                marks = () if cell.id in QUICK else pytest.mark.long
                yield pytest.param(cell, marks=marks, id=cell.id)


def run(cell, seed=1):
    domain = presets.make_domain(cell.domain, cell.n)
    emitter = presets.preset(cell.domain, cell.algorithm, **cell.overrides)
    return dqd.illuminate(
        domain, emitter, domain.grid(), x0=jnp.zeros(cell.n), iterations=10_000, seed=seed, chunk=1000, progress=False
    )


@pytest.mark.parametrize("cell", published_cells())
def test_a_run_lands_where_the_paper_says(cell):
    """Within 4 standard deviations of the published trials (SE times the root of 20) or 0.5 %, the larger of both."""
    result = run(cell)
    for figure in ("qd_score", "coverage", "best"):
        printed = cell.published[figure]
        deviation = max(cell.published[f"{figure}_se"], 0.005) * math.sqrt(20)
        assert getattr(result, figure) == pytest.approx(printed, abs=max(4 * deviation, 0.005 * printed)), figure
    if cell.id == "lp-sphere.cma-mega":
        assert result.qd_score == pytest.approx(75.29, abs=0.03)
        assert result.coverage == pytest.approx(100)
    if cell.id == "lp-rastrigin.cma-mega":
        assert result.qd_score == pytest.approx(62.54, abs=0.08)
    if cell.id == "arm.cma-mega":
        assert result.qd_score == pytest.approx(74.2, abs=2.4)
