"""Every byte from disk becomes a value in `dqd.safe`: no other module reads files, but those that are listed here."""

import ast
from pathlib import Path

import pytest

import dqd

SOURCE = Path(dqd.__file__).parent
PLACES = ("safe/", "storage/")  # storage compares digests and bytes of what it has written
ALONE = {
    "cli/streams.py": "/dev/null, in place of a closed stream",
    "compiler/cache.py": "the machine's own /proc/cpuinfo",
    "latent/weights/index.py": "downloads, into memory",
    "latent/weights/packages.py": "downloads; archives in memory, whose digest is part of the source",
    "latent/weights/torch_child.py": "a process of its own, which imports nothing of dqd",
    "cli/render.py": "the image that a user's own function has made",
    "explorer/activity.py": "the system's own list of locks",
    "explorer/page.py": "the pages that are part of the package",
    "paper/published.py": "a table that is part of the package",
    "workers/failures.py": "the last byte of a file that it has written",
}
READING = {
    *("open", "fdopen", "read_bytes", "read_text", "urlopen", "mmap", "memmap", "fromfile", "loadtxt", "genfromtxt"),
    *("load_file", "safe_open", "ZipFile", "GzipFile", "imread"),
    *("read_csv", "read_parquet", "read_table", "read_json", "read_pickle"),
}
LIBRARIES = {"np", "numpy", "jnp", "torch", "pickle", "json", "yaml", "marshal"}  # whose `load` reads a file
WRITING = ("w", "a", "x")  # how the mode of such a file begins


def reads(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    modes = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    match call.func:
        case ast.Name(id="open") | ast.Attribute(attr="open" | "fdopen"):
            return not any(mode in (kind, f"{kind}b") for mode in modes for kind in WRITING)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in READING:
            return True
        case ast.Attribute(value=ast.Name(id=library), attr="load"):
            return library in LIBRARIES
    return False


def readers() -> set[str]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(map(reads, calls)):
            found.add(path.relative_to(SOURCE).as_posix())
    return {name for name in found if not name.startswith(PLACES)}


def test_no_other_module_reads_files():
    assert readers() - ALONE.keys() == set(), "read through dqd.safe"


def test_the_list_of_exceptions_holds_no_others():
    assert ALONE.keys() - readers() == set()


@pytest.mark.parametrize(
    "code",
    [
        *("open('file')", "Path('a').open()", "a.open('rb')", "a.open('r+')", "os.open(a, 0)", "a.read_bytes()"),
        *("np.load('a')", "load_file('a')", "safetensors.safe_open(a)", "gzip.GzipFile('a')", "pickle.load(a)"),
        *("pandas.read_csv('a')", "np.loadtxt(a)"),
    ],
)
def test_the_scan_sees(code):
    assert reads(ast.parse(code).body[0].value)


@pytest.mark.parametrize(
    "code", ["load_json(a)", "safe.load_safetensors(a)", "opened(a, 1)", "Tokenizer.load(a)", "a.open('w')"]
)
def test_the_scan_lets_pass(code):
    assert not reads(ast.parse(code).body[0].value)
