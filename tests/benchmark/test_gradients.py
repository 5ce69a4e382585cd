"""Gradients of the functions are those of their values."""

import numpy as np
import pytest

import dqd
from dqd.benchmark.seen_third import seen_third
from dqd.benchmark.unseen import unseen

pytestmark = pytest.mark.x64
N = 20
NOISY = {"boat"}  # its gradients know nothing of its noise


@pytest.mark.parametrize("suite", [seen_third, unseen])
def test_gradients_agree_with_finite_differences(suite):
    away = [[0.0], [0.3], [1.0]] * np.random.default_rng(2).normal(size=(3, N))
    for name, function in suite(N).items():
        report = dqd.check_jacobian(function.score, function.x0.astype(float) + away)
        assert report or name in NOISY, (name, report.message)
        assert report.errors.max() < 1e-5 or name in NOISY, (name, report.errors)
