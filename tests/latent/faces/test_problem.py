"""The domain of faces with its real networks: preview and full, half precision, noise, controls, a held-out judge."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.latent.problems import faces as problem
from dqd.latent.scorers import face_parser, faceres
from dqd.types import replace


def _solutions(count: int) -> np.ndarray:
    return np.clip(np.random.default_rng(7).standard_normal((count, 64)), -2, 2).astype(np.float32)


def test_a_preview_is_called_so_and_is_judged_by_the_full_network(faces: Path) -> None:
    found = problem.build(measures=("age", "-hat"), preview=True)
    assert "preview of 256 pixels" in found.title
    assert found.domain.generator.resolution == 256
    assert found.final is not None
    assert found.final.generator.resolution == 1024
    assert found.labels == ("hair: nearness to copper red (%)", "predicted age (years)", "minus hat (% of the frame)")
    assert found.grid.lower == (0.0, -32.0)
    full = problem.build(preview=False)
    assert full.final is None
    assert "preview" not in full.title


def test_a_preview_shows_the_same_face(faces: Path) -> None:
    """The full image, shrunk, and the preview of 256 pixels: 25 dB, so 0.11 of [-1, 1] apart."""
    found = problem.build(preview=256)
    x = _solutions(1)
    small, large = (domain.render(x)[0].astype(np.float64) for domain in (found.domain, found.final))
    large = large.reshape(256, 4, 256, 4, 3).mean(axis=(1, 3))
    assert np.sqrt(np.mean((small - large) ** 2)) < 20  # of 255
    assert np.corrcoef(small.ravel(), large.ravel())[0, 1] > 0.95


@pytest.mark.long
def test_bfloat16_changes_scores_little(faces: Path) -> None:
    x = jnp.asarray(_solutions(3))
    exact, rough = (
        jax.jit(lambda domain, x: domain.outputs(x))(problem.build(preview=128, dtype=dtype).domain, x)
        for dtype in ("float32", "bfloat16")
    )
    difference = np.abs(np.asarray(exact - rough))
    assert difference[:, 0].max() < 3  # redness, %
    assert difference[:, 1].max() < 5  # years
    assert difference[:, 2].max() < 3  # hair, % of the frame
    assert difference.max() > 0


def test_fresh_noise_differs_for_each_face_and_fixed_noise_does_not(faces: Path) -> None:
    generator = problem.generator()
    w = jnp.ones((2, 512)) * 0.1
    draw = jax.jit(lambda generator, w, keys: generator.images(w, keys))
    fixed = draw(generator, w, None)
    np.testing.assert_array_equal(fixed[0], fixed[1])
    fresh = draw(generator, w, jax.random.split(jax.random.key(1), 2))
    assert 1e-4 < float(jnp.mean(jnp.abs(fresh[0] - fresh[1]))) < 0.2
    assert float(jnp.mean(jnp.abs(fresh[0] - fixed[0]))) < 0.2


def test_free_spaces_reach_the_same_generator(faces: Path) -> None:
    network = problem.generator()
    guarded, free, mapped = (problem.make_space(name, network) for name in "pwz")
    w = mapped.latents(jnp.asarray(np.random.default_rng(3).standard_normal((200, 512)), jnp.float32))
    np.testing.assert_array_equal(free.latents(w), w)
    whitened = replace(guarded, radius=None)
    kept = whitened.latents(whitened.solutions(w))
    assert 0.8 < whitened.explained < 0.95
    assert float(jnp.mean((kept - w) ** 2) / jnp.mean((w - w.mean(axis=0)) ** 2)) < 0.3


def test_the_guarded_space_ends_at_its_radius(faces: Path) -> None:
    space = problem.make_space("p", problem.generator())
    box = replace(space, radius=None)
    corner, near = jnp.full((1, 64), 2.0), jnp.full((1, 64), 0.5)  # 16 and 4 from the mean
    np.testing.assert_allclose(space.latents(corner), box.latents(corner * 5.6 / 16), atol=1e-5)
    np.testing.assert_allclose(space.latents(near), box.latents(near), atol=1e-6)


def test_an_age_network_that_no_search_saw_is_asked_and_agrees(faces: Path) -> None:
    found = problem.build(preview=256)
    assert [(o.judge, o.score, o.of, o.tolerance) for o in found.opinions] == [("faceres", "age", 1, 10.0)]
    assert problem.build(measures=("hair-area", "hat"), preview=256).opinions == ()
    domain = replace(found.domain, images=8)
    looked = jax.jit(lambda domain, x: domain.evaluate(x))(found.witness.beside(domain), jnp.asarray(_solutions(16)))
    searched, judged = np.asarray(looked.measures[:, 0]), np.asarray(looked.fields["age_by_faceres"])
    assert np.corrcoef(searched, judged)[0, 1] > 0.75
    assert np.mean(np.abs(searched - judged)) < 12


def test_who_searches_by_identity_has_seen_the_second_network(faces: Path) -> None:
    found = problem.build(objective="identity", measures=("age",), preview=128)
    assert found.opinions == ()
    assert "identity" in found.domain.names
    with pytest.raises(ValueError, match="judges: faceres is what `identity` looks with"):
        problem.build(objective="identity", measures=("age",), preview=128, judges=["faceres"])


def test_faces_that_are_among_the_others_are_like_them(faces: Path) -> None:
    """A face is nearer to itself than to others: each of the described ones has one at 0 degrees."""
    scorer = problem.scorers(wanted={"identity"})[-1]
    angles = np.asarray(faceres.apart(scorer.others[:8], scorer.others))
    np.testing.assert_allclose(np.diag(angles), 0, atol=0.2)
    assert 40 < np.median(angles) < 80


@pytest.mark.parametrize("gains", [(1.0, 1.0, 1.0), (0.9, 0.6, 1.0), (0.7, 0.8, 0.5)])
def test_hair_relative_to_skin_does_not_know_the_colour_of_the_light(gains: tuple[float, ...]) -> None:
    """Half hair, a quarter skin and background each, under lamps of several colours."""
    parts, colours = np.zeros((1, 19, 4, 4), np.float32), np.zeros((1, 3, 4, 4), np.float32)
    areas = {17: (slice(0, 2), slice(None)), 1: (slice(2, 4), slice(0, 2)), 0: (slice(2, 4), slice(2, 4))}
    for part, colour in {17: (0.6, 0.3, 0.2), 1: (0.8, 0.6, 0.5), 0: (0.4, 0.5, 0.7)}.items():
        parts[0, part][areas[part]] = 1
        colours[0][:, *areas[part]] = np.reshape(np.multiply(colour, gains), (3, 1, 1))
    for name, expected in (("hair-to-skin", 2 * 3 / 4), ("hair-to-background", 2 * 5 / 4)):
        found = face_parser._score(name, jnp.asarray(parts), jnp.asarray(colours))
        assert float(found[0]) == pytest.approx(100 * np.log(expected) * 0.5 / 0.51 * 0.25 / 0.26, rel=0.06)
