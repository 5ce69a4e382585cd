"""Both towers of CLIP against transformers' CLIPModel, random weights; preprocessing against PyTorch and Pillow."""

import jax
import numpy as np
import pytest
from PIL import Image

from dqd.latent.scorers import clip, text
from dqd.latent.scorers.preprocess import DEVIATION, MEAN, as_the_paper, properly
from dqd.latent.weights import clip_weights
from dqd.types import replace

torch = pytest.importorskip("torch", reason="parity needs PyTorch: pip install 'dqd[test]'")
transformers = pytest.importorskip("transformers", reason="parity needs transformers: pip install 'dqd[test]'")

SMALL = {
    "image": (128, 2),
    "text": (64, 2),
    "patch": 8,
    "positions": 17,
    "vocabulary": 1000,
    "length": 20,
    "features": 32,
}


def their_model(tensors, sizes, activation="quick_gelu", head_width=64):
    def tower(width, layers):
        return {
            "hidden_size": width,
            "num_hidden_layers": layers,
            "intermediate_size": 4 * width,
            "num_attention_heads": width // head_width,
            "hidden_act": activation,
        }

    side = int((sizes["positions"] - 1) ** 0.5) * sizes["patch"]
    config = transformers.CLIPConfig(
        vision_config=tower(*sizes["image"]) | {"patch_size": sizes["patch"], "image_size": side},
        text_config=tower(*sizes["text"])
        | {
            "vocab_size": sizes["vocabulary"],
            "max_position_embeddings": sizes["length"],
            "eos_token_id": sizes["vocabulary"] - 1,
        },
        projection_dim=sizes["features"],
    )
    model = transformers.CLIPModel(config).eval()
    state = {name: torch.from_numpy(np.array(array)) for name, array in tensors.items()}
    missing, extra = model.load_state_dict(state, strict=False)
    assert not extra
    assert all("position_ids" in name for name in missing)
    return model


def their_outputs(model, images, numbers):
    with torch.no_grad():
        out = model(pixel_values=torch.from_numpy(images), input_ids=torch.from_numpy(numbers).long())
    return out.image_embeds.numpy(), out.text_embeds.numpy(), out.logits_per_image.numpy()


def texts(sizes, count, seed=0):
    """Token numbers that end at different places."""
    random = np.random.default_rng(seed)
    numbers = np.zeros((count, sizes["length"]), np.int32)
    for row, end in zip(numbers, random.integers(2, sizes["length"], count), strict=True):
        row[:end] = random.integers(1, sizes["vocabulary"] - 1, end)
        row[end] = sizes["vocabulary"] - 1
    return numbers


apply = jax.jit(lambda tower, inputs: text.unit(tower(inputs)))
resized = jax.jit(as_the_paper, static_argnums=1)


def images(count, side, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 3, side, side)).astype(np.float32)


