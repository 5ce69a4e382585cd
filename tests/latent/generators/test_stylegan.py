"""StyleGAN-1 and StyleGAN2 against PyTorch forwards in the style of their public ports."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import mostly_long

from dqd.latent.generators import convolutions, stylegan, stylegan2

torch = pytest.importorskip("torch", reason="parity needs PyTorch: pip install 'dqd[test]'")
from latent import stylegan2_port, stylegan_port  # noqa: E402

NETWORKS = {"stylegan1": (stylegan, stylegan_port), "stylegan2": (stylegan2, stylegan2_port)}
draw = jax.jit(lambda generator, latents, keys=None: generator.images(latents, keys))


@pytest.fixture(scope="module", params=[("stylegan1", 64), ("stylegan1", 256), ("stylegan2", 64), ("stylegan2", 128)])
def both(request):
    """The same random weights as our generator, as a state dict, and the port; a few of the channels."""
    network, port = NETWORKS[request.param[0]]
    tensors = network.random_tensors(request.param[1], seed=3, width=1 / 16)
    return network.from_tensors(tensors), {name: torch.from_numpy(array) for name, array in tensors.items()}, port


def noises(generator, keys=None):
    """What our layers add, in the port's shape."""
    ours = convolutions.noises([layer.fixed_noise for layer in generator.layers], keys)
    return [torch.from_numpy(np.array(noise)).permute(0, 3, 1, 2) for noise in ours]


def latents(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def close(ours, theirs, tolerance=1e-4):
    theirs = theirs.numpy()
    np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max(), rtol=0)


def test_mapping(both):
    generator, state, port = both
    z = latents(3, 512)
    w = generator.mapping(z)
    close(w, port.mapping(state, torch.from_numpy(z)))
    assert 0.1 < np.std(w) < 10


def test_images_with_one_latent_for_all_layers(both):
    generator, state, port = both
    w = latents(2, 512)
    repeated = torch.from_numpy(w)[:, None].expand(-1, generator.num_layers, -1)
    images = draw(generator, w)
    assert images.shape == (2, 3, generator.resolution, generator.resolution)
    close(images, port.synthesis(state, repeated, noises(generator)))


def test_images_with_a_latent_per_layer_and_fresh_noise(both):
    generator, state, port = both
    w, keys = latents(2, generator.num_layers, 512), jax.random.split(jax.random.key(5), 2)
    close(draw(generator, w, keys), port.synthesis(state, torch.from_numpy(w), noises(generator, keys)))


def test_noise_belongs_to_the_image_not_to_the_batch():
    generator = stylegan.from_tensors(stylegan.random_tensors(16, width=1 / 16))
    w, keys = latents(3, 512), jax.random.split(jax.random.key(1), 3)
    together, alone, fixed = draw(generator, w, keys), draw(generator, w[1:2], keys[1:2]), draw(generator, w)
    np.testing.assert_allclose(together[1:2], alone, atol=1e-4)
    assert np.abs(together - fixed).max() > 0.1


def test_the_published_channels():
    expected = {4: 512, 8: 512, 16: 512, 32: 512, 64: 256, 128: 128, 256: 64, 512: 32, 1024: 16}
    assert stylegan.channels(1024) == expected
    assert stylegan2.channels(1024) == expected | {64: 512, 128: 256, 256: 128, 512: 64, 1024: 32}


@pytest.mark.parametrize("network", [stylegan, stylegan2])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), mostly_long([("bfloat16", 0.03), ("float16", 0.004)], ("bfloat16", 0.03))
)
def test_sixteen_bits_stay_near(network, dtype, tolerance):
    tensors = network.random_tensors(32, width=1 / 8)
    exact = np.asarray(draw(network.from_tensors(tensors), latents(2, 512)))
    rough = np.asarray(draw(network.from_tensors(tensors, dtype), latents(2, 512)), np.float32)
    assert np.sqrt(np.mean((rough - exact) ** 2) / np.mean(exact**2)) < tolerance


@pytest.mark.parametrize("network", [stylegan, stylegan2])
def test_jacobian_is_the_slope(network):
    with jax.enable_x64(True):
        generator = network.from_tensors(network.random_tensors(16, width=1 / 32), "float64")
        w, direction = jnp.asarray(latents(2, 1, 512), float)
        pixels = jax.random.normal(jax.random.key(0), (1, 3, 16, 16))
        value = jax.jit(lambda w: jnp.sum(generator.images(w) * pixels))
        step = 1e-5
        slope = (value(w + step * direction) - value(w - step * direction)) / (2 * step)
        assert float(jnp.sum(jax.jit(jax.grad(value))(w) * direction)) == pytest.approx(float(slope), rel=1e-5)


@pytest.mark.parametrize("kept", [0, 8], ids=["all blurred by their kernels", "the last alone"])
def test_what_multiplies_more_to_move_less_paints_the_same(kept):
    tensors = stylegan.random_tensors(32, seed=3, width=1 / 64)
    w, keys = latents(2, 512), jax.random.split(jax.random.key(5), 2)

    @jax.jit
    def painted(generator):
        images, pull_back = jax.vjp(lambda w: generator.images(w, keys), w)
        return images, pull_back(images**3)[0]

    plain = painted(stylegan.from_tensors(tensors, fused=64))  # too small for that
    quick = painted(stylegan.from_tensors(tensors, fused=8 + 3 * kept))
    for one, other in zip(quick, plain, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(other).max(), rtol=0)
