"""A scorer of one's own: what else can be measured in a picture. Here: is it symmetric, and where is its ink?

Scores are differentiable functions of images. The scores of the digits stay; these come beside them.
"""

import jax.numpy as jnp

import dqd
from dqd.latent.problems import digits
from dqd.types import pytree, replace, static


@pytree
class Balance:
    """Symmetry: 100 % if left mirrors right. Lift: by how much of its ink the upper half is ahead of the lower."""

    names: tuple[str, ...] = static(default=("symmetry", "lift"))

    def scores(self, images):  # (b, c, h, w) in about [-1, 1] -> (b, 2)
        ink = (images[:, 0] + 1) / 2
        total = jnp.sum(ink, axis=(1, 2)) + 1e-6
        unlike = jnp.sum(jnp.abs(ink - ink[:, :, ::-1]), axis=(1, 2)) / 2
        half = ink.shape[1] // 2
        lift = jnp.sum(ink[:, :half], axis=(1, 2)) - jnp.sum(ink[:, half:], axis=(1, 2))
        return 100 * jnp.stack([1 - unlike / total, lift / total], axis=1)


def problem(objective):
    """The digits, with other measures and a grid for them."""
    plain = digits.build(objective)
    domain = replace(plain.domain, scorers=(*plain.domain.scorers, Balance()), measures=("symmetry", "lift"))
    grid = dqd.Grid(lower=[20, -40], upper=[100, 40], shape=[20, 20])
    return replace(plain, domain=domain, grid=grid, labels=(plain.labels[0], "symmetry (%)", "lift (%)"))


if __name__ == "__main__":
    eights = problem("digit-8")
    result = dqd.illuminate(eights, dqd.cma_mega(sigma=0.5), iterations=500, progress=False)
    print(f"coverage {result.coverage:.1f} %, best {result.best:.2f}")
    picture = dqd.plot.collage(result, eights.domain.render, labels=eights.labels[1:])
    picture.figure.savefig("eights.png")
