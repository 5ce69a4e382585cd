"""Search the latent space of an image generator: a handwritten 5 for every width and every slant, as a collage.

The small generator and its classifier come with the package. docs/latent.md tells of larger ones, with faces.
"""

import dqd
from dqd.latent.problems import digits

problem = digits.build(objective="digit-5", measures=("width", "slant"), resolution=40)
result = dqd.illuminate(
    problem.domain,
    dqd.cma_mega(sigma=0.5),
    problem.grid,
    x0=problem.x0,
    bounds=problem.bounds,  # the guard: stay where the generator knows its way
    iterations=500,
)
print(f"coverage {result.coverage:.1f} %, best {result.best:.2f}")

picture = dqd.plot.collage(result, problem.domain.render, labels=problem.labels[1:], pixels=64)
picture.figure.savefig("digits.png")
print("picture: digits.png")
