"""Your own loop: dqd proposes, you evaluate. Here with NumPy and gradients written by hand.

Use it for anything that JAX cannot trace: a simulator, a model in another framework, a farm of machines.
"""

import numpy as np

import dqd

N, ITERATIONS = 20, 500
FIRST, SECOND = np.arange(N) < N // 2, np.arange(N) >= N // 2


def evaluate(x):  # (batch, n) -> objective (batch,), measures (batch, 2)
    return -np.sum((x - 0.5) ** 2, axis=1), np.stack([x[:, FIRST].sum(axis=1), x[:, SECOND].sum(axis=1)], axis=1)


def jacobian(x):  # (batch, n) -> (batch, 3, n): the gradient of the objective, then one per measure
    return np.stack([-2 * (x - 0.5), np.broadcast_to(FIRST, x.shape), np.broadcast_to(SECOND, x.shape)], axis=1)


grid = dqd.Grid(lower=[-10, -10], upper=[10, 10], shape=[50, 50])
search = dqd.AskTell(dqd.cma_mega(sigma=0.5), grid, x0=np.zeros(N), seed=0)

while search.iteration < ITERATIONS:
    points = search.ask_dqd()  # where the search wants gradients
    search.tell_dqd(*evaluate(points), jacobian(points))
    solutions = search.ask()  # what it makes of them
    search.tell(*evaluate(solutions))

print(f"QD-score {search.qd_score:.2f}, coverage {search.coverage:.1f} %, best {search.best:.4f}")
search.result().plot("own-loop.png", title="Found with a loop of one's own")
