"""Does it matter into which launches a search is cut? On a GPU the longest launches have a program of their own.

500 iterations, launched in several ways, must leave the same state, byte for byte.

python benchmarks/cuts.py [emitter ...]
"""

from __future__ import annotations

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

import dqd
from device import today
from dqd.archives.archive import Archive
from dqd.runners.compiled import LONGEST, run_chunk, start_seed, start_seeds
from dqd.search.search import Search, SearchState

EMITTERS = {
    "cma_mega": dqd.cma_mega(1.0),
    "cma_mega_adam": dqd.cma_mega_adam(1.0, 0.1),
    "cma_me": dqd.cma_me(0.5),
    "map_elites_line": dqd.map_elites_line(0.5, 0.2),
    "omg_mega": dqd.omg_mega(1.0),
    "four of cma_mega": dqd.replicate(dqd.cma_mega(1.0), 4),
}
WHOLE = [LONGEST] * 2
CUTS = {
    "again": WHOLE,
    "250 + 249 + 1": [LONGEST, LONGEST - 1, 1],
    "250 + single ones": [LONGEST] + [1] * LONGEST,
    "250 + 37 + 113 + 100": [LONGEST, 37, 113, 100],
    "none of the longest": [LONGEST - 1, 1] * 2,
}


def run(emitter: dqd.Emitter, n: int, seeds: int, lengths: list[int]) -> SearchState:
    domain, search = dqd.LinearProjection("sphere", n), Search(emitter)
    begin = (search, Archive.empty(domain.grid(50), n), jnp.zeros(n))
    several = seeds > 1
    state = start_seeds(*begin, jnp.arange(seeds), domain) if several else start_seed(*begin, jnp.asarray(1), domain)
    for length in lengths:
        counted = length if length == LONGEST else 0
        state = run_chunk(search, state, domain, length, batched=several, counted=counted)[0]
    return state


def same(one: SearchState, other: SearchState) -> bool:
    def content(leaf: jax.Array) -> bytes:
        key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if key else leaf).tobytes()

    return all(content(a) == content(b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def main(names: list[str]) -> None:
    print(json.dumps({"device": jax.devices()[0].device_kind, "jax": jax.__version__, "date": today()}))
    for name in names:
        for n, seeds in ((100, 1), (100, 5), (8000, 1)):
            if name == "cma_me" and n > 1000:
                continue  # its covariance is n x n
            whole = run(EMITTERS[name], n, seeds, WHOLE)
            equal = {cut: same(whole, run(EMITTERS[name], n, seeds, lengths)) for cut, lengths in CUTS.items()}
            print(json.dumps({"emitter": name, "n": n, "seeds": seeds, "equal": equal}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(EMITTERS))
