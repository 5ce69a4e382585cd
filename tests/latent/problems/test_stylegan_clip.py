"""The paper's problem: prompts, axes and scales, put together from small networks with random files."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import Jitted, mostly_long

import dqd
from dqd.latent.generators import stylegan, stylegan2
from dqd.latent.problems.stylegan_clip import PROMPTS, Prompts, assemble, build
from dqd.latent.scorers.tokenizer import NUM_MERGES, Tokenizer
from dqd.latent.weights import clip_weights, files

SIZES = {"image": (64, 1), "text": (64, 1), "patch": 8, "positions": 5, "length": 77, "features": 16}
MERGES = [(chr(0x4E00 + i // 256), chr(0x100 + i % 256)) for i in range(NUM_MERGES)]  # made up: nothing is merged
PROMPT = Prompts("one", ("two", "three"))


@pytest.fixture(scope="module")
def networks():
    generator = stylegan.from_tensors(stylegan.random_tensors(8, width=1 / 64))
    return generator, clip_weights.from_tensors(clip_weights.random_tensors(3, **SIZES)), Tokenizer(MERGES)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """As `dqd convert` fills it."""
    folder = tmp_path_factory.mktemp("weights")
    files.write(folder / "generator.safetensors", stylegan2.random_tensors(8, width=1 / 64), {"kind": "stylegan2"})
    files.write(folder / "clip.safetensors", clip_weights.random_tensors(3, **SIZES), {"kind": "clip"})
    lines = [" ".join(pair) for pair in MERGES]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(lines) + "\n")
    return folder


def test_the_papers_prompts_letter_by_letter():
    blonde, child = "A woman with long blonde hair.", "A small child."
    assert {name: (p.objective, *p.measures) for name, p in PROMPTS.items()} == {
        "elon": ("Elon Musk with short hair.", "An man with blue eyes.", "A person with red hair."),
        "beyonce": ("A photo of Beyonce", blonde, child),
        "lopez": ("A photo of Jennifer Lopez", blonde, child),
        "lopez-frowning": ("A photo of Jennifer Lopez", blonde, "A frowning person"),
    }


def test_stored_objective_and_measures(networks):
    problem = assemble(*networks, PROMPT)
    assert not problem.domain.fresh
    solutions = jax.random.normal(jax.random.key(0), (3, 512))
    generator, model, tokenizer = networks
    numbers = jnp.asarray(tokenizer.batch(["one", "two", "three"]))
    (scorer,) = problem.domain.scorers
    cosines = jax.jit(lambda scorer, generator: scorer.cosines(generator.images(solutions)))(scorer, generator)
    found = jax.jit(lambda domain: domain.evaluate(solutions))(problem.domain)
    np.testing.assert_allclose(found.objective, 10 * (10 - 1 / cosines[:, 0]), rtol=1e-4)
    np.testing.assert_allclose(found.measures, 1 / cosines[:, 1:], rtol=1e-4)
    texts = jax.jit(lambda tower: tower(numbers))(model.text)
    np.testing.assert_allclose(scorer.texts, texts / jnp.linalg.norm(texts, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_array_equal(problem.x0, np.zeros(512))
    np.testing.assert_array_equal(problem.grid.lower, [0, 0])
    np.testing.assert_array_equal(problem.grid.upper, [6, 6])
    assert problem.grid.shape == (200, 200)
    assert problem.labels == ("one", "two", "three")


@pytest.mark.parametrize("space", mostly_long(["w", "w+", "sphere"], "w+"))
def test_jacobian_is_the_slope(networks, space):
    problem = assemble(*networks, PROMPT, space=space, fresh_noise=False)
    domain, x = problem.domain, jax.random.normal(jax.random.key(1), problem.x0.shape)
    direction = jax.random.normal(jax.random.key(2), x.shape)
    jacobian = jax.jit(domain.evaluate_with_jacobian)(x[None]).jacobian[0]
    outputs = jax.jit(domain.outputs)
    step = 3e-3
    ahead, behind = outputs(jnp.stack([x + step * direction, x - step * direction]))
    np.testing.assert_allclose(jacobian @ direction, (ahead - behind) / (2 * step), rtol=0.05, atol=0.05)


def test_fresh_noise_differs_by_salt_and_not_by_call(networks):
    problem = assemble(*networks, PROMPT, fresh_noise=True)
    domain = problem.domain
    assert [judge.salt for judge in problem.judges] == [1, 2, 3, 4, 5, 6, 7, 8]  # luck does not count
    solutions = jax.random.normal(jax.random.key(0), (2, 512))
    evaluate = jax.jit(lambda domain, x: domain.evaluate(x).objective)
    first, again = evaluate(domain, solutions), evaluate(domain, solutions)
    other = evaluate(dqd.types.replace(domain, salt=1), solutions)
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


def test_a_search_from_a_directory(directory):
    problem = build("lopez", measures=["a dog", "a cat"], weights=directory, resolution=20)
    assert problem.labels == ("A photo of Jennifer Lopez", "a dog", "a cat")
    with pytest.warns(UserWarning, match="outside the grid"):  # random weights
        result = dqd.illuminate(
            problem.domain,
            dqd.cma_mega_adam(sigma=0.002, learning_rate=0.002, batch_size=5),
            problem.grid,
            x0=problem.x0,
            iterations=3,
            progress=False,
        )
    assert result.evaluations == 15
    assert result.nonfinite == 0
    assert problem.domain.render(result.archive.elites.solutions[:1]).shape == (1, 8, 8, 3)


def test_bad_input_is_named(directory, networks, tmp_path):
    with pytest.raises(ValueError, match="unknown prompt set 'elom'; did you mean 'elon'"):
        build("elom", weights=directory)
    with pytest.raises(ValueError, match="weights: lsi-stylegan needs those of StyleGAN and CLIP"):
        build("elon")
    with pytest.raises(ValueError, match="unknown space 'q'"):
        build(weights=directory, space="q")
    with pytest.raises(ValueError, match="unknown dtype 'float8'"):
        build(weights=directory, dtype="float8")
    with pytest.raises(FileNotFoundError, match=r"no generator\.safetensors and no clip\.safetensors; `dqd convert"):
        build(weights=tmp_path)
    with pytest.raises(ValueError, match="prompt: expected words"):
        assemble(*networks, Prompts("one", ("", "two")))
    with pytest.raises(ValueError, match="prompt: expected words"):  # not the set's own prompt instead
        build(weights=directory, objective="")
    with pytest.raises(ValueError, match=r"prompt: expected text in UTF-8, got 'caf\\udce9'"):
        build(weights=directory, objective="caf\udce9")
    small = clip_weights.from_tensors(clip_weights.random_tensors(3, **SIZES, vocabulary=100))
    with pytest.raises(ValueError, match="49,408 tokens, but the text tower knows 100"):
        assemble(networks[0], small, networks[2], PROMPT)


def test_texts_by_other_scores_and_a_second_model_as_judge(networks):
    """The log-odds of two texts on a grid of their own; the judge speaks in units of the searched scores."""
    generator, model, tokenizer = networks
    other = clip_weights.from_tensors(clip_weights.random_tensors(5, **SIZES))
    prompts = Prompts('"one" / "two"', ("three", "four / five"))
    judges = {"another": (other, tokenizer)}
    problem = assemble(*networks, prompts, text_score="cosine", resolution=20, judges=judges)
    np.testing.assert_array_equal(problem.grid.lower, [0, -10])
    np.testing.assert_array_equal(problem.grid.upper, [50, 10])
    solutions = jax.random.normal(jax.random.key(0), (3, 512))
    features = jax.jit(lambda scorer: scorer.cosines(generator.images(solutions)))(problem.domain.scorers[0])
    found = jax.jit(lambda domain: domain.evaluate(solutions))(problem.domain)
    expected = jnp.exp(model.logit_scale) * (features[:, 0] - features[:, 1])
    np.testing.assert_allclose(found.objective, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.measures[:, 0], 100 * features[:, 2], rtol=1e-4)
    result = dqd.illuminate(problem, dqd.map_elites(0.5, batch_size=5), iterations=3, progress=False)
    assert [opinion.judge for opinion in problem.opinions] == ["another"] * 3
    assert 0 <= result.agreement.share <= 1
    assert "another" in json.dumps(result.agreement.summary())


def test_a_judge_is_brought_to_the_units_of_the_search(networks):
    generator, model, tokenizer = networks
    problem = assemble(*networks, PROMPT, text_score="angle", judges={"twin": (model, tokenizer)})
    (judge,) = problem.witness.judges
    np.testing.assert_allclose(judge.scorer.scale, 1, rtol=1e-4)  # the same model says the same
    np.testing.assert_allclose(judge.scorer.offset, 0, atol=0.02)
    other = clip_weights.from_tensors(clip_weights.random_tensors(5, **SIZES))
    problem = assemble(*networks, PROMPT, text_score="angle", judges={"another": (other, tokenizer)})
    (judge,) = problem.witness.judges
    drawn = Jitted(generator)
    images = drawn.images(drawn.mapping(jax.random.normal(jax.random.key(1), (32, 512))))
    ours, theirs = Jitted(problem.domain.scorers[0]).scores(images), Jitted(judge.scorer).scores(images)
    np.testing.assert_allclose(np.mean(theirs, 0), np.mean(ours, 0), rtol=1e-3)
    np.testing.assert_allclose(np.std(theirs, 0), np.std(ours, 0), rtol=1e-2)
    np.testing.assert_allclose(
        [dict(judge.tolerance)[n] for n in PROMPT.measures], np.std(ours, 0, ddof=1)[1:], rtol=1e-2
    )
