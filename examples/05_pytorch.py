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

LATENT, ITERATIONS = 32, 300
torch.manual_seed(0)
decoder = torch.nn.Sequential(
    torch.nn.Linear(LATENT, 64), torch.nn.Tanh(), torch.nn.Linear(64, 256), torch.nn.Sigmoid()
)


def score(z):  # one solution -> objective and two measures, in one vector
    image = decoder(z).reshape(16, 16)
    roughness = image.diff(dim=0).square().mean() + image.diff(dim=1).square().mean()
    return torch.stack([-roughness, image[:4, :4].mean(), image[-4:, -4:].mean()])


def split(values):  # (batch, 3) -> objective (batch,), measures (batch, 2)
    return values[:, 0], values[:, 1:]


batched, batched_jacobian = torch.func.vmap(score), torch.func.vmap(torch.func.jacrev(score))
grid = dqd.Grid(lower=[0.35, 0.35], upper=[0.65, 0.65], shape=[40, 40])
search = dqd.AskTell(dqd.cma_mega(sigma=0.5), grid, x0=torch.zeros(LATENT), seed=0)

while search.iteration < ITERATIONS:
    points = torch.from_numpy(search.ask_dqd())
    search.tell_dqd(*split(batched(points)), batched_jacobian(points))  # torch tensors go in as they are
    search.tell(*split(batched(torch.from_numpy(search.ask()))))

print(f"QD-score {search.qd_score:.3f}, coverage {search.coverage:.1f} %, best {search.best:.4f}")
search.result().plot("pytorch.png", title="Images of a PyTorch decoder")
