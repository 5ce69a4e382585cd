"""The layers of the face networks against JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.latent.generators import layers
from dqd.latent.problems import faces as problem
from dqd.latent.scorers import face_parser


def _normal(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(len(shape)).standard_normal(shape), jnp.float32)


def test_wavelets_go_back_and_forth() -> None:
    x = _normal(2, 3, 6, 8)
    np.testing.assert_allclose(layers.inverse_haar(layers.haar(x)), x, atol=1e-6)
    np.testing.assert_allclose(jnp.sum(layers.haar(x) ** 2), jnp.sum(x**2), rtol=1e-5)


def _own_depthwise(x: jax.Array, weight: jax.Array) -> jax.Array:
    axes, count = ("NCHW", "OIHW", "NCHW"), x.shape[1]
    kernels = weight[:, None]
    return jax.lax.conv_general_dilated(x, kernels, (1, 1), "SAME", dimension_numbers=axes, feature_group_count=count)


def test_depthwise_and_its_gradient_equal_jax() -> None:
    x, weight, slope = _normal(2, 5, 7, 6), _normal(5, 3, 3), _normal(2, 5, 7, 6) + 1
    ours, pull = jax.vjp(lambda x: layers.depthwise(x, weight), x)
    theirs, reference = jax.vjp(lambda x: _own_depthwise(x, weight), x)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_allclose(pull(slope)[0], reference(slope)[0], atol=1e-5)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"), [(8, 3, 1, 1), (9, 3, 2, 0), (8, 3, 2, 1), (12, 7, 2, 3)]
)
def test_convolution_and_its_gradient_equal_jax(size: int, kernel: int, stride: int, padding: int) -> None:
    x, weight = _normal(2, size, size, 3), _normal(kernel, kernel, 3, 4)
    ours, pull = jax.vjp(lambda x: layers.convolution(x, weight, stride, padding), x)
    pads, axes = [(padding, padding)] * 2, ("NHWC", "HWIO", "NHWC")
    theirs, reference = jax.vjp(
        lambda x: jax.lax.conv_general_dilated(x, weight, (stride, stride), pads, dimension_numbers=axes), x
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    np.testing.assert_allclose(pull(ours)[0], reference(ours)[0], atol=1e-2, rtol=1e-4)


def test_the_gradient_of_a_wavelet_step_equals_its_transpose() -> None:
    x, slope = _normal(1, 8, 3, 2), _normal(1, 2, 6, 4) + 1
    _, pull = jax.vjp(layers.inverse_haar, x)
    np.testing.assert_allclose(jnp.vdot(pull(slope)[0], x), jnp.vdot(slope, layers.inverse_haar(x)), rtol=1e-4)


def test_area_means_of_whole_pixels_are_block_means() -> None:
    x = _normal(1, 3, 8, 8)
    means = layers.area_means(8, 4)
    np.testing.assert_allclose(
        layers.resample(x, means, means), x.reshape(1, 3, 4, 2, 4, 2).mean(axis=(3, 5)), atol=1e-6
    )
    crop = layers.area_means(100, 10, 0.29, 0.87)
    np.testing.assert_allclose(crop @ (np.arange(100) + 0.5), 29 + 5.8 * (np.arange(10) + 0.5), atol=0.02)


def test_interpolated_points_follow_a_line() -> None:
    weights = layers.linear_weights(32, 64, 256)
    place = np.linspace(0, 255, 32)  # corners of both grids coincide
    np.testing.assert_allclose(weights @ place, 4 * np.arange(64) + 1.5, rtol=1e-5)


def test_hair_scores_of_a_frame_that_is_half_hair() -> None:
    parts = jnp.zeros((1, 19, 64, 64)).at[:, face_parser.HAIR, :32].set(1.0)
    colours = jnp.zeros((1, 3, 64, 64)).at[:, 0, :32].set(0.8).at[:, 1, :32].set(0.2)
    scores = {name: float(face_parser._score(name, parts, colours)[0]) for name in problem.SCORES if "hair" in name}
    assert scores["hair-area"] == pytest.approx(50)
    away = np.linalg.norm(np.array([0.8, 0.2, 0.0]) - face_parser.COPPER)
    assert scores["hair-redness"] == pytest.approx(100 * (1 - away) * 0.5 / 0.51, rel=1e-4)
    assert scores["hair-darkness"] == pytest.approx(100 * (1 - 0.299 * 0.8 - 0.587 * 0.2) * 0.5 / 0.51, rel=1e-5)
