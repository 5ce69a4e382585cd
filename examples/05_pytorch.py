"""A model in PyTorch: the gradients come from torch, the search from dqd.

An untrained decoder turns 32 numbers into a 16 x 16 image. Wanted: for every brightness of two opposite corners, the
smoothest such image.
"""

import sys

import dqd

try:
    import torch
except ImportError:
    sys.exit("This example needs PyTorch: pip install 'dqd[torch]'")

torch.manual_seed(0)
decoder = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 256), torch.nn.Sigmoid())


def score(z):  # one solution -> objective and two measures
    image = decoder(z).reshape(16, 16)
    roughness = image.diff(dim=0).square().mean() + image.diff(dim=1).square().mean()
    return -roughness, [image[:4, :4].mean(), image[-4:, -4:].mean()]


grid = dqd.Grid(lower=[0.35, 0.35], upper=[0.65, 0.65], shape=[40, 40])
evaluator, emitter = dqd.torch_evaluator(score), dqd.cma_mega(sigma=0.5)
result = dqd.illuminate(evaluator, emitter, grid, x0=torch.zeros(32), iterations=300)

print(result)
result.plot("pytorch.png", title="Images of a PyTorch decoder")
