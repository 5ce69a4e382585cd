"""Compare algorithms over several seeds. The seeds of one algorithm run side by side in one program."""

import jax.numpy as jnp
import numpy as np

import dqd

domain = dqd.LinearProjection("sphere", n=100)
algorithms = {
    "MAP-Elites (line)": dqd.map_elites_line(sigma1=0.5, sigma2=0.2),
    "OMG-MEGA": dqd.omg_mega(sigma=3.0),
    "CMA-MEGA": dqd.cma_mega(sigma=3.0),
}


def mean_and_error(values):
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}"


print(f"{'algorithm':<20}{'QD-score':>15}{'coverage':>15}{'best':>15}")
for name, emitter in algorithms.items():
    results = dqd.illuminate(
        domain, emitter, domain.grid(50), x0=jnp.zeros(100), seeds=range(5), iterations=1_000, progress=False
    )
    columns = (mean_and_error(values) for values in (results.qd_score, results.coverage, results.best))
    print(f"{name:<20}" + "".join(f"{column:>15}" for column in columns))
