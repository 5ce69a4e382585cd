"""Nothing outside the folder that was opened is read, however its name is written."""

import os
import sys
import threading

import httpx
import pytest
from explorer.samples import archive, make_run, served

from dqd.explorer.library import Library
from dqd.explorer.places import find
from dqd.storage import record

SECRET = "a-secret-that-nobody-serves"
watched: list[str] = []
watching = threading.Event()


def _hook(event, arguments):
    if event == "open" and watching.is_set():
        watched.append(os.fspath(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else "")


sys.addaudithook(_hook)

ENCODINGS = [
    "../outside/secret.txt",
    "../../outside/secret.txt",
    "..%2foutside%2fsecret.txt",
    "..%2Foutside%2Fsecret.txt",
    "%2e%2e/outside/secret.txt",
    "%2e%2e%2foutside%2fsecret.txt",
    "%2E%2E%2Foutside%2Fsecret.txt",
    ".%2e/outside/secret.txt",
    "%2e./outside/secret.txt",
    "%252e%252e%252foutside%252fsecret.txt",
    "%25252e%25252e%25252foutside",
    "..\\outside\\secret.txt",
    "..%5coutside%5csecret.txt",
    "%2e%2e%5coutside%5csecret.txt",
    "..%255coutside%255csecret.txt",
    "....//outside/secret.txt",
    "....%2f%2foutside%2fsecret.txt",
    "..;/outside/secret.txt",
    "..%3b/outside/secret.txt",
    "..%00/outside/secret.txt",
    "..%2foutside%2fsecret.txt%00.js",
    "main.js%00../../outside/secret.txt",
    "main.js/../../../outside/secret.txt",
    "main.js%2f..%2f..%2foutside%2fsecret.txt",
    "./main.js/../../secret.txt",
    "%c0%ae%c0%ae%c0%afoutside%c0%afsecret.txt",
    "%e0%80%ae%e0%80%ae%e0%80%afoutside",
    "%u002e%u002e%u2215outside",
    "..%c1%9coutside%c1%9csecret.txt",
    "%ef%bc%8e%ef%bc%8e%ef%bc%8foutside",
    "{outside}/secret.txt",
    "%2f{quoted}%2fsecret.txt",
    "//{outside}/secret.txt",
    "file://{outside}/secret.txt",
    "file:%2f%2f{quoted}%2fsecret.txt",
    "~/secret.txt",
    "%7e/secret.txt",
    "/proc/self/environ",
    "%2fproc%2fself%2fenviron",
    "..%2f..%2f..%2f..%2f..%2f..%2f..%2fproc%2fself%2fenviron",
    "inside%2f..%2f..%2foutside%2frun",
    "..%0d%0aoutside",
    "*",
    "link",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    top = tmp_path_factory.mktemp("top")
    (top / "outside").mkdir()
    (top / "outside" / "secret.txt").write_text(SECRET)
    make_run(top / "outside" / "run", domain={"type": SECRET})
    make_run(top / "root" / "inside")
    (top / "root" / "link").symlink_to(top / "outside" / "run")
    archive().save(top / "outside" / "elites.npz")
    (top / "root" / "elites.npz").symlink_to(top / "outside" / "elites.npz")
    return top


@pytest.fixture(scope="module")
def server(place):
    with served(place / "root") as running:
        yield running


def test_there_are_at_least_40_encodings():
    assert len(set(ENCODINGS)) >= 40


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nothing_outside_is_opened(server, place, encoding):
    outside = str(place / "outside")
    name = encoding.format(outside=outside, quoted=outside.strip("/").replace("/", "%2f"))
    run = httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"][0]["id"]
    before = len(watched)
    watching.set()
    try:
        for path in (f"/static/{name}", f"/api/runs/{name}", f"/api/runs/{run}/views/{name}", f"/{name}"):
            answer = _raw_get(server, path)
            assert 400 <= answer.status_code < 500, path
            assert SECRET not in answer.text
    finally:
        watching.clear()
    assert [path for path in watched[before:] if outside in str(path) or "environ" in str(path)] == []


def _raw_get(server, path):
    """The path as it is: httpx would tidy it up."""
    request = httpx.Request("GET", server.address, cookies=server.cookie)
    request.url = _Literal(request.url, path)
    with httpx.HTTPTransport() as transport:
        answer = transport.handle_request(request)
        answer.read()
        return answer


class _Literal:
    def __init__(self, url, path):
        self._url, self._path = url, path

    def __getattr__(self, name):
        return getattr(self._url, name)

    @property
    def raw_path(self):
        return self._path.encode("utf-8").replace(b" ", b"%20")


def test_the_watch_sees_what_is_opened(place):
    watching.set()
    (place / "outside" / "secret.txt").read_text()
    watching.clear()
    assert str(place / "outside" / "secret.txt") in watched


def test_links_that_lead_out_are_not_listed(place):
    assert [each.name for each in find(place / "root")] == ["inside"]


def test_a_link_within_the_folder_is_no_second_run(tmp_path):
    make_run(tmp_path / "one")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    assert [each.name for each in find(tmp_path)] == ["one"]


def test_a_run_whose_files_are_links_that_lead_out_is_broken(tmp_path):
    make_run(tmp_path / "outside")
    make_run(tmp_path / "root" / "run")
    file = tmp_path / "root" / "run" / record.STEPS / "000000500" / record.ARCHIVE
    file.unlink()
    file.symlink_to(tmp_path / "outside" / record.STEPS / "000000500" / record.ARCHIVE)
    (line,) = Library(tmp_path / "root").lines()
    assert line["state"] == "broken"
    assert "leads out" in line["why"]


def test_a_view_that_is_a_link_that_leads_out_is_not_shown(tmp_path):
    make_run(tmp_path / "root" / "run")
    archive().save(tmp_path / "view.safetensors")
    views = tmp_path / "root" / "run" / record.VIEWS
    views.mkdir()
    (views / "000000100.safetensors").symlink_to(tmp_path / "view.safetensors")
    with served(tmp_path / "root") as server:
        run = httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"][0]["id"]
        answer = httpx.get(f"{server.address}/api/runs/{run}/views/100", cookies=server.cookie)
    assert answer.status_code == 404
