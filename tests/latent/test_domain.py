"""The mechanism on a toy generator: jacobians, passes, noise, names, pictures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from latent import toys
from numpy.testing import assert_allclose

import dqd
from dqd.latent import Cutouts, reevaluate
from dqd.latent.domain import solution_keys
from dqd.latent.views import Views, balanced
from dqd.types import replace

OPTIONS = {
    "plain": {},
    "sequential pull-backs": {"images": 2},
    "one image at a time": {"images": 1},
    "negated and penalised": {"objective": "-contrast", "norm_penalty": 0.3, "measures": ("-upper", "lower")},
    "cut-outs": {"cutouts": Cutouts(count=3, size=5)},
}


@pytest.mark.x64
@pytest.mark.parametrize("name", OPTIONS)
def test_jacobians_equal_finite_differences(name):
    domain = toys.domain(**OPTIONS[name])
    if domain.cutouts is not None:  # every solution has crops of its own: along a line they must stay the same
        domain = replace(domain, cutouts=Cutouts(count=3, size=5, smallest=1.0, largest=1.0))
    report = dqd.check_jacobian(domain, toys.solutions(1), step=1e-3)
    assert report, report.message
    assert np.max(report.errors) < 1e-6


@pytest.mark.x64
def test_a_batch_has_the_jacobians_of_its_members():
    domain, solutions = toys.domain(), toys.solutions(5)
    found = jax.jit(domain.evaluate_with_jacobian)(solutions)
    each = jax.vmap(jax.jacobian(lambda x: jnp.concatenate([jnp.reshape(part, -1) for part in domain.score(x)])))
    assert_allclose(found.jacobian, jax.jit(each)(solutions), rtol=1e-9)


@pytest.mark.parametrize(("images", "fresh"), [(1, False), (3, True)])
def test_the_length_of_a_pass_never_changes_a_value(images, fresh):
    whole, short = toys.domain(images=100, fresh=fresh), toys.domain(images=images, fresh=fresh)
    solutions = toys.solutions(7)
    expected, found = (jax.jit(d.evaluate_with_jacobian)(solutions) for d in (whole, short))
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    plain = jax.jit(short.evaluate)(solutions)
    assert plain.objective.shape == (7,)
    assert_allclose(plain.measures, expected.measures, rtol=1e-5, atol=1e-6)


def test_the_archive_stores_an_affine_transform_of_the_raw_objective():
    raw, stored = toys.domain(objective="-contrast"), toys.domain(objective="-contrast", stored=(10.0, 100.0))
    one, other = (jax.jit(domain.evaluate_with_jacobian)(toys.solutions(3)) for domain in (raw, stored))
    assert_allclose(other.objective, 10 * one.objective + 100, rtol=1e-6)
    assert_allclose(other.jacobian, one.jacobian, rtol=1e-6)


def test_the_penalty_is_the_mean_square_of_the_solution():
    solutions = toys.solutions(3)
    free, kept = (toys.evaluate(toys.domain(norm_penalty=p), solutions).objective for p in (0.0, 0.5))
    assert_allclose(free - kept, 0.5 * np.mean(np.square(solutions), axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "contrats"}, ["unknown objective 'contrats'", "'contrast'", "upper, lower"]),
        ({"measures": ("upper", "-lowr")}, ["unknown measure 'lowr'", "did you mean 'lower'"]),
        ({"images": 0}, ["images: expected at least 1 image"]),
        ({"measures": ("upper", "upper")}, ["measures: 'upper' twice; a map spreads over different scores"]),
        ({"measures": ("upper", "-upper")}, ["measures: 'upper' twice"]),
    ],
)
def test_mistakes_are_answered_with_what_there_is(options, words):
    with pytest.raises(ValueError, match=r"unknown|images|measures") as caught:
        toys.domain(**options)
    for word in words:
        assert word in str(caught.value)


def test_what_is_held_within_a_range_keeps_others_out():
    solutions = toys.solutions(8)
    lower = np.asarray(toys.evaluate(toys.domain(measures=("lower",)), solutions).measures)[:, 0]
    ends = np.quantile(lower, [0.2, 0.7]).tolist()
    domain = toys.domain(hold={"lower": ends}, measures=("upper",), images=3)
    expected = (lower >= ends[0]) & (lower <= ends[1])
    assert expected.sum() == 3
    found = toys.evaluate(domain, solutions)
    assert found.measures.shape == (8, 1)
    assert found.feasible.tolist() == expected.tolist()
    assert jax.jit(domain.evaluate_with_jacobian)(solutions).feasible.tolist() == expected.tolist()
    emitter, grid = dqd.map_elites(0.5, batch_size=8), dqd.Grid([-1], [1], [6])
    result = dqd.illuminate(domain, emitter, grid, x0=jnp.zeros(4), iterations=4, progress=False)
    kept = np.asarray(toys.evaluate(toys.domain(measures=("lower",)), result.elites.solutions).measures)[:, 0]
    assert len(kept)
    assert np.all((kept >= ends[0] - 1e-5) & (kept <= ends[1] + 1e-5))
    with pytest.raises(ValueError, match="unknown score to hold 'lowr'"):
        toys.domain(hold={"lowr": (0, 1)})
    with pytest.raises(ValueError, match="hold: lower: expected a lower and an upper end, got 1 and 1"):
        toys.domain(hold={"lower": (1, 1)})


# Views ----------------------------------------------------------------------------------------------------------------


def test_a_score_is_the_mean_over_the_views():
    images = jax.random.uniform(jax.random.key(5), (2, 3, 50, 50), minval=-1)
    plain = toys.Light()
    flipped = Views(plain, ("flip",))
    assert_allclose(flipped.scores(images), (plain.scores(images) + plain.scores(images[..., ::-1])) / 2, rtol=1e-5)
    expected = [plain.scores(part) for part in (images, images[:, :, 2:, 2:], images[:, :, :48, :48])]
    assert_allclose(Views(plain, ("crop",)).scores(images), np.mean(expected, axis=0), rtol=1e-5)
    assert Views(plain, ("noise", "flip")).names == plain.names
    noisy = Views(plain, ("noise",)).scores(images)
    assert_allclose(noisy[:, 2], plain.scores(images)[:, 2] + 0.05**2 / 2, atol=2e-3)  # half of it in a mean of two
    with pytest.raises(ValueError, match="unknown view 'flop'; did you mean 'flip'"):
        Views(plain, ("flop",))


def test_white_balance_takes_the_colour_of_the_light_away():
    shares = jax.random.uniform(jax.random.key(1), (1, 3, 20, 20), maxval=0.5)
    shares = shares / shares.mean(axis=(2, 3), keepdims=True) * 0.25
    lamp = jnp.array([1.2, 0.8, 1.0])[:, None, None]
    assert_allclose(balanced(2 * shares * lamp - 1), 2 * shares - 1, atol=0.01)


# Noise ----------------------------------------------------------------------------------------------------------------


def test_fresh_noise_is_a_pure_function_of_the_solution_and_the_salt():
    domain, solutions = toys.domain(fresh=True), toys.solutions(6)
    first = toys.evaluate(domain, solutions).objective
    assert_allclose(first[::-1], toys.evaluate(domain, solutions[::-1]).objective, rtol=1e-5)
    assert_allclose(first[:1], toys.evaluate(domain, solutions[:1]).objective, rtol=1e-5)
    other = toys.evaluate(replace(domain, salt=1), solutions).objective
    assert np.all(np.abs(first - other) > 1e-6)
    assert np.all(np.abs(first - toys.evaluate(toys.domain(), solutions).objective) > 1e-6)


def test_keys_differ_when_one_bit_or_the_order_differs():
    x = np.random.default_rng(0).normal(size=16).astype(np.float32)
    nearly = x.copy()
    nearly[3] = np.nextafter(nearly[3], 1)
    rows = jnp.asarray(np.stack([x, nearly, x[::-1], -x, 0 * x]))
    keys = [tuple(key) for key in np.asarray(jax.random.key_data(solution_keys(rows, 0, "noise"))).tolist()]
    assert len(set(keys)) == 5
    again = np.asarray(jax.random.key_data(solution_keys(rows[:1], 0, "noise"))).tolist()
    assert keys[0] == tuple(again[0])


def test_noise_looks_random_over_many_solutions():
    keys = solution_keys(jax.random.normal(jax.random.key(2), (4000, 8)), 0, "noise")
    normals = np.asarray(jax.vmap(lambda key: jax.random.normal(key))(keys))
    assert abs(normals.mean()) < 5 / np.sqrt(4000)
    assert abs(normals.std() - 1) < 0.05


def test_lucky_elites_are_found_out_by_other_noise():
    domain = replace(toys.domain(fresh=True), generator=replace(toys.domain().generator, strength=1.0))
    grid = dqd.Grid((-1, -1), (1, 1), (3, 3))
    result = dqd.illuminate(
        domain, dqd.map_elites(0.01), grid, x0=jnp.zeros(4), iterations=30, initial_sigma=0.01, progress=False
    )
    again = reevaluate(result, domain, salts=range(1, 17))
    assert 0 < len(again) <= len(result.elites)
    assert float(again.metrics.mean) < result.mean - 0.05
    same = reevaluate(result.archive, domain, salts=(0,))
    assert_allclose(same.objective, result.archive.objective, rtol=1e-4)


# Cut-outs -------------------------------------------------------------------------------------------------------------


def test_a_crop_of_everything_is_the_resized_image():
    images = jax.random.normal(jax.random.key(0), (2, 3, 8, 8))
    cut = Cutouts(count=2, size=8, smallest=1.0, largest=1.0)
    crops = jax.jit(cut.crops)(images, jax.random.split(jax.random.key(1), 2))
    assert_allclose(crops.reshape(2, 2, 3, 8, 8), jnp.broadcast_to(images[:, None], (2, 2, 3, 8, 8)), atol=1e-5)


def test_crops_of_a_ramp_are_ramps_inside_it():
    """The first and the last pixel of a crop tell where it lies: inside the image, and of the asked size."""
    ramp = jnp.broadcast_to(jnp.arange(64.0), (1, 1, 64, 64))
    cut = Cutouts(count=50, size=16, smallest=0.25, largest=0.81)
    crops = np.asarray(jax.jit(cut.crops)(ramp, jax.random.split(jax.random.key(3), 1)))
    row = crops[:, 0, 8]  # (50, 16)
    step = np.diff(row[:, 2:-2], axis=1)
    assert_allclose(step, np.broadcast_to(step.mean(axis=1, keepdims=True), step.shape), rtol=0.05)
    side = step.mean(axis=1) * 16
    assert side.min() > 0.5 * 64 - 0.5
    assert side.max() < 0.9 * 64 + 0.5
    assert side.max() - side.min() > 10
    assert_allclose(crops.std(axis=2), 0, atol=1e-3)  # constant from top to bottom


def test_cutouts_differentiate_into_every_part_of_the_image():
    cut, keys = Cutouts(count=8, size=4), jax.random.split(jax.random.key(0), 1)
    slope = jax.jit(jax.grad(lambda images: cut.crops(images, keys).sum()))(jnp.zeros((1, 1, 8, 8)))
    assert float(jnp.min(slope)) >= 0
    assert int(jnp.sum(slope > 0)) >= 60
    assert_allclose(cut.mean(jnp.arange(16.0)[:, None])[:, 0], [3.5, 11.5])


# Pictures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_rendered_images_are_those_that_were_judged(channels):
    weights = jax.random.normal(jax.random.key(0), (4, channels * 36))
    domain = replace(toys.domain(images=2), generator=toys.Painter(weights, channels=channels))
    solutions = toys.solutions(5)
    pictures = domain.render(solutions)
    assert pictures.shape == (5, 6, 6, 3)
    assert pictures.dtype == np.uint8
    images = np.asarray(domain.generator.images(solutions, None))
    assert_allclose(pictures[:, :, :, 0], np.round((images[:, 0] + 1) * 127.5), atol=1)
    assert domain.render(np.zeros((0, 4), np.float32)).shape == (0, 6, 6, 3)
