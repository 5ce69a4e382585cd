"""Scores of texts: closed forms, at cosines that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.latent.scorers.text import KINDS, PromptScorer, kind_of, scorer, texts_of
from dqd.types import pytree

COSINES = np.array([[0.3, 0.1, 0.25], [-0.2, 0.4, 0.05], [0.9, -0.6, 0.0]])  # of three images with three texts
ANGLES = np.degrees(np.arccos(COSINES))


@pytree
class Eye:
    """Sees the features that are painted as the first row of each image."""

    resolution = 4

    def prepare(self, images):
        return images

    def __call__(self, images):
        return images[:, 0, 0]


def looking(kinds, scale=100.0):
    """Texts are axes, so the cosines are the features of images of length 1."""
    names = tuple(f"prompt {i}" for i in range(len(kinds)))
    count = sum(2 if kind == "contrast" else 1 for kind in kinds)
    return PromptScorer(Eye(), jnp.eye(4)[:count], names, True, tuple(kinds), scale)


def images():
    rest = np.sqrt(1 - np.sum(COSINES**2, axis=1, keepdims=True).clip(0, 1))
    rows = np.concatenate([COSINES, rest], axis=1)
    rows[2] = [0.9, -0.6, 0.0, 0.0] / np.hypot(0.9, 0.6)
    return jnp.asarray(np.broadcast_to(rows[:, None, None], (3, 3, 4, 4)), jnp.float32)


def test_cosine_and_angle():
    found = looking(["cosine", "angle", "cosine"]).scores(images())[:2]
    np.testing.assert_allclose(found[:, 0], 100 * COSINES[:2, 0], rtol=1e-4)
    np.testing.assert_allclose(found[:, 1], ANGLES[:2, 1], rtol=1e-4)
    np.testing.assert_allclose(found[:, 2], 100 * COSINES[:2, 2], rtol=1e-4)


def test_a_contrast_is_the_log_odds_of_the_first_text():
    found = looking(["contrast", "cosine"], scale=20.0).scores(images())[:2]
    np.testing.assert_allclose(found[:, 0], 20 * (COSINES[:2, 0] - COSINES[:2, 1]), rtol=1e-4)
    np.testing.assert_allclose(found[:, 1], 100 * COSINES[:2, 2], rtol=1e-4)
    shares = jax.nn.softmax(20 * jnp.asarray(COSINES[:2, :2]), axis=1)  # as the model would tell both texts apart
    np.testing.assert_allclose(jax.nn.sigmoid(found[:, 0]), shares[:, 0], rtol=1e-3)


def test_the_papers_loss_is_infinite_where_it_would_turn_round():
    found = np.asarray(looking(["paper"] * 3).scores(images()))
    np.testing.assert_allclose(found[0], 1 / COSINES[0], rtol=1e-4)
    np.testing.assert_array_equal(np.isinf(found[1:]), COSINES[1:] <= 0)
    stored = KINDS["paper"].stored[0] * -found + KINDS["paper"].stored[1]
    assert stored[np.isfinite(found)].max() <= 90  # 10 (10 - 1), of a perfect match


@pytest.mark.parametrize("kind", ["paper", "cosine", "angle"])
def test_slopes_are_finite_everywhere(kind):
    judge = looking([kind] * 3)
    slopes = jax.vmap(jax.grad(lambda image: judge.scores(image[None])[0, 0]))(images())
    assert np.all(np.isfinite(slopes))


def test_better_is_what_the_sign_says():
    """A text that fits better has the higher objective, whatever the kind."""
    for kind in ("paper", "cosine", "angle"):
        scores = np.asarray(looking([kind] * 3).scores(images()))[0]
        scale, offset = KINDS[kind].stored
        stored = scale * (-scores if KINDS[kind].sign else scores) + offset
        np.testing.assert_array_equal(np.argsort(stored), np.argsort(COSINES[0]))


def test_prompts():
    assert texts_of("a / b") == ("a", "b")
    assert kind_of('"a young face" / "an old face"', "angle") == "contrast"
    assert kind_of("and/or", "angle") == "angle"
    with pytest.raises(ValueError, match="expected one text, or two with a stroke"):
        texts_of("a / b / c")
    with pytest.raises(ValueError, match="unknown text score 'cosin'; did you mean 'cosine'"):
        kind_of("a", "cosin")
    asked = []
    made = scorer(Eye(), lambda texts: asked.extend(texts) or jnp.eye(4)[: len(texts)], ["a / b", "c"], kind="cosine")
    assert (asked, made.kinds, made.names) == (["a", "b", "c"], ("contrast", "cosine"), ("a / b", "c"))
    for wrong in ("", "-a", "a / ", '"" / b'):
        with pytest.raises(ValueError, match=r"prompt: expected words|expected one text"):
            scorer(Eye(), lambda texts: jnp.eye(4)[: len(texts)], [wrong])
