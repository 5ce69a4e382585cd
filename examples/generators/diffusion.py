"""Maps of pictures from diffusion models that need one step, through diffusers: SDXL-Turbo (Sauer et al. 2023) and
consistency models (Song et al. 2023).

    dqd run --domain lsi-own --generator diffusion:turbo --weights stabilityai/sdxl-turbo --iterations 500
    dqd run --domain lsi-own --generator diffusion:consistency --weights openai/diffusers-cd_imagenet64_l2

`--weights` names a folder, or a model that diffusers downloads. A solution is the noise that the step begins with, on
the sphere where nearly all noise lies. One step can be differentiated as any network can.
"""

import math

import torch

from dqd import latent

PROMPT = "a portrait photo of a person"
RANGES = {"light": (20, 70), "warmth": (-10, 30)}


def turbo(objective="contrast", measures=("light", "warmth"), resolution=50, weights="stabilityai/sdxl-turbo"):
    from diffusers import AutoPipelineForText2Image

    pipe = _placed(AutoPipelineForText2Image.from_pretrained(weights))
    return problem(turbo_generator(pipe), objective, measures, resolution)


def consistency(objective="contrast", measures=("light", "warmth"), resolution=50, weights=None):
    from diffusers import ConsistencyModelPipeline

    pipe = _placed(ConsistencyModelPipeline.from_pretrained(weights or "openai/diffusers-cd_imagenet64_l2"))
    return problem(consistency_generator(pipe), objective, measures, resolution)


def turbo_generator(pipe, prompt=PROMPT, size=None):
    """Noise (b, 4, h, w) -> images of SDXL-Turbo, or another SDXL that needs one step, without guidance."""
    unet, vae = pipe.unet.eval().requires_grad_(False), pipe.vae.eval().requires_grad_(False)
    side = size or unet.config.sample_size
    pixels = side * pipe.vae_scale_factor
    with torch.no_grad():
        words, _, pooled, _ = pipe.encode_prompt(prompt, do_classifier_free_guidance=False)
    about = torch.tensor([[pixels, pixels, 0, 0, pixels, pixels]], dtype=words.dtype, device=words.device)
    pipe.scheduler.set_timesteps(1, device=words.device)
    time, sigma = pipe.scheduler.timesteps[0], pipe.scheduler.sigmas[0]

    def made(noise):
        b, x = len(noise), noise * pipe.scheduler.init_noise_sigma
        conditions = {"text_embeds": pooled.expand(b, -1), "time_ids": about.expand(b, -1)}
        seen = x / (sigma**2 + 1) ** 0.5
        guess = unet(seen, time, encoder_hidden_states=words.expand(b, -1, -1), added_cond_kwargs=conditions).sample
        return vae.decode((x - sigma * guess) / vae.config.scaling_factor).sample

    return latent.TorchGenerator(made, (unet.config.in_channels, side, side), device=words.device)


def consistency_generator(pipe, label=0):
    """Noise (b, 3, h, w) -> images of a consistency model, in one step; of one class, where it knows classes."""
    unet, scheduler = pipe.unet.eval().requires_grad_(False), pipe.scheduler
    device = next(unet.parameters()).device
    scheduler.set_timesteps(1, device=device)
    time, sigma = scheduler.timesteps[0], scheduler.sigmas[0]
    classes = unet.config.num_class_embeds

    def made(noise):
        x = noise * scheduler.init_noise_sigma
        labels = None if classes is None else torch.full((len(x),), label, device=device)
        seen = x / (sigma**2 + scheduler.config.sigma_data**2) ** 0.5
        skip, out = scheduler.get_scalings_for_boundary_condition(sigma)
        guess = skip * x + out * unet(seen, time, class_labels=labels).sample
        return guess.clamp(-1, 1)

    side = unet.config.sample_size
    return latent.TorchGenerator(made, (unet.config.in_channels, side, side), device=device)


def problem(generator, objective="contrast", measures=("light", "warmth"), resolution=50):
    space = latent.Sphere(latent.Identity(math.prod(generator.latent_shape), shape=generator.latent_shape))
    scorer = latent.TorchScorer(looks, ("contrast", "light", "warmth"), device=generator.part.device)
    ranges = {name: RANGES[name] for name in measures}
    return latent.problem(generator, [scorer], objective, ranges, space=space, resolution=resolution, title="One step")


def looks(images):
    """Put judges of your own here: any torch model that takes images in [-1, 1]."""
    shares = 50 * (images.clamp(-1, 1) + 1)
    warmth = (shares[:, 0] - shares[:, 2]).mean(dim=(1, 2))
    return torch.stack([shares.std(dim=(1, 2, 3)), shares.mean(dim=(1, 2, 3)), warmth], dim=1)


def _placed(pipe):
    return pipe.to("cuda") if torch.cuda.is_available() else pipe
