"""A domain of one's own: portfolios, the one with the highest return for every risk and every spread.

A plain function would do for a single problem. A domain holds the data of many: other numbers, the same program.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import dqd
from dqd.types import pytree, static


@pytree
class Portfolio(dqd.Domain):
    """Shares of a fortune in n assets, from n numbers."""

    mean: Array  # (n,) expected return of each asset: data, may change without compiling anew
    covariance: Array  # (n, n)
    long_only: bool = static(default=True)  # a choice: part of the program

    @property
    def transform(self):
        return 100.0, 0.0  # the archive stores percent; gradients are those of the raw objective

    def shares(self, x):
        return jax.nn.softmax(x) if self.long_only else x / jnp.sum(jnp.abs(x))

    def score(self, x):
        shares = self.shares(x)
        risk = jnp.sqrt(shares @ self.covariance @ shares)
        return shares @ self.mean, jnp.stack([risk, 1 / jnp.sum(shares**2)])  # as if spread over so many assets


def market(n, seed):
    random = np.random.default_rng(seed)
    factors = random.normal(0, 0.1, (n, 3))
    return Portfolio(random.uniform(0, 0.1, n), factors @ factors.T + np.diag(random.uniform(0.01, 0.09, n)))


if __name__ == "__main__":
    grid = dqd.Grid(lower=[0.05, 1], upper=[0.3, 20], shape=[25, 19])
    for seed in (0, 1):  # the second market finds everything compiled
        domain = market(20, seed)
        result = dqd.illuminate(
            domain, dqd.cma_mega(sigma=0.5), grid, x0=jnp.zeros(20), bounds=(-6, 6), iterations=1000, progress=False
        )
        print(f"market {seed}: best return {result.best:.2f} %, compiled for {result.compile_seconds:.1f} s")
    print(dqd.check_jacobian(domain, jnp.linspace(-1, 1, 20)))
