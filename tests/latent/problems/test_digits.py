"""lsi-digits: the shipped networks, the scores by name, and that a search finds a map in seconds."""

from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from small import Jitted

import dqd
from dqd.latent.problems import digits
from dqd.latent.scorers.neighbours import normalised
from dqd.paper.presets import preset


@pytest.fixture(scope="module")
def problem():
    return digits.build()


def test_the_networks_are_small():
    assert len(resources.files("dqd.latent.problems").joinpath("digits.safetensors").read_bytes()) < 2 * 2**20


@pytest.mark.x64
@pytest.mark.parametrize("objective", ["digit-3", "-legibility"])
def test_jacobians_equal_finite_differences(objective):
    domain = digits.build(objective=objective, measures=("slant", "width")).domain
    report = dqd.check_jacobian(domain, 0.5 * jax.random.normal(jax.random.key(1), (1, 16)), step=1e-3)
    assert report, report.message


def bar(lean: float, thickness: float = 4.0) -> np.ndarray:
    """An image of one stroke from top to bottom, its top shifted to the right by `lean` times its height."""
    y, x = np.mgrid[:28, :28] - 13.5
    inside = (np.abs(x + lean * y) < thickness / 2) & (np.abs(y) < 10)
    return np.where(inside, 1.0, -1.0).astype(np.float32)[None]


def test_strokes_are_measured_as_with_a_ruler():
    images = jnp.asarray(np.stack([bar(0.0), bar(0.5), bar(-0.25), bar(0.0, 8.0)]))
    ink, slant, width, height = np.asarray(digits.Strokes().scores(images)).T
    np.testing.assert_allclose(ink[[0, 3]], [100 * 4 * 20 / 784, 100 * 8 * 20 / 784], rtol=1e-4)
    np.testing.assert_allclose(slant, [0, 0.5, -0.25, 0], atol=0.03)
    np.testing.assert_allclose(width[[0, 3]], np.sqrt([(16 - 1) / 12, (64 - 1) / 12]), rtol=1e-2)
    np.testing.assert_allclose(height, np.sqrt((400 - 1) / 12), rtol=2e-2)


def test_the_classifier_gives_probabilities_and_leaves_some_for_no_digit(problem):
    x = jax.random.normal(jax.random.key(0), (64, 16))
    images = problem.domain.generator.images(problem.domain.space.latents(x), None)
    scores = np.asarray(problem.domain.scorers[0].scores(images))
    assert images.shape == (64, 1, 28, 28)
    assert float(jnp.max(jnp.abs(images))) <= 1
    assert np.all(np.exp(scores[:, :10]).sum(axis=1) < 1)
    np.testing.assert_array_equal(scores[:, 10], scores[:, :10].max(axis=1))
    assert len(set(scores[:, :10].argmax(axis=1).tolist())) >= 8  # the generator makes all kinds of digits


def test_names_ranges_and_labels_agree(problem):
    assert set(problem.domain.names) == set(digits.SCORES)
    turned = digits.build(measures=("-ink", "digit-1"), resolution=7)
    assert (turned.grid.lower, turned.grid.upper, turned.grid.shape) == ((-45.0, -10.0), (0.0, 0.0), (7, 7))
    assert turned.labels[1].startswith("minus ink")
    for options, words in (
        ({"objective": "digit-33"}, "did you mean 'digit-3'"),
        ({"measures": ("inc",)}, "unknown measure 'inc'; did you mean 'ink'"),
        ({"space": "q"}, "unknown space 'q'"),
    ):
        with pytest.raises(ValueError, match=words):
            digits.build(**options)


def test_spaces(problem):
    assert problem.bounds == (-2.0, 2.0)
    free, sphere = digits.build(space="free"), digits.build(space="sphere")
    assert free.bounds is None
    assert float(jnp.linalg.norm(sphere.x0)) == pytest.approx(4)
    np.testing.assert_allclose(
        free.domain.outputs(problem.x0[None]), problem.domain.outputs(problem.x0[None]), rtol=1e-5
    )


