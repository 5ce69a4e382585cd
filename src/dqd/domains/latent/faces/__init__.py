"""`lsi-faces`: a real generator of faces with real judges of age, gender and hair, fetched by `dqd fetch faces`."""

from typing import Any

from dqd import xla

# Matrix products by Triton make XLA (seen with JAX 0.11.2) abort while it compiles these networks for a GPU.
xla.add_flag(xla.NO_TRITON_PRODUCTS)


def build(**options: Any) -> Any:
    """See `dqd.domains.latent.faces.problem.build`."""
    from dqd.domains.latent.faces.problem import build

    return build(**options)