@pytest.mark.parametrize(("activation", "head_width"), [("quick_gelu", 64), ("gelu", 16)])
def test_small_towers_agree(activation, head_width):
    tensors = clip_weights.random_tensors(1, **SMALL)
    heads = None if head_width == 64 else (128 // head_width, 64 // head_width)
    model = clip_weights.from_tensors(tensors, activation=activation, **({"heads": heads} if heads else {}))
    pixels, numbers = images(3, model.image.resolution), texts(SMALL, 4)
    image, text, logits = their_outputs(their_model(tensors, SMALL, activation, head_width), pixels, numbers)
    np.testing.assert_allclose(apply(model.image, pixels), image, atol=1e-5)
    np.testing.assert_allclose(apply(model.text, numbers), text, atol=1e-5)
    ours = jax.jit(clip.CLIP.logits)(model, pixels, numbers)
    np.testing.assert_allclose(ours, logits, atol=1e-3)  # of up to 100
    assert np.ptp(logits) > 1


@pytest.mark.long
def test_full_size_agrees():
    sizes = SMALL | {"image": (768, 12), "text": (512, 12), "patch": 32, "positions": 50, "length": 77, "features": 512}
    tensors = clip_weights.random_tensors(2, **sizes)
    model = clip_weights.from_tensors(tensors)
    pixels, numbers = images(1, 224), texts(sizes, 2)
    image, text, _ = their_outputs(their_model(tensors, sizes), pixels, numbers)
    np.testing.assert_allclose(apply(model.image, pixels), image, atol=1e-4)
    np.testing.assert_allclose(apply(model.text, numbers), text, atol=1e-4)


def test_expected_shapes_are_those_of_the_published_model():
    config = transformers.CLIPConfig()  # ViT-B/32
    with torch.device("meta"):
        state = transformers.CLIPModel(config).state_dict()
    theirs = {name: tuple(tensor.shape) for name, tensor in state.items() if not name.endswith("position_ids")}
    assert clip_weights.expected_shapes() == theirs
    assert clip_weights.shapes_like(theirs) == theirs


@pytest.mark.parametrize("side", [64, 256])
def test_the_papers_resizing(side):
    pixels = images(2, side)
    exact = torch.from_numpy(pixels).double()  # in float32 torch loses places between pixels
    theirs = torch.nn.functional.interpolate(exact, size=(224, 224), mode="bilinear", align_corners=True)
    np.testing.assert_allclose(resized(pixels, 224), theirs, atol=1e-5)


def test_proper_preprocessing():
    pixels = 0.7 * images(2, 96)
    shares = np.clip((pixels + 1) / 2, 0, 1)
    smaller = np.array(
        [
            [np.asarray(Image.fromarray(plane).resize((32, 32), Image.Resampling.BICUBIC)) for plane in one]
            for one in shares
        ]
    )
    expected = (smaller - MEAN[:, None, None]) / DEVIATION[:, None, None]
    np.testing.assert_allclose(jax.jit(properly, static_argnums=1)(pixels, 32), expected, atol=1e-4)


def scorer(dtype="float32", proper=False):
    model = clip_weights.from_tensors(clip_weights.random_tensors(4, **SMALL), dtype)
    features = apply(model.text, texts(SMALL, 2))
    return text.PromptScorer(model.image, features, ("one", "two"), proper)


def test_a_score_is_one_over_the_cosine():
    judge, pixels = scorer(), images(3, 40)
    judge = replace(
        judge, texts=np.asarray(judge.texts) * np.array([[1], [-1]], np.float32)
    )  # one that fits, one that does not
    features = np.asarray(jax.jit(lambda judge, small: judge.tower(small))(judge, resized(pixels, 32)), np.float64)
    texts_ = np.asarray(judge.texts, np.float64)
    expected = np.linalg.norm(features, axis=1)[:, None] * np.linalg.norm(texts_, axis=1) / (features @ texts_.T)
    expected = np.where(expected > 0, expected, np.inf)  # 1 / cos would turn round there
    found = np.asarray(jax.jit(text.PromptScorer.scores)(judge, pixels))
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert 0 < np.isinf(found).sum() < found.size


@pytest.mark.parametrize("proper", [False, True])
def test_gradient_is_the_slope(proper):
    with jax.enable_x64(True):
        judge = scorer("float64", proper)
        pixels, direction = np.asarray(0.2 * images(2, 40)[:, None], np.float64)
        cosines = jax.jit(lambda pixels: jax.jvp(judge.cosines, (pixels,), (direction,)))
        _, slopes = cosines(pixels)
        step = 1e-6
        (ahead, _), (behind, _) = cosines(pixels + step * direction), cosines(pixels - step * direction)
        np.testing.assert_allclose(slopes, (np.asarray(ahead) - behind) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 0.02), ("float16", 0.003)])
def test_sixteen_bits_stay_near(dtype, tolerance):
    pixels = images(4, 32)
    cosines = jax.jit(text.PromptScorer.cosines)
    np.testing.assert_allclose(cosines(scorer(dtype), pixels), cosines(scorer(), pixels), atol=tolerance)
