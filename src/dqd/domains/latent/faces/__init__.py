"""`lsi-faces`: a real generator of faces with real judges of age, gender and hair, fetched by `dqd fetch faces`."""

import os
from typing import Any

# Matrix products by Triton make XLA (seen with JAX 0.11.2) abort while it compiles these networks for a GPU. Flags are
# read when JAX first looks for a device; on a CPU this one does nothing.
if "--xla_gpu_enable_triton_gemm" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_enable_triton_gemm=false".strip()


def build(**options: Any) -> Any:
    """See `dqd.domains.latent.faces.problem.build`."""
    from dqd.domains.latent.faces.problem import build

    return build(**options)
