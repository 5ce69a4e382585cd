"""A map of a generator in PyTorch that is judged by PyTorch: thin and bold, narrow and wide digits.

The decoder is a plain torch module; here it gets the weights of the digits that come with dqd.
"""

import torch

import dqd
from dqd import latent
from dqd.latent.problems import digits

layers = []
for weight, bias in digits.build().domain.generator.layers:
    layers += [torch.nn.Linear(*weight.shape), torch.nn.SiLU()]
    layers[-2].load_state_dict({"weight": torch.tensor(weight.tolist()).T, "bias": torch.tensor(bias.tolist())})
decoder = torch.nn.Sequential(*layers[:-1], torch.nn.Sigmoid(), torch.nn.Unflatten(1, (1, 28, 28)))


# From here on it is your model, whatever it is: 15 lines.
def looks(images):
    ink = (images[:, 0] + 1) / 2
    total, place = ink.sum(dim=(1, 2)), torch.arange(28.0) - 13.5
    columns = ink.sum(dim=1) / total[:, None]
    width = ((columns * place**2).sum(1) - (columns * place).sum(1) ** 2).sqrt()
    sharpness = ((2 * ink - 1) ** 2).mean(dim=(1, 2))
    return torch.stack([sharpness, 100 * total / 784, width], dim=1)


generator = latent.TorchGenerator(decoder, 16, values=(0, 1))
scorer = latent.TorchScorer(looks, ("sharpness", "ink", "width"))
problem = latent.problem(generator, [scorer], "sharpness", {"ink": (0, 40), "width": (2, 7)})
result = dqd.illuminate(problem, dqd.cma_mega_adam(), iterations=100, progress=False)
dqd.plot.collage(result, problem.domain.render).figure.savefig("digits_in_torch.png")

print(result)
