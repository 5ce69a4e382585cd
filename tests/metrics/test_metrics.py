"""Metrics beside closed forms, quadrature, a dense eigenproblem and pyribs."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from ribs.archives import GridArchive
from ribs.archives import cqd_score as cqd_score_of_pyribs
from small import add
from typer.testing import CliRunner

import dqd
from dqd import metrics
from dqd.cli import app
from dqd.saved.archive import placed

GRID = dqd.Grid(lower=[-1, 0], upper=[3, 5], shape=[20, 10])


def saved(count=60, offset=0.0, seed=0):
    random = np.random.default_rng(seed)
    measures, objective = random.uniform([-1, 0], [3, 5], (count, 2)), random.uniform(1, 9, count)
    rows = (objective, measures, random.normal(size=(count, 3)), None)
    return placed(*rows, GRID, qd_score_offset=offset)


def live(objective, measures, cells=GRID, **options):
    archive = dqd.Archive.empty(cells, 1, **options)
    told = dqd.Evaluation(jnp.asarray(objective, float), jnp.asarray(measures, float))
    return add(archive, jnp.ones((len(objective), 1)), told)[0]


# CQD ------------------------------------------------------------------------------------------------------------------


def test_cqd_score_is_pyribs_where_it_takes_no_minimum_away():
    found, targets = saved(), np.random.default_rng(1).uniform([-1, 0], [3, 5], (500, 2))
    theirs = GridArchive(solution_dim=3, dims=(20, 10), ranges=[(-1, 3), (0, 5)])
    theirs.add(found.solutions, found.objective, found.measures)
    distance = math.hypot(4, 5)
    ranges = {"obj_min": 0.0, "obj_max": 10.0, "dist_max": distance}
    score = cqd_score_of_pyribs(theirs, iterations=1, target_points=targets[None], penalties=5, **ranges).mean
    assert_allclose(metrics.cqd_score(found, targets, minimum=0, maximum=10), score, rtol=1e-12)
    assert_allclose(metrics.cqd_score(found, targets, minimum=0, maximum=10, distance=distance), score, rtol=1e-12)


def test_cqd_score_does_not_change_with_the_zero_of_the_objective():
    found, moved = saved(), saved()
    moved = dqd.SavedArchive(found.cell, found.objective - 100, found.measures, None, None, GRID)
    assert_allclose(
        metrics.cqd_score(moved, 50, minimum=-100, maximum=-90), metrics.cqd_score(found, 50, minimum=0, maximum=10)
    )


# Vendi ----------------------------------------------------------------------------------------------------------------


def dense(rows, width, order=1.0):
    """As the authors have it: all eigenvalues of K / elites."""
    kernel = np.exp(-(np.linalg.norm(rows[:, None] - rows, axis=2) ** 2) / width**2)
    shares = np.linalg.eigvalsh(kernel / len(rows))
    shares = shares[shares > 1e-15]
    if order == 1:
        return np.exp(-np.sum(shares * np.log(shares)))
    return np.sum(shares**order) ** (1 / (1 - order))


@pytest.mark.parametrize("bandwidth", [0.02, 0.2, None, 5.0])
def test_vendi_score_is_that_of_all_eigenvalues(bandwidth):
    found = saved(150)
    shares = (found.measures - [-1, 0]) / [4, 5]
    width = math.sqrt(2 / 6) if bandwidth is None else bandwidth
    assert_allclose(metrics.vendi_score(found, bandwidth=bandwidth), dense(shares, width), rtol=1e-6)
    assert_allclose(metrics.vendi_score(found, bandwidth=width, order=2), dense(shares, width, 2), rtol=1e-6)


def test_vendi_score_of_groups_counts_groups_by_their_sizes():
    """Two groups with shares 1/4 and 3/4: exp of the entropy; order 2: 1 / sum of squares; infinity: 1 / largest."""
    rows = np.repeat([[0.0], [100.0]], [1, 3], axis=0)
    found = live([1, 1, 1, 1], [[-1, 0], [0, 2], [1, 3], [2, 4]])
    shares = np.array([0.25, 0.75])
    score = {order: metrics.vendi_score(found, bandwidth=1, order=order, features=rows) for order in (1, 2, math.inf)}
    assert_allclose(score[1], np.exp(-np.sum(shares * np.log(shares))), rtol=1e-6)
    assert_allclose(score[2], 1 / np.sum(shares**2), rtol=1e-6)
    assert_allclose(score[math.inf], 1 / 0.75, rtol=1e-6)


def test_quality_counts_above_the_offset():
    found = saved(offset=1.0)
    mean = float(np.mean(found.objective - 1))
    assert_allclose(metrics.quality_vendi_score(found), metrics.vendi_score(found) * mean)
    with pytest.raises(ValueError, match="qd_score_offset"):
        metrics.quality_vendi_score(saved(offset=5.0))


# Soft QD --------------------------------------------------------------------------------------------------------------


def test_soft_qd_score_is_the_integral_of_the_brightest():
    """Three lamps on a line, two of which overlap, one inside the light of another: by quadrature."""
    light, place = np.array([1.0, 3.0, 0.2]), np.array([0.3, 0.5, 0.55])
    found = live(light, place[:, None], dqd.Grid([0], [1], [100]))
    b = np.linspace(-2, 3, 200_001)
    for bandwidth in (0.02, 0.1, 0.3):
        height = np.max(light * np.exp(-((b[:, None] - place) ** 2) / (2 * bandwidth**2)), axis=1)
        score = metrics.soft_qd_score(found, bandwidth, samples=20_000)
        assert_allclose(score, np.trapezoid(height, b), rtol=5e-3)


def test_soft_qd_score_lies_between_its_bound_and_the_sum():
    """The lower bound of the paper: the sum less sqrt(f_i f_j) exp(-d^2 / (8 sigma^2)) of all pairs."""
    found, bandwidth = saved(40), 0.03
    light, shares = found.objective, (found.measures - [-1, 0]) / [4, 5]
    squares = np.sum((shares[:, None] - shares) ** 2, axis=2)
    pairs = np.sqrt(light[:, None] * light) * np.exp(-squares / (8 * bandwidth**2))
    volume = 2 * math.pi * bandwidth**2
    score = metrics.soft_qd_score(found, bandwidth)
    assert volume * (light.sum() - np.sum(np.triu(pairs, 1))) < score < volume * light.sum()


def test_soft_qd_score_does_not_care_for_the_units_of_measures():
    found = saved()
    far = dqd.Grid(lower=[-1000, 0], upper=[3000, 5000], shape=[20, 10])
    moved = dqd.SavedArchive(found.cell, found.objective, found.measures * 1000, None, None, far)
    assert_allclose(metrics.soft_qd_score(moved, 0.1), metrics.soft_qd_score(found, 0.1), rtol=1e-9)


# Corrected ------------------------------------------------------------------------------------------------------------


def noisy(x):
    """Every second call is too high by 4; measures stay."""
    noisy.calls += 1
    return 10 + 4 * (noisy.calls % 2) - np.sum(x**2, axis=1), x[:, :2] * [2, 2.5] + [1, 2.5]


def test_corrected_qd_score_is_that_of_reevaluate():
    noisy.calls = 0
    judge = dqd.evaluator(lambda x: (10 - np.sum(x**2, axis=1), x[:, :2]))
    cells = dqd.Grid([-3, -3], [3, 3], [8, 8])
    result = dqd.illuminate(judge, dqd.map_elites(0.3), cells, x0=np.zeros(3), iterations=5, progress=False)
    less = lambda x: (8 - np.sum(x**2, axis=1), 0.5 * x[:, :2])  # noqa: E731
    assert_allclose(
        metrics.corrected_qd_score(result, less), dqd.reevaluate(result, dqd.evaluator(less)).qd_score, rtol=1e-5
    )
    exact = metrics.corrected_qd_score(result, lambda x: (10 - np.sum(x**2, axis=1), x[:, :2]))
    assert_allclose(exact, result.qd_score, rtol=1e-5)
    assert_allclose(metrics.qd_score_auc(result), metrics.qd_score_auc(result.to_numpy()), rtol=1e-5)


def test_repetitions_are_averaged_and_what_is_not_finite_is_lost():
    noisy.calls = 0
    found = saved(30)
    once, twice = metrics.corrected_qd_score(found, noisy), metrics.corrected_qd_score(found, noisy, 2)
    assert_allclose(once - twice, 2 * len(set(GRID.index_of(noisy(found.solutions)[1]))) / 200)
    assert metrics.corrected_qd_score(found, lambda x: (np.full(len(x), np.nan), found.measures)) == 0


# Everything -----------------------------------------------------------------------------------------------------------

EVERY = {
    "cqd": lambda archive: metrics.cqd_score(archive, 20, minimum=0, maximum=10),
    "vendi": metrics.vendi_score,
    "quality": metrics.quality_vendi_score,
    "soft": lambda archive: metrics.soft_qd_score(archive, 0.1),
}


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_archive_and_one_elite(name):
    empty, one = live([], np.zeros((0, 2))), live([3.0], [[1.0, 2.5]])
    expected = {"cqd": -math.inf}.get(name, 0.0)
    assert EVERY[name](empty) == EVERY[name](empty.to_numpy()) == expected
    single = {"vendi": 1.0, "quality": 3.0, "soft": 3 * 2 * math.pi * 0.01}
    if name in single:
        assert_allclose(EVERY[name](one), single[name], rtol=1e-6)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    "cells",
    [
        dqd.CVT.uniform([-1, 0], [3, 5], 50),
        dqd.UnevenGrid([[-1, 0, 3], [0, 1, 5]]),
        dqd.CategoricalGrid([["wood", "steel"], (0, 5, 4)]),
        dqd.DNS(measures=2, capacity=40),
        dqd.Novelty(measures=2, threshold=0.1),
        dqd.UnboundedGrid([10, 10]),
    ],
    ids=lambda cells: type(cells).__name__,
)
def test_every_kind_of_archive_has_them(name, cells):
    random = np.random.default_rng(0)
    measures = random.uniform(0, 3, (30, 2)).round(0 if isinstance(cells, dqd.CategoricalGrid) else 9) % 2
    found = live(random.uniform(1, 9, 30), measures, cells)
    score = EVERY[name](found)
    assert np.isfinite(score)
    assert_allclose(EVERY[name](found.to_numpy()), score)


def test_a_grid_that_has_met_nothing_is_read_back(tmp_path):
    empty = live([], np.zeros((0, 2)), dqd.UnboundedGrid([3, 4]))
    assert len(dqd.load(empty.save(tmp_path / "empty.npz"))) == len(empty.retessellate(GRID)) == 0
    assert metrics.vendi_score(empty) == 0


def test_what_is_no_archive_is_told_so():
    with pytest.raises(TypeError, match="a result or an archive"):
        metrics.vendi_score(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="no history"):
        metrics.qd_score_auc(saved())


# On the command line --------------------------------------------------------------------------------------------------


def test_the_command_prints_them_side_by_side(tmp_path):
    files = [saved(seed=seed).save(tmp_path / f"{seed}.npz") for seed in (0, 1)]
    told = CliRunner().invoke(app, ["metrics", *map(str, files), "--format", "csv", "--maximum", "10"])
    assert told.exit_code == 0, told.output
    header, *rows = (line.split(",") for line in told.output.splitlines())
    first = dict(zip(header, rows[0], strict=True))
    assert float(first["cqd"]) == metrics.cqd_score(saved(), 1000, minimum=0, maximum=10) / 5000
    assert float(first["soft_qd"]) == metrics.soft_qd_score(saved(), 0.05)
    assert (first["area"], len(rows)) == ("nan", 2)


def test_the_command_says_what_it_cannot_do(tmp_path):
    empty = live([], np.zeros((0, 2))).save(tmp_path / "empty.npz")
    told = CliRunner().invoke(app, ["metrics", str(empty), "--minimum", "2", "--maximum", "1"])
    assert told.exit_code == 2
    assert "--maximum" in told.output + told.stderr
    assert CliRunner().invoke(app, ["metrics", str(empty)]).exit_code == 0
