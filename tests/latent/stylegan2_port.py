"""StyleGAN2 in PyTorch, written for the tests in the style of the common port, from its state dict."""

import math

import torch
import torch.nn.functional as F  # noqa: N812


def mapping(state, z):
    x = z * torch.rsqrt(torch.mean(z**2, dim=1, keepdim=True) + 1e-8)
    for i in range(1, 9):
        weight, bias = state[f"style.{i}.weight"], state[f"style.{i}.bias"]
        x = F.linear(x, weight * (0.01 / math.sqrt(weight.shape[1])))
        x = F.leaky_relu(x + bias * 0.01, 0.2) * math.sqrt(2)
    return x


def upfirdn(x, up, pad, gain):
    """Zeros between the pixels, padding, then a convolution with the flipped kernel."""
    b, c, h, w = x.shape
    x = x.reshape(b * c, 1, h, 1, w, 1)
    x = F.pad(x, [0, up - 1, 0, 0, 0, up - 1]).reshape(b * c, 1, h * up, w * up)
    x = F.pad(x, [pad[0], pad[1], pad[0], pad[1]])
    kernel = torch.tensor([1.0, 3.0, 3.0, 1.0], dtype=x.dtype)
    kernel = kernel[:, None] * kernel[None]
    kernel = torch.flip(kernel / kernel.sum() * gain, [0, 1])
    x = F.conv2d(x, kernel[None, None])
    return x.reshape(b, c, *x.shape[2:])


def modulated(state, name, x, latent, upsample=False, demodulate=True):
    """Weights modulated for every image: a grouped convolution."""
    weight = state[f"{name}.conv.weight"]
    _, outputs, inputs, k, _ = weight.shape
    modulation = state[f"{name}.conv.modulation.weight"]
    style = F.linear(latent, modulation / math.sqrt(modulation.shape[1]), state[f"{name}.conv.modulation.bias"])
    b = len(x)
    weight = weight / math.sqrt(inputs * k * k) * style.view(b, 1, inputs, 1, 1)
    if demodulate:
        weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
    x = x.reshape(1, b * inputs, *x.shape[2:])
    if upsample:
        weight = weight.transpose(1, 2).reshape(b * inputs, outputs, k, k)
        x = F.conv_transpose2d(x, weight, stride=2, groups=b)
        return upfirdn(x.view(b, outputs, *x.shape[2:]), up=1, pad=(1, 1), gain=4)
    x = F.conv2d(x, weight.reshape(b * outputs, inputs, k, k), padding=k // 2, groups=b)
    return x.view(b, outputs, *x.shape[2:])


def styled(state, name, x, latent, noise, upsample=False):
    x = modulated(state, name, x, latent, upsample) + state[f"{name}.noise.weight"] * noise
    return F.leaky_relu(x + state[f"{name}.activate.bias"].view(1, -1, 1, 1), 0.2) * math.sqrt(2)


def to_rgb(state, name, x, latent, skip=None):
    x = modulated(state, name, x, latent, demodulate=False) + state[f"{name}.bias"]
    return x if skip is None else x + upfirdn(skip, up=2, pad=(2, 1), gain=4)


def synthesis(state, latents, noises):
    """latents (b, layers, 512); noises: one (1 or b, 1, h, w) for every layer."""
    x = state["input.input"].repeat(len(latents), 1, 1, 1)
    x = styled(state, "conv1", x, latents[:, 0], noises[0])
    skip = to_rgb(state, "to_rgb1", x, latents[:, 1])
    for i in range(1, len(noises), 2):
        x = styled(state, f"convs.{i - 1}", x, latents[:, i], noises[i], upsample=True)
        x = styled(state, f"convs.{i}", x, latents[:, i + 1], noises[i + 1])
        skip = to_rgb(state, f"to_rgbs.{i // 2}", x, latents[:, i + 2], skip)
    return skip
