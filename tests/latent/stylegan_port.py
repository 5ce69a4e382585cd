"""StyleGAN-1 in PyTorch, written for the tests in the style of the public port, from its state dict."""

import math

import torch
import torch.nn.functional as F  # noqa: N812


def linear(state, name, x, gain=1.0, rate=1.0):
    weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
    return F.linear(x, weight * (gain / math.sqrt(weight.shape[1]) * rate), bias * rate)


def mapping(state, z):
    x = z * torch.rsqrt(torch.mean(z**2, dim=1, keepdim=True) + 1e-8)
    for i in range(8):
        x = F.leaky_relu(linear(state, f"g_mapping.dense{i}", x, math.sqrt(2), 0.01), 0.2)
    return x


def convolution(state, name, x, upscale=False, gain=math.sqrt(2)):
    weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
    weight = weight * (gain / math.sqrt(weight[0].numel()))
    if upscale and min(x.shape[2:]) * 2 >= 128:
        w = F.pad(weight.permute(1, 0, 2, 3), (1, 1, 1, 1))
        w = w[:, :, 1:, 1:] + w[:, :, :-1, 1:] + w[:, :, 1:, :-1] + w[:, :, :-1, :-1]
        x = F.conv_transpose2d(x, w, stride=2, padding=(w.size(-1) - 1) // 2)
    else:
        x = F.interpolate(x, scale_factor=2, mode="nearest") if upscale else x
        x = F.conv2d(x, weight, padding=weight.shape[-1] // 2)
    if upscale:
        filter_ = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype)
        filter_ = (filter_[:, None] * filter_[None] / 16).expand(x.shape[1], 1, 3, 3)
        x = F.conv2d(x, filter_, padding=1, groups=x.shape[1])
    return x + bias.view(1, -1, 1, 1)


def epilogue(state, name, x, latent, noise):
    x = x + state[f"{name}.top_epi.noise.weight"].view(1, -1, 1, 1) * noise
    x = F.instance_norm(F.leaky_relu(x, 0.2), eps=1e-5)
    style = linear(state, f"{name}.style_mod.lin", latent).view(-1, 2, x.shape[1], 1, 1)
    return x * (style[:, 0] + 1.0) + style[:, 1]


def synthesis(state, latents, noises):
    """latents (b, layers, 512); noises: one (1 or b, 1, h, w) for every layer."""
    block = "g_synthesis.blocks.4x4"
    x = state[f"{block}.const"].expand(len(latents), -1, -1, -1) + state[f"{block}.bias"].view(1, -1, 1, 1)
    x = epilogue(state, f"{block}.epi1", x, latents[:, 0], noises[0])
    x = epilogue(state, f"{block}.epi2", convolution(state, f"{block}.conv", x), latents[:, 1], noises[1])
    for i in range(2, len(noises), 2):
        block = f"g_synthesis.blocks.{2 * x.shape[-1]}x{2 * x.shape[-1]}"
        x = convolution(state, f"{block}.conv0_up", x, upscale=True)
        x = epilogue(state, f"{block}.epi1", x, latents[:, i], noises[i])
        x = convolution(state, f"{block}.conv1", x)
        x = epilogue(state, f"{block}.epi2", x, latents[:, i + 1], noises[i + 1])
    return convolution(state, "g_synthesis.torgb", x, gain=1.0)
