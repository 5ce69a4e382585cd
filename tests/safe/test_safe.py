"""The safe readers read what the usual writers write. What they refuse is in tests/reliability."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dqd import safe

ARRAYS = {
    "truth": np.array([True, False, True]),
    **{f"i{bits}": np.array([[1, -2, 3]], f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.array([[1], [2]], f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.array([0.1, np.nan, -np.inf, 5e-8], f"f{bits // 8}") for bits in (16, 32, 64)},
    "scalar": np.array(3.5),
    "empty": np.zeros((0, 4), np.float32),
    "deep": np.arange(24.0).reshape(2, 3, 4),
    "across": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name
        if array.size:
            found[name][...] = 0  # ours to write to


def test_safetensors_are_read_as_their_own_library_reads_them(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}, path, {"note": "of no concern"})
    assert_same(safe.load_safetensors(path), load_file(path))


def test_some_arrays_are_read_by_name(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"a": np.arange(3), "b": np.ones(2)}, path)
    assert_same(safe.load_safetensors(path, ["b", "c"]), {"b": np.ones(2)})


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz_are_read_as_numpy_reads_them(tmp_path, write):
    path = tmp_path / "a.npz"
    write(path, **ARRAYS)
    with np.load(path) as expected:
        assert_same(safe.load_npz(path), dict(expected))


def test_an_npz_larger_than_4_gib_would_be_read(tmp_path):
    """Its list of members is announced in another place; zipfile writes that place early if it is told that 1 byte is
    too much."""
    import zipfile

    path = tmp_path / "a.npz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zipfile, "ZIP64_LIMIT", 1)
        np.savez(path, a=np.arange(1000))
    assert b"PK\6\6" in path.read_bytes()
    assert_same(safe.load_npz(path), {"a": np.arange(1000)})


def test_json_and_lines_of_json(tmp_path):
    value = {"a": [1, 2.5, None, True, "ü"], "b": {"c": []}}
    (tmp_path / "a.json").write_text(json.dumps(value))
    assert safe.load_json(tmp_path / "a.json") == value
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    assert safe.load_jsonl(tmp_path / "a.jsonl") == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_csv_with_and_without_a_comment(tmp_path, ends):
    path = tmp_path / "a.csv"
    path.write_text(ends.join(["a,b,name", '1,0.1,"x, y"', "2,1e-3,z", ""]), newline="")
    about, columns = safe.load_csv(path, ["a", "b"])
    assert (about, list(columns)) == ({}, ["a", "b"])
    assert columns["b"].tolist() == [0.1, 1e-3]
    path.write_text(ends.join(['# {"k": 1}', "a", "7"]), newline="")
    about, columns = safe.load_csv(path)
    assert (about, columns["a"].tolist()) == ({"k": 1}, [7.0])


def test_the_error_names_file_finding_and_limit(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes((2**21).to_bytes(8, "little") + bytes(2**21))
    with pytest.raises(safe.UnreadableError) as caught:
        safe.load_safetensors(path)
    assert str(caught.value) == (
        f"{path}: a header of 2,097,152 bytes; allowed are 1,048,576 within the file of 2,097,160"
    )
