"""What to search faces with: the paper's algorithms, with steps that suit the whitened space. No JAX until one is made.

There a coordinate is about N(0, 1), gradients are normalised to length 1 and a random face lies 8 from the mean one; so
steps of about 1 change a face visibly and keep it a face. The paper's values belong to its own space and scores.
"""

from __future__ import annotations

from typing import Any

from dqd.names import known

ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {  # name: (function of dqd.emitters, its arguments)
    "cma-mega": ("cma_mega", {"sigma": 1.0, "learning_rate": 1.0}),
    "cma-mega-adam": ("cma_mega_adam", {"sigma": 1.0, "learning_rate": 0.05}),
    "omg-mega": ("omg_mega", {"sigma": 1.0}),
    "cma-me": ("cma_me", {"sigma": 0.5}),
    "map-elites": ("map_elites", {"sigma": 0.3}),
    "map-elites-line": ("map_elites_line", {"sigma1": 0.2, "sigma2": 0.5}),
    "random": ("random_sampling", {"sigma": 1.0}),
}


def emitter(algorithm: str, **overrides: Any) -> Any:
    """The emitter of that name; any of its arguments may be given another value."""
    from dqd import emitters

    function, arguments = known("algorithm", algorithm, ALGORITHMS)
    return getattr(emitters, function)(**{**arguments, **overrides})
