"""Generators of others, as the examples load them: small random models of the very classes, beside their pipelines."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dqd
from dqd.cli import app

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
GENERATORS = Path(__file__).parents[2] / "examples" / "generators"


def example(name: str):
    specification = importlib.util.spec_from_file_location(f"example_{name}", GENERATORS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def searched(problem) -> dqd.Result:
    emitter = dqd.cma_mega(sigma=0.5, batch_size=4)
    return dqd.illuminate(problem, emitter, iterations=2, progress=False)


def solutions(problem, count=2) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, problem.domain.space.n)).astype(np.float32)


def test_dcgan_is_searched_and_drawn():
    dcgan = example("dcgan")
    torch.manual_seed(0)
    problem = dcgan.problem(dcgan.network(channels=(16, 8, 8, 4)), resolution=10)
    assert problem.domain.render(solutions(problem)).shape == (2, 64, 64, 3)
    assert len(searched(problem).elites)


def test_a_checkpoint_of_dcgan_is_read_as_plain_tensors(tmp_path):
    dcgan = example("dcgan")
    state = {f"main.{name}": tensor for name, tensor in dcgan.network().state_dict().items()}
    torch.save({"netG_state_dict": state}, tmp_path / "weights.tar")
    loaded = dcgan.load(tmp_path / "weights.tar").state_dict()
    assert all(torch.equal(loaded[name.removeprefix("main.")], tensor) for name, tensor in state.items())


def test_one_step_of_sdxl_is_that_of_the_pipeline():
    diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed")
    diffusion, pipe = example("diffusion"), tiny_sdxl(diffusers)
    made = diffusion.turbo_generator(pipe, "a face", size=8)
    noise = torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(1))
    theirs = pipe(
        ["a face"] * 2, latents=noise, num_inference_steps=1, guidance_scale=0.0, height=16, width=16, output_type="pt"
    ).images
    torch.testing.assert_close((made.images(noise).clamp(-1, 1) + 1) / 2, theirs, atol=1e-4, rtol=0)
    assert len(searched(diffusion.problem(made, resolution=10)).elites)


def tiny_sdxl(diffusers):
    """An SDXL with the scheduler of SDXL-Turbo, a few channels wide."""
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    torch.manual_seed(0)
    unet = diffusers.UNet2DConditionModel(
        block_out_channels=(4, 8),
        layers_per_block=1,
        sample_size=8,
        norm_num_groups=2,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        attention_head_dim=(2, 4),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        use_linear_projection=True,
        projection_class_embeddings_input_dim=8 + 6 * 8,
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=(4, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        latent_channels=4,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=2,
        sample_size=16,
    )
    text = CLIPTextConfig(
        hidden_size=8,
        intermediate_size=16,
        num_attention_heads=2,
        num_hidden_layers=2,
        vocab_size=99,
        max_position_embeddings=8,
        projection_dim=8,
        eos_token_id=2,
        bos_token_id=1,
    )
    scheduler = diffusers.EulerAncestralDiscreteScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        steps_offset=1,
        timestep_spacing="trailing",
    )
    pipe = diffusers.StableDiffusionXLPipeline(
        vae=vae,
        unet=unet,
        scheduler=scheduler,
        tokenizer=Words(),
        tokenizer_2=Words(),
        text_encoder=CLIPTextModel(text),
        text_encoder_2=CLIPTextModelWithProjection(text),
        add_watermarker=False,
    )
    pipe.set_progress_bar_config(disable=True)
    return pipe


class Words:
    """A tokenizer that numbers letters: what the words are does not matter here."""

    model_max_length = 8

    def __call__(self, prompts, **_):
        prompts = [prompts] if isinstance(prompts, str) else prompts
        rows = [[1, *(3 + ord(letter) % 90 for letter in prompt[:6]), 2] for prompt in prompts]
        return type("Tokens", (), {"input_ids": torch.tensor([(row + [2] * 8)[:8] for row in rows])})

    def tokenize(self, prompt):
        return list(prompt)

    @property
    def added_tokens_encoder(self):
        return {}

    def batch_decode(self, rows):
        return [""] * len(rows)


@pytest.mark.parametrize("classes", [None, 3])
def test_one_step_of_a_consistency_model_is_that_of_the_pipeline(classes):
    diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed")
    torch.manual_seed(0)
    unet = diffusers.UNet2DModel(
        sample_size=8,
        block_out_channels=(4, 8),
        layers_per_block=1,
        norm_num_groups=2,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        num_class_embeds=classes,
        attention_head_dim=4,
    )
    pipe = diffusers.ConsistencyModelPipeline(unet, diffusers.CMStochasticIterativeScheduler())
    pipe.set_progress_bar_config(disable=True)
    diffusion = example("diffusion")
    noise = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    made = diffusion.consistency_generator(pipe, label=1)
    labels = None if classes is None else [1, 1]
    theirs = pipe(2, class_labels=labels, latents=noise, num_inference_steps=1, output_type="pt").images
    torch.testing.assert_close((made.images(noise) + 1) / 2, theirs, atol=1e-4, rtol=0)
    assert len(searched(diffusion.problem(made, resolution=10)).elites)


def test_stylegan3_in_its_own_code():
    """Where its repository is at hand: STYLEGAN3 names it. It may not be passed on, so it does not come with dqd."""
    home = os.environ.get("STYLEGAN3")
    if not home:
        pytest.skip("STYLEGAN3 does not name a checkout of NVlabs/stylegan3")
    sys.path.insert(0, home)
    from training.networks_stylegan3 import Generator

    torch.manual_seed(0)
    sizes = {"channel_base": 256, "channel_max": 8, "num_layers": 4, "mapping_kwargs": {"num_layers": 2}}
    network = Generator(16, 0, 16, 32, 3, **sizes)
    stylegan3 = example("stylegan3")
    problem = stylegan3.problem(network, resolution=10, samples=200)
    z = torch.randn(2, 16)
    styles = network.mapping(z, None)[:, 0].detach()
    theirs = network(z, None, force_fp32=True).detach().clamp(-1, 1)
    ours = problem.domain.generator.images(styles).clamp(-1, 1)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    assert problem.domain.space.radius > 0
    assert len(searched(problem).elites)


def test_the_code_of_the_how_to_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (GENERATORS.parents[1] / "docs" / "how-to" / "own-generator.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    program = re.sub(r"iterations=\d+", "iterations=3", "\n".join(blocks))
    program = program.replace("dqd.cma_mega_adam()", "dqd.cma_mega_adam(sigma=0.5, learning_rate=0.05, batch_size=6)")
    exec(compile(program, "own-generator.md", "exec"), {})
    assert (tmp_path / "collage.png").exists()


# The command line -----------------------------------------------------------------------------------------------------

OWN = """
import torch
from dqd import latent

