"""A finished archive is true: what is on disk evaluates to the objective, the measures and the cell stored with it.

`tests/conformance` says the same of every emitter in float64, to 1e-10. Here every published algorithm runs on every
problem in float32, as users do, and the archive comes back from the file. A batch of another size is summed in another
order, so values may differ by 2e-5 of the largest, and a measure that lies on an edge may fall on its other side.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.paper.presets import ALGORITHMS, DOMAINS, make_domain, preset

pytestmark = pytest.mark.optimised

TOLERANCE = 2e-5
N = 100


@pytest.mark.long
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_elite_on_disk_evaluates_to_what_is_stored(algorithm, domain, tmp_path):
    problem = make_domain(domain, N)
    dqd.illuminate(
        problem,
        preset(domain, algorithm),
        problem.grid(50),
        x0=jnp.zeros(N),
        iterations=1000,
        out=tmp_path / "run",
        progress=False,
    )
    archive = dqd.load(tmp_path / "run")
    again = jax.jit(problem.evaluate)(archive.solutions)
    for stored, fresh in ((archive.objective, again.objective), (archive.measures, again.measures)):
        np.testing.assert_allclose(fresh, stored, rtol=0, atol=TOLERANCE * np.abs(stored).max())
    moved = archive.tessellation.index_of(np.asarray(again.measures)) != archive.cell
    assert moved.mean() < 0.01
    assert not archive.tessellation.misplaced(archive.cell, archive.measures).any()
    assert len(archive) > 5
