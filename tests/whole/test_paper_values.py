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


def published_entries():
    for name in ("table1", "normalization", "operators"):
        for entry in suites.suite(name).entries:
            wrong_budget = LP_BUDGET if entry.domain == "arm" else ARM_BUDGET
            if entry.variant != wrong_budget and (name == "table1" or entry.algorithm not in suites.TABLE_1):
                marks = () if entry.id in QUICK else pytest.mark.long
                yield pytest.param(entry, marks=marks, id=entry.id)


def run(entry, seed=1):
    domain = presets.make_domain(entry.domain, entry.n)
    emitter = presets.preset(entry.domain, entry.algorithm, **entry.overrides)
    return dqd.illuminate(
        domain, emitter, domain.grid(), x0=jnp.zeros(entry.n), iterations=10_000, seed=seed, chunk=1000, progress=False
    )


@pytest.mark.parametrize("entry", published_entries())
def test_a_run_lands_where_the_paper_says(entry):
    """Within 4 standard deviations of the published trials (SE times the root of 20) or 0.5 %, the larger of both."""
    result = run(entry)
    for figure in ("qd_score", "coverage", "best"):
        printed = entry.published[figure]
        deviation = max(entry.published[f"{figure}_se"], 0.005) * math.sqrt(20)
        assert getattr(result, figure) == pytest.approx(printed, abs=max(4 * deviation, 0.005 * printed)), figure
    if entry.id == "lp-sphere.cma-mega":
        assert result.qd_score == pytest.approx(75.29, abs=0.03)
        assert result.coverage == pytest.approx(100)
    if entry.id == "lp-rastrigin.cma-mega":
        assert result.qd_score == pytest.approx(62.54, abs=0.08)
    if entry.id == "arm.cma-mega":
        assert result.qd_score == pytest.approx(74.2, abs=2.4)
