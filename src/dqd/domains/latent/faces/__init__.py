"""`lsi-faces`: a real generator of faces with real judges of age, gender and hair, fetched by `dqd fetch faces`."""

from typing import Any


def build(**options: Any) -> Any:
    """See `dqd.domains.latent.faces.problem.build`."""
    from dqd.domains.latent.faces.problem import build

    return build(**options)