def build(objective="light", measures=("left", "right"), resolution=10):
    generator = latent.TorchGenerator(lambda w: torch.tanh(w).reshape(-1, 1, 2, 6).repeat(1, 3, 4, 2), 12)
    def looks(images):
        parts = (images, images[..., :6], images[..., 6:])
        return torch.stack([part.mean((1, 2, 3)) for part in parts], 1)
    scorer = latent.TorchScorer(looks, ("light", "left", "right"))
    ranges = dict.fromkeys(measures, (-1.0, 1.0))
    return latent.problem(generator, [scorer], objective, ranges, resolution=resolution)

def nothing():
    return 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQD_NO_CACHE", "1")
    (tmp_path / "own_models.py").write_text(OWN)
    monkeypatch.delitem(sys.modules, "own_models", raising=False)
    return tmp_path


def dqd_says(*command: str):
    return CliRunner().invoke(app, list(command))


def test_a_generator_of_ones_own_from_the_command_line(here):
    command = ("run", "--domain", "lsi-own", "--generator", "own_models:build")
    done = dqd_says(*command, "--objective=-light", "--measure", "left", "--resolution", "6", "--iterations", "3")
    assert done.exit_code == 0, done.output
    assert "on lsi-own, n = 12, 6 cells" in done.stdout
    assert dqd_says(*command, "--iterations", "3", "--out", "wide").exit_code == 0
    from PIL import Image

    assert Image.open("wide/collage.png").width > 300
    done = dqd_says("optimize", *command[1:], "--iterations", "5", "--out", "best.png")
    assert done.exit_code == 0, done.output
    assert Image.open("best.png").size == (12, 8)  # as wide as it is


def test_a_run_never_runs_a_function_that_its_reader_does_not_name(here):
    begin = ("run", "--domain", "lsi-own", "--generator", "own_models:build", "--iterations", "2", "--out", "run")
    assert dqd_says(*begin).exit_code == 0
    for command in (("resume", "run", "--iterations", "3"), ("render", "run")):
        refused = dqd_says(*command)
        assert refused.exit_code == 2
        assert "was made by the function 'own_models:build', which would be run now" in refused.stderr
        done = dqd_says(*command, "--generator", "own_models:build")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "lsi-own needs a function that makes the problem: --generator module:function"),
        (["--generator", "own_models"], "generator: expected MODULE:NAME"),
        (["--generator", "own_models:bild"], "generator: own_models has no function 'bild'"),
        (["--generator", "own_models:nothing"], "expected own_models:nothing to return a dqd.Problem"),
        (["--generator", "own_models:build", "--space", "p"], "space: own_models:build takes objective, measures, res"),
        (["--generator", "own_models:build", "--objective", "lihgt"], "unknown objective 'lihgt'; did you mean"),
    ],
)
def test_mistakes_are_answered_in_one_line(here, given, words):
    done = dqd_says("run", "--domain", "lsi-own", *given)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
