"""A map of pictures from StyleGAN3 (Karras et al. 2021), in NVIDIA's own PyTorch code.

    git clone https://github.com/NVlabs/stylegan3
    PYTHONPATH=stylegan3 dqd run --domain lsi-own --generator stylegan3:build --weights stylegan3-r-ffhq-1024x1024.pkl

NVIDIA's file is a pickle that names classes of that repository: to load it is to run what is in it. Take it from NVIDIA
alone. Their licence allows research. What is searched is W, whitened by 10,000 samples, and no further out than those.
"""

import pickle

import torch

from dqd import latent

SAMPLES, COMPONENTS = 10_000, 64
RANGES = {"light": (20, 70), "warmth": (-5, 25)}


def load(path, device=None):
    with open(path, "rb") as file:
        network = pickle.load(file)["G_ema"]  # this runs code of the file
    return network.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def build(objective="contrast", measures=("light", "warmth"), resolution=50, weights=None):
    if weights is None:
        raise ValueError("weights: give the path of NVIDIA's file, --weights stylegan3-r-ffhq-1024x1024.pkl")
    return problem(load(weights), objective, measures, resolution)


def problem(network, objective="contrast", measures=("light", "warmth"), resolution=50, samples=SAMPLES):
    network = network.eval().requires_grad_(False)
    device = next(network.parameters()).device
    with torch.no_grad():
        styles = network.mapping(torch.randn(samples, network.z_dim, device=device), None)[:, 0]
    space = latent.Whitened.fit(styles.cpu(), min(COMPONENTS, network.w_dim), within=0.95)
    exact = {"force_fp32": True} if device.type == "cpu" else {}

    def synthesise(styles):
        return network.synthesis(styles[:, None].expand(-1, network.num_ws, -1), **exact)

    generator = latent.TorchGenerator(synthesise, network.w_dim, device=device)
    scorer = latent.TorchScorer(looks, ("contrast", "light", "warmth"), device=device)
    ranges = {name: RANGES[name] for name in measures}
    return latent.problem(generator, [scorer], objective, ranges, space=space, resolution=resolution, title="StyleGAN3")


def looks(images):
    """Put judges of your own here: any torch model that takes images in [-1, 1]."""
    shares = 50 * (images.clamp(-1, 1) + 1)
    warmth = (shares[:, 0] - shares[:, 2]).mean(dim=(1, 2))
    return torch.stack([shares.std(dim=(1, 2, 3)), shares.mean(dim=(1, 2, 3)), warmth], dim=1)
