"""Files that claim or hide more than a reader should ever allocate are refused before it does."""

import functools
import gzip
import inspect
import io
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from reliability.samples import small_archive

import dqd
from dqd import safe
from dqd.safe import text

PEAK = 8 * 2**20  # bytes that a refusal may take
GiB = 2**30


def tensors(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + body


def tensor(shape, end, kind="F32", begin=0) -> bytes:
    return json.dumps({"cell": {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}}).encode()


def npy(shape: str, body: bytes = b"", descr: str = "'<f4'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def zipped(members: dict[str, bytes], kind=zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


def shrunk(data: bytes, true: int, claimed: int) -> bytes:
    """A zip whose directory and local header claim another unpacked size."""
    return data.replace(struct.pack("<I", true), struct.pack("<I", claimed))


ZEROS = 64 * 2**20
SAFETENSORS = {
    "a header longer than 1 MiB": tensors(b"{" + b" " * 2**20 + b"}"),
    "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "a header of 2**63 bytes": struct.pack("<Q", 2**63) + b"{}",
    "an array of a terabyte": tensors(tensor([2**38], 2**40)),
    "sizes that overflow": tensors(tensor([2**40, 2**40], 0)),
    "sizes that overflow to what is there": tensors(tensor([2**62, 4], 0)),
    "a negative size": tensors(tensor([-1, -4], 16), bytes(16)),
    "a thousand axes": tensors(tensor([1] * 1000, 4), bytes(4)),
    "truth for a size": tensors(tensor([True], 4), bytes(4)),
    "a fraction for a size": tensors(tensor([1.0], 4), bytes(4)),
    "an array beyond the file": tensors(tensor([4], 16), bytes(8)),
    "an array before the file": tensors(tensor([4], 8, begin=-8), bytes(16)),
    "a hole": tensors(tensor([4], 24, begin=8), bytes(24)),
    "more bytes than arrays": tensors(tensor([4], 16), bytes(17)),
    "two arrays in one place": tensors(
        json.dumps({name: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} for name in "ab"}).encode(), bytes(16)
    ),
    "one name twice": tensors(b'{"a":1,"a":2}'),
    "an unknown type": tensors(tensor([4], 8, kind="BF16"), bytes(8)),
    "200,000 nested lists": tensors(b"[" * 200_000 + b"]" * 200_000),
    "20,000 arrays": tensors(json.dumps({str(i): 0 for i in range(20_000)}).encode()),
    "a truth value of 7": tensors(tensor([1], 1, kind="BOOL"), b"\7"),
}
NPZ = {
    "zeros packed 1000 to 1": zipped({"cell.npy": npy(f"({ZEROS // 4},)", bytes(ZEROS))}),
    "a size that hides the zeros": shrunk(
        zipped({"cell.npy": npy(f"({ZEROS // 4},)", bytes(ZEROS))}), ZEROS + len(npy(f"({ZEROS // 4},)")), 2000
    ),
    "an array of a terabyte": zipped({"cell.npy": npy(f"({2**38},)")}),
    "sizes that overflow": zipped({"cell.npy": npy("(9223372036854775807, 9223372036854775807)")}),
    "objects": zipped({"cell.npy": npy("(1,)", b"cos\nsystem\n(S'true'\ntR.", descr="'|O'")}),
    "a structure": zipped({"cell.npy": npy("(1,)", bytes(4), descr="[('a', '<f4')]")}),
    "code for a shape": zipped({"cell.npy": npy("(__import__('os').getpid(),)", bytes(4))}),
    "a path for a name": zipped({"../../cell.npy": npy("(1,)", bytes(4))}),
    "a pickle for a member": zipped({"cell.pkl": b"cos\nsystem\n(S'true'\ntR."}),
    "a long header": zipped({"cell.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 100}),
    "lzma": zipped({"cell.npy": npy("(1,)", bytes(4))}, zipfile.ZIP_LZMA),
    "20,000 members": zipped({f"a{i}.npy": b"" for i in range(20_000)}, zipfile.ZIP_STORED),
    "a list of members longer than 1 MiB": zipped({"a" * 60_000 + f"{i}.npy": b"" for i in range(20)}),
    "a comment behind the list": zipped({"cell.npy": npy("(1,)", bytes(4))}) + b"PK\5\6" + bytes(10),
    "fewer bytes than its shape takes": zipped({"cell.npy": npy("(9,)", bytes(4))}),
}
JSON = {
    "200,000 nested lists": b"[" * 200_000 + b"]" * 200_000,
    "33 nested objects": b'{"a":' * 33 + b"1" + b"}" * 33,
    "a number of a million digits": b"9" * 10**6,
    "not text": b"\xff\xfe{}",
    "33 lists behind a string of brackets": b'["' + b"]" * 10**6 + b'",' + b"[" * 32 + b"]" * 33,
}
JSONL = {
    "a million lines": b"{}\n" * 2**20,
    "20,001 lines": b"{}\n" * 20_001,
    "a line without an object": b'{"a": 1}\n[]\n',
}
CSV = {
    "a first line that never ends": b"a" * 2**21,
    "a comment that nests": b"# " + b"[" * 10_000 + b"\na\n1\n",
    "words": b"cell,objective\n1,__import__('os')\n",
    "rows of different lengths": b"cell,objective\n1,2\n1\n",
    "one name twice": b"cell,cell\n1,2\n",
}
TEXT = {
    "zeros packed 1000 to 1.gz": gzip.compress(bytes(ZEROS)),
    "cut short.gz": gzip.compress(b"word " * 100)[:-9],
    "not packed.gz": b"word",
    "not text": b"\xff\xfe",
}
CASES = [
    (functools.partial(safe.load_text, limit=2**20), TEXT),
    (safe.load_safetensors, SAFETENSORS),
    (safe.load_npz, NPZ),
    (safe.load_json, JSON),
    (safe.load_jsonl, JSONL),
    (safe.load_csv, CSV),
]


def refused(load, path, words=None, peak=PEAK):
    """The load is refused with our own error, and takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(dqd.UnreadableError, match=words) as caught:
            load(path)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 500
    assert taken < peak


def _named(load):
    return getattr(load, "func", load).__name__.removeprefix("load_")


@pytest.mark.parametrize(
    ("load", "name", "data"),
    [
        pytest.param(load, name, data, id=f"{_named(load)}: {name}")
        for load, cases in CASES
        for name, data in cases.items()
    ],
)
def test_a_bomb_is_refused(tmp_path, load, name, data):
    path = tmp_path / f"bomb{Path(name).suffix}"
    path.write_bytes(data)
    refused(load, path)


@pytest.mark.parametrize(
    ("load", "data"),
    [
        (safe.load_json, b"[" + b'{"":0},' * 300 + b"0]"),
        (safe.load_json, b'""' * 1001),
        (safe.load_jsonl, b'{"a":[' + b"[]," * 400 + b"[]]}\n"),
        (safe.load_jsonl, b'{"a":[{},{},{}]}\n' * 100),
    ],
)
def test_json_of_too_many_values_is_refused_unparsed(tmp_path, monkeypatch, load, data):
    monkeypatch.setattr(text, "MAX_MARKS", 1000)  # of a million
    monkeypatch.setattr(text.json, "loads", None)
    (tmp_path / "bomb").write_bytes(data)
    refused(load, tmp_path / "bomb", "too many values")


LOADERS = [getattr(safe, name) for name in safe.__all__ if name.startswith(("load_", "describe_"))]


def capped(load):
    """Some loaders are told how much is too much."""
    return functools.partial(load, limit=GiB) if "limit" in inspect.signature(load).parameters else load


@pytest.mark.parametrize("load", LOADERS)
def test_a_file_larger_than_the_cap_is_refused_unread(tmp_path, load):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(17 * GiB)  # a hole; it takes no room
    refused(capped(load), tmp_path / "large", "allowed are")


@pytest.mark.parametrize("load", LOADERS)
def test_a_pipe_is_refused_at_once(tmp_path, load):
    os.mkfifo(tmp_path / "pipe")
    refused(capped(load), tmp_path / "pipe", "not a plain file")


@pytest.mark.parametrize(
    "options",
    [{"compression": "snappy"}, {"compression": "zstd"}, {"compression": "none", "use_dictionary": True}],
    ids=["snappy", "zstd", "dictionary"],
)
def test_packed_parquet_is_refused(tmp_path, options):
    columns = {"cell": np.zeros(10**7, np.int32)}  # 40 MB in a few kilobytes
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet", **{"use_dictionary": False, **options})
    refused(dqd.load, tmp_path / "a.parquet", "plain numbers")


@pytest.mark.parametrize("words", [["a", "b"], [None, "b"]])
def test_parquet_with_words_is_refused(tmp_path, words):
    pyarrow.parquet.write_table(pyarrow.table({"cell": words}), tmp_path / "a.parquet", compression="none")
    refused(dqd.load, tmp_path / "a.parquet", "allowed are plain numbers")


def parquet(footer: bytes) -> bytes:
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


PARQUET = {
    "a list of a billion values": b"\x19\xf5\xff\xff\xff\xff\x0f",
    "structs in structs": b"\x1c" * 100_000,
    "lists in lists": b"\x19" * 100_000,
    "2 million empty structs": b"\x19\xfc\x80\x89\x7a" + bytes(2_000_000),
    "a name of 4 GiB": b"\x18\xff\xff\xff\xff\x0f",
    "a number that never ends": b"\x15" + b"\xff" * 1000,
    "nothing": b"\0",
}


@pytest.mark.parametrize("footer", PARQUET.values(), ids=PARQUET)
def test_a_footer_of_parquet_that_is_a_bomb_is_refused(tmp_path, footer):
    (tmp_path / "a.parquet").write_bytes(parquet(footer))
    refused(safe.load_parquet, tmp_path / "a.parquet", peak=96 * 2**20)  # a million empty structs, at the cap


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data_page_size": 1, "write_batch_size": 1}, "3,000 numbers in 6 pages or more"),
        ({"row_group_size": 1}, "3,000 groups of rows; allowed are 5"),
    ],
)
def test_parquet_in_pieces_of_one_number_is_refused(tmp_path, options, words):
    numbers = pyarrow.field("cell", pyarrow.int32(), nullable=False)
    table = pyarrow.table({"cell": np.arange(3000, dtype=np.int32)}, schema=pyarrow.schema([numbers]))
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", **plain, **options)
    refused(safe.load_parquet, tmp_path / "a.parquet", words)


def test_parquet_with_a_footer_beyond_the_file_is_refused(tmp_path):
    data = bytearray(small_archive().save(tmp_path / "a.parquet").read_bytes())
    data[-8:-4] = struct.pack("<I", 2**31)
    (tmp_path / "a.parquet").write_bytes(data)
    refused(dqd.load, tmp_path / "a.parquet", "a footer of")


# Files as dear as the caps allow --------------------------------------------------------------------------------------


def table(columns: int, rows: int, **options) -> bytes:
    fields = [pyarrow.field(f"c{i}", pyarrow.int32(), nullable=False) for i in range(columns)]
    numbers = [np.arange(rows, dtype=np.int32)] * columns
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True, **options}
    target = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(numbers, schema=pyarrow.schema(fields)), target, **plain)
    return target.getvalue()


MiB = 2**20
SINGLE = {"data_page_size": 1, "write_batch_size": 1}
DEAR = {
    "8 MiB of empty objects.jsonl": lambda: b"{}\n" * (8 * MiB // 3),
    "32 MiB of empty objects.jsonl": lambda: b"{}\n" * (32 * MiB // 3),
    "one long word.jsonl": lambda: b'{"a":"' + b"x" * (16 * MiB - 20) + "\N{GRINNING FACE}".encode() + b'"}',
    "20,000 lines of 25 names.jsonl": lambda: b"".join(
        b"{" + b",".join(b'"%06x":1.5' % (25 * i + j) for j in range(25)) + b"}\n" for i in range(19_000)
    ),
    "empty strings.jsonl": lambda: b'""' * (8 * MiB),
    "16 MiB of objects.json": lambda: b"[" + b'{"":0},' * (16 * MiB // 7) + b"0]",
    "4 MiB of objects.json": lambda: b"[" + b'{"":0},' * (4 * MiB // 7 - 1) + b"0]",
    "250,000 objects.json": lambda: b"[" + b'{"":0},' * 249_990 + b"0]",
    "350,000 names.json": lambda: b"{" + b",".join(b'"%05x":1.5' % i for i in range(340_000)) + b"}",
    "pages of one number.parquet": lambda: table(1, 250_000, **SINGLE),
    "groups of one row.parquet": lambda: table(1, 60_000, row_group_size=1),
    "10,000 columns.parquet": lambda: table(10_000, 170),
    "10,000 columns of two pages.parquet": lambda: table(10_000, 2, **SINGLE),
    "500,000 structs.parquet": lambda: parquet(b"\x19\xfc\xff\xff\x7f" + bytes(2 * MiB)),
    "10,000 members.npz": lambda: zipped({f"a{i}.npy": npy("(1,)", bytes(4)) for i in range(10_000)}),
    "10,000 arrays.safetensors": lambda: tensors(
        json.dumps({str(i): {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i in range(10_000)}).encode(),
        bytes(10_000),
    ),
    "170,000 columns.csv": lambda: ",".join(map(str, range(150_000))).encode() + b"\n" + b"1," * 149_999 + b"1\n",
    "16 MiB of empty lines.csv": lambda: b"a\n1\n" + b"\n" * (16 * MiB),
}
CHILD = """
import resource, signal, sys, time
from dqd import safe
from dqd.safe import text
load = getattr(safe, "load_" + sys.argv[1].rpartition(".")[2])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 256 * 2**20,) * 2)
signal.setitimer(signal.ITIMER_PROF, 5)  # ends the process
began = time.process_time()
try:
    load(sys.argv[1])
except safe.UnreadableError as error:
    print(error)
print(time.process_time() - began, "s")
"""


@pytest.mark.long
@pytest.mark.parametrize("name", DEAR)
def test_the_dearest_files_are_read_or_refused_within_5_seconds_and_256_mb(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(DEAR[name]())
    done = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-2000:]
