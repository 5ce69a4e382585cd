"""StyleGAN2 in PyTorch, written for the tests with the names and conventions of NVIDIA's port, and its pickles."""

import math
import sys
import types

import torch
import torch.nn.functional as F  # noqa: N812

FILTER = torch.outer(torch.tensor([1.0, 3, 3, 1]), torch.tensor([1.0, 3, 3, 1])) / 64


def state_dict(channels, latent=32, seed=0):
    """Random weights; `channels` by size."""
    torch.manual_seed(seed)
    state = {"mapping.w_avg": torch.randn(latent)}
    for i in range(2):
        state[f"mapping.fc{i}.weight"] = 100 * torch.randn(latent, latent)
        state[f"mapping.fc{i}.bias"] = torch.randn(latent)
    before = None
    for size, c in channels.items():
        block = f"synthesis.b{size}"
        state[f"{block}.resample_filter"] = FILTER
        if before is None:
            state[f"{block}.const"] = torch.randn(c, size, size)
        layers = {"conv1": (c, c)} if before is None else {"conv0": (before, c), "conv1": (c, c)}
        for layer, (inputs, outputs) in layers.items():
            state |= {
                f"{block}.{layer}.weight": torch.randn(outputs, inputs, 3, 3),
                f"{block}.{layer}.noise_strength": torch.randn([]),
                f"{block}.{layer}.bias": torch.randn(outputs),
                f"{block}.{layer}.resample_filter": FILTER,
                f"{block}.{layer}.noise_const": torch.randn(size, size),
                f"{block}.{layer}.affine.weight": torch.randn(inputs, latent),
                f"{block}.{layer}.affine.bias": torch.randn(inputs),
            }
        state |= {
            f"{block}.torgb.weight": torch.randn(3, c, 1, 1),
            f"{block}.torgb.bias": torch.randn(3),
            f"{block}.torgb.affine.weight": torch.randn(c, latent),
            f"{block}.torgb.affine.bias": torch.randn(c),
        }
        before = c
    return state


def mapping(state, z):
    x = z * (z.square().mean(dim=1, keepdim=True) + 1e-8).rsqrt()
    for i in range(2):
        weight, bias = state[f"mapping.fc{i}.weight"], state[f"mapping.fc{i}.bias"]
        x = x @ (weight * (0.01 / math.sqrt(weight.shape[1]))).t()
        x = F.leaky_relu(x + bias * 0.01, 0.2) * math.sqrt(2)
    return x


def upsampled(x, before, after):
    """Zeros between the pixels, padding, then the filter times four."""
    b, c, h, w = x.shape
    wide = torch.zeros(b, c, 2 * h, 2 * w)
    wide[:, :, ::2, ::2] = x
    wide = F.pad(wide, [before, after, before, after])
    return F.conv2d(wide, (4 * FILTER).expand(c, 1, 4, 4), groups=c)


def affine(state, name, w):
    weight = state[f"{name}.affine.weight"]
    return F.linear(w, weight / math.sqrt(weight.shape[1]), state[f"{name}.affine.bias"])


def layer(state, name, x, w, up):
    """One image: first upsampling, then a true convolution; else a correlation."""
    weight = state[f"{name}.weight"] * affine(state, name, w).reshape(1, -1, 1, 1)
    weight = weight * (weight.square().sum([1, 2, 3], keepdim=True) + 1e-8).rsqrt()
    x = F.conv2d(upsampled(x, 3, 2), weight.flip([2, 3])) if up else F.conv2d(x, weight, padding=1)
    x = x + state[f"{name}.noise_const"] * state[f"{name}.noise_strength"]
    return F.leaky_relu(x + state[f"{name}.bias"].reshape(1, -1, 1, 1), 0.2) * math.sqrt(2)


def to_rgb(state, name, x, w):
    weight = state[f"{name}.weight"]
    style = affine(state, name, w) / math.sqrt(weight.shape[1])
    return F.conv2d(x, weight * style.reshape(1, -1, 1, 1), state[f"{name}.bias"])


def image(state, sizes, ws):
    """ws: (layers, latent)."""
    x, rgb, at = state["synthesis.b4.const"][None], None, 0
    for size in sizes:
        block = f"synthesis.b{size}"
        for name in ("conv0", "conv1") if size > 4 else ("conv1",):
            x = layer(state, f"{block}.{name}", x, ws[at : at + 1], up=name == "conv0")
            at += 1
        rgb_here = to_rgb(state, f"{block}.torgb", x, ws[at : at + 1])
        rgb = rgb_here if rgb is None else upsampled(rgb, 2, 1) + rgb_here
    return rgb


# Pickles --------------------------------------------------------------------------------------------------------------


class Persistent(torch.nn.Module):
    """Pickled as NVIDIA's modules are: by their source and their attributes."""

    def __reduce__(self):
        meta = {"type": "class", "version": 6, "module_src": "raise SystemExit('ran')", "class_name": "Generator"}
        rebuild = sys.modules["torch_utils.persistence"]._reconstruct_persistent_obj
        return rebuild, ({**meta, "state": self.__dict__},)


def module(state):
    """A tree of modules with this state dict."""
    root = Persistent()
    for name, tensor in state.items():
        *path, last = name.split(".")
        place = root
        for part in path:
            if part not in place._modules:
                place.add_module(part, Persistent())
            place = place._modules[part]
        if last in ("weight", "bias", "const", "noise_strength"):
            place.register_parameter(last, torch.nn.Parameter(tensor, requires_grad=False))
        else:
            place.register_buffer(last, tensor)
    return root


def pretend_modules():
    """Modules for sys.modules, without which such a pickle cannot be written."""
    persistence, util = types.ModuleType("torch_utils.persistence"), types.ModuleType("dnnlib.util")

    def _reconstruct_persistent_obj(meta): ...

    class EasyDict(dict): ...

    for thing, home in ((_reconstruct_persistent_obj, persistence), (EasyDict, util)):
        thing.__module__, thing.__qualname__ = home.__name__, thing.__name__
        setattr(home, thing.__name__, thing)
    parents = {name: types.ModuleType(name) for name in ("torch_utils", "dnnlib")}
    return parents | {home.__name__: home for home in (persistence, util)}