def test_a_search_fills_the_map_and_stays_within_the_guard(problem):
    result = dqd.illuminate(
        problem.domain,
        preset("lsi-digits", "cma-mega"),
        digits.build(resolution=20).grid,
        x0=problem.x0,
        bounds=problem.bounds,
        iterations=150,
        progress=False,
    )
    assert result.coverage > 40
    assert result.mean > 80  # of 100
    assert np.abs(result.elites.solutions).max() <= 2
    best = problem.domain.render(result.best_solution()[None])
    assert best.shape == (1, 28, 28, 3)
    assert 0.03 < best.mean() / 255 < 0.5


# The held-out judge ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judge():
    return digits.neighbours()


def test_the_judge_is_small_and_asked_where_a_digit_is_searched(problem):
    judged = resources.files("dqd.latent.problems").joinpath("digits_judge.safetensors").read_bytes()
    assert len(judged) < 2**19
    (opinion,) = problem.opinions
    assert (opinion.judge, opinion.field) == ("neighbours", "digit_3_by_neighbours")
    assert opinion.tolerance == pytest.approx(10 * np.log(2))  # half the chance, in the units of the archive
    assert digits.build("ink", ("slant", "width")).opinions == ()
    assert digits.build(judges=["none"]).opinions == ()


def test_images_are_compared_centred_upright_and_of_one_size():
    y, x = np.mgrid[:28, :28] - 13.5

    def cross(lean=0.0, right=0.0, down=0.0, size=1.0):
        across, along = (x - right + lean * (y - down)) / size, (y - down) / size
        inside = (np.abs(across) < 2) & (np.abs(along) < 9) | (np.abs(along + 3) < 2) & (np.abs(across) < 6)
        return inside.astype(np.float32)

    plain = np.asarray(normalised(jnp.asarray(cross()[None])))
    moved = [cross(lean=0.3), cross(right=3.0, down=-2.0), cross(size=0.8)]
    found = np.asarray(normalised(jnp.asarray(np.stack(moved))))
    other = np.asarray(normalised(jnp.asarray(cross()[None, :, ::-1] * (x < 0))))
    assert np.square(found - plain).sum(axis=1).max() < 0.5 * np.square(other - plain).sum()


def test_the_judge_reads_what_the_generator_paints_and_takes_noise_for_no_digit(problem, judge):
    latents = problem.domain.space.latents(0.8 * jax.random.normal(jax.random.key(3), (400, 16)))
    images = Jitted(problem.domain.generator).images(latents, None)
    scorers = Jitted(problem.domain.scorers[0]), Jitted(judge.scorer)
    searched, held_out = (np.asarray(scorer.scores(images)) for scorer in scorers)
    assert np.all(np.exp(held_out[:, :10]).sum(axis=1) <= 1 + 1e-5)
    sure = searched[:, 10] > np.log(0.9)
    assert sure.sum() > 20  # most random latents lie between the digits
    same = searched[sure, :10].argmax(axis=1) == held_out[sure, :10].argmax(axis=1)
    assert same.mean() > 0.85
    noise = jax.random.uniform(jax.random.key(0), (20, 1, 28, 28), minval=-1)
    assert np.exp(np.asarray(scorers[1].scores(noise))[:, 10]).max() < 0.1


def test_other_networks_of_the_kind_are_read_from_a_file(tmp_path):
    tensors = load_file(resources.files("dqd.latent.problems").joinpath("digits.safetensors"))
    (last,) = [name for name in tensors if name == "decoder.2.bias"]
    save_file({**tensors, last: tensors[last] + 9}, tmp_path / "mine.safetensors")
    white = digits.build(weights=tmp_path / "mine.safetensors")
    assert white.domain.render(white.x0[None]).mean() > 150
    with pytest.raises(FileNotFoundError, match=r"weights: .*theirs\.safetensors: no such file"):
        digits.build(weights=tmp_path / "theirs.safetensors")
