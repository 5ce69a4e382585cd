"""Generators and scorers in PyTorch: the same numbers as their twins in JAX, alone and mixed, in every use."""

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from latent import toys
from numpy.testing import assert_allclose

import dqd
from dqd.domains import Problem
from dqd.domains.rejudge import rejudged
from dqd.latent import Cutouts, Identity, Judge, LatentDomain, TorchGenerator, TorchScorer, Whitened, held_out
from dqd.types import replace

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

WEIGHTS = jax.random.normal(jax.random.key(0), (4, 3 * 36))
GRID = dqd.Grid((-1, -1), (1, 1), (5, 5))
EMITTER = dqd.cma_mega(sigma=0.3, batch_size=8)


class Painter(torch.nn.Module):
    """As `toys.Painter`, its images from 0 to 1."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.from_numpy(np.array(WEIGHTS)))

    def forward(self, latents):
        return (torch.tanh(latents @ self.weights).reshape(-1, 3, 6, 6) + 1) / 2


def light(images):
    """As `toys.Light`."""
    rows = images.mean(dim=(1, 3))
    half = rows.shape[1] // 2
    contrast = images.var(dim=(1, 2, 3), unbiased=False)
    return torch.stack([rows[:, :half].mean(1), rows[:, half:].mean(1), contrast], dim=1)


GENERATORS = {"jax": lambda: toys.Painter(WEIGHTS), "torch": lambda: TorchGenerator(Painter(), 4, values=(0, 1))}
SCORERS = {"jax": toys.Light, "torch": lambda: TorchScorer(light, ("upper", "lower", "contrast"))}
PARTS = [("torch", "torch"), ("torch", "jax"), ("jax", "torch")]


def domain(generator="torch", scorer="torch", **options):
    options = {"objective": "-contrast", "measures": ("upper", "-lower"), "stored": (10.0, 100.0)} | options
    sample = np.random.default_rng(0).normal(size=(50, 4)) * [2, 1, 1, 0.5]
    space = Whitened.fit(sample, 3, slope=0.3)
    return LatentDomain(space, GENERATORS[generator](), (SCORERS[scorer](), toys.Never()), **options)


def problem(**options):
    return Problem(domain(**options), GRID, jnp.zeros(3), "toy", ("contrast", "upper", "lower"), bounds=(-2.0, 2.0))


@pytest.mark.parametrize(("generator", "scorer"), PARTS)
@pytest.mark.parametrize("images", [100, 2])
def test_values_and_jacobians_are_those_of_the_twins_in_jax(generator, scorer, images):
    options = {"norm_penalty": 0.3, "hold": {"upper": (-0.5, 0.1)}, "images": images}
    x = jax.random.normal(jax.random.key(2), (5, 3))
    twin = jax.jit(domain("jax", "jax", **options).evaluate_with_jacobian)(x)
    ours = domain(generator, scorer, **options)
    for found in (ours.evaluate(x), ours.evaluate_with_jacobian(x)):
        assert_allclose(found.objective, twin.objective, rtol=1e-5)
        assert_allclose(found.measures, twin.measures, atol=1e-5)
        assert found.feasible.tolist() == twin.feasible.tolist()
    assert_allclose(found.jacobian, twin.jacobian, atol=1e-5)
    np.testing.assert_array_equal(ours.render(x), domain("jax", "jax").render(x))


def test_a_search_is_the_same_as_in_jax():
    jaxed, torched = (
        dqd.illuminate(problem(generator=kind, scorer=kind), EMITTER, iterations=6, progress=False).elites
        for kind in GENERATORS
    )
    np.testing.assert_array_equal(jaxed.cell, torched.cell)
    assert_allclose(jaxed.objective, torched.objective, rtol=1e-3)


def test_judges_of_either_kind_look_at_images_of_either_kind():
    for generator, judge in (*PARTS, ("jax", "jax")):
        given = held_out(
            problem(generator=generator, scorer="jax", norm_penalty=0.1),
            Judge("b", SCORERS[judge](), {"upper": 0.1, "contrast": 0.1}),
        )
        result = dqd.illuminate(given, EMITTER, iterations=3, progress=False)
        assert_allclose(result.elites.fields["upper_by_b"], result.elites.measures[:, 0], atol=1e-5)
        assert_allclose(result.elites.fields["contrast_by_b"], result.elites.objective, atol=1e-3)
        assert result.agreement.share == 100.0


def test_elites_are_judged_again_by_models_in_torch():
    given = problem(scorer="torch", generator="torch")
    stern = replace(given, final=replace(given.domain, norm_penalty=0.4))
    result = dqd.illuminate(stern, EMITTER, iterations=3, progress=False)
    assert result.mean < result.provisional.mean
    again = rejudged(result.archive, [stern.final])
    assert_allclose(again.objective, result.archive.objective, rtol=1e-6)


def test_a_run_goes_on_and_another_model_is_noticed(tmp_path):
    whole = dqd.illuminate(problem(), EMITTER, iterations=6, progress=False)
    dqd.illuminate(problem(), EMITTER, iterations=3, out=tmp_path / "run", progress=False)
    resumed = dqd.illuminate(problem(), EMITTER, iterations=6, out=tmp_path / "run", progress=False)
    np.testing.assert_array_equal(whole.elites.objective, resumed.elites.objective)
    other = Painter()
    torch.nn.init.zeros_(other.weights)
    changed = replace(problem().domain, generator=TorchGenerator(other, 4, values=(0, 1)))
    with pytest.raises(ValueError, match=r"generator\.weights: \w+ there, \w+ here"):
        dqd.illuminate(replace(problem(), domain=changed), EMITTER, iterations=6, out=tmp_path / "run", progress=False)


def test_images_need_not_be_square():
    wide = TorchGenerator(lambda w: torch.tanh(w).reshape(-1, 1, 1, 4).repeat(1, 3, 2, 3), 4)
    made = LatentDomain(Identity(4), wide, (SCORERS["torch"](),), "contrast", ("upper",))
    assert made.render(np.ones((3, 4), np.float32)).shape == (3, 2, 12, 3)
    assert made.image_shape == (2, 12)


def test_jacobians_and_probes_take_such_a_domain():
    assert dqd.check_jacobian(domain(), np.array([0.3, -0.2, 0.1], np.float32))
    assert dqd.probe(domain(), np.zeros(3), GRID).sigma is not None


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: TorchGenerator(3, 4), TypeError, "generator: expected a function of tensors or a module, got int"),
        (lambda: dqd.latent.problem(Painter(), [], "a", {}), TypeError, "generator: expected a pytree, .*TorchGener"),
        (lambda: Judge("second", Painter(), {"a": 1.0}), TypeError, "scorer: expected a pytree, .* got Painter"),
        (lambda: TorchGenerator(Painter(), 4, values=(1, 0)), ValueError, "values: expected those of black and white"),
        (lambda: domain(fresh=True), ValueError, "fresh noise: for parts in JAX; a TorchGenerator must do without"),
        (lambda: domain(cutouts=Cutouts(2, 3)), ValueError, "cut-outs: for parts in JAX"),
        (lambda: _scored(lambda images: images.mean()), TypeError, "scorer: expected 2 rows for 2"),
        (lambda: _scored(lambda images: images.mean((2, 3))), ValueError, r"scores \(b, 2\), one for each of a, b"),
        (lambda: _scored(lambda images: images.data.mean((2, 3))[:, :2]), TypeError, "what the scorer returns cannot"),
        (lambda: _made(lambda w: w), ValueError, r"expected images \(b, 1 or 3, height, width\), got \(2, 4\)"),
        (lambda: _made(torch.nn.Sequential(torch.nn.Dropout())), TypeError, "is in train mode"),
        (
            lambda: TorchGenerator(_broken(), 4),
            ValueError,
            "generator: NaN or infinity in 0.bias; the training diverged",
        ),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_what_a_generator_says_itself_comes_with_what_it_was_given():
    def fails(latents):
        raise KeyError("style")

    with pytest.raises(KeyError, match="style") as caught:
        _made(fails)
    assert caught.value.__notes__ == ["the generator was given a batch of shape (2, 4)"]


@pytest.mark.parametrize(("seed", "warnings"), [(None, 1), (0, 0)])
def test_a_generator_that_draws_random_numbers_is_told_so_once(seed, warnings):
    def noisy(latents):
        if seed is not None:
            torch.manual_seed(seed)
        return torch.randn(len(latents), 3, 6, 6) + latents.mean()

    generator = TorchGenerator(noisy, 4)
    with pytest.warns(UserWarning, match="random numbers") if warnings else nullcontext([]) as told:
        for _ in range(2):
            generator.images(np.ones((2, 4), np.float32))
    assert [str(each.message)[:38] for each in told] == ["generator: it draws random numbers, so"] * warnings


def _broken():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3))
    model[0].bias.data[1] = float("nan")
    return model


def _scored(function):
    made = LatentDomain(Identity(4), GENERATORS["torch"](), (TorchScorer(function, ("a", "b")),), "a", ("b",))
    return made.evaluate_with_jacobian(np.ones((2, 4), np.float32))


def _made(function):
    made = LatentDomain(Identity(4), TorchGenerator(function, 4), (toys.Light(),), "upper", ("lower",))
    return made.evaluate(np.ones((2, 4), np.float32))
