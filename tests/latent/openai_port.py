"""A CLIP with the modules, and so the names, that OpenAI's and OpenCLIP's have: PyTorch's own attention and norms."""

import collections

import torch
from torch import nn


class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class Block(nn.Module):
    def __init__(self, width, heads, inner, activation):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        layers = [("c_fc", nn.Linear(width, inner)), ("gelu", activation()), ("c_proj", nn.Linear(inner, width))]
        self.mlp = nn.Sequential(collections.OrderedDict(layers))

    def forward(self, x, mask):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, layers, *sizes):
        super().__init__()
        self.resblocks = nn.ModuleList([Block(*sizes) for _ in range(layers)])

    def forward(self, x, mask=None):
        for block in self.resblocks:
            x = block(x, mask)
        return x


class Vision(nn.Module):
    def __init__(self, width, heads, inner, activation, *, patch, side, features):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, patch, patch, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width))
        self.positional_embedding = nn.Parameter(torch.randn(1 + (side // patch) ** 2, width))
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.transformer = Transformer(2, width, heads, inner, activation)
        self.proj = nn.Parameter(torch.randn(width, features))

    def forward(self, images):
        patches = self.conv1(images).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(len(images), 1, -1)
        tokens = self.ln_pre(torch.cat([first, patches], 1) + self.positional_embedding)
        return self.ln_post(self.transformer(tokens)[:, 0]) @ self.proj


class CLIP(nn.Module):
    def __init__(self, *, image=(128, 2, 256), text=(64, 1, 128), activation=QuickGELU, features=24, length=20):
        super().__init__()
        self.visual = Vision(*image, activation, patch=8, side=32, features=features)
        self.transformer = Transformer(2, *text, activation)
        self.token_embedding = nn.Embedding(49_408, text[0])
        self.positional_embedding = nn.Parameter(torch.randn(length, text[0]))
        self.ln_final = nn.LayerNorm(text[0])
        self.text_projection = nn.Parameter(torch.randn(text[0], features))
        self.logit_scale = nn.Parameter(torch.tensor(4.0))
        self.register_buffer("attn_mask", torch.full((length, length), -torch.inf).triu(1), persistent=False)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter += 0.05 * torch.randn_like(parameter)  # biases and norms that do something

    def forward(self, images, numbers):
        x = self.transformer(self.token_embedding(numbers) + self.positional_embedding, self.attn_mask)
        ends = x[torch.arange(len(numbers)), numbers.argmax(1)]
        return self.visual(images), self.ln_final(ends) @ self.text_projection
