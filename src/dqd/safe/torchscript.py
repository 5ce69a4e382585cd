"""Tensors out of a TorchScript archive, such as OpenAI's own files of CLIP, without running any of it. No JAX.

The archive is a zip: programs, which are left alone, a pickle that says what the module holds, and the numbers of every
tensor as a file of its own. The few opcodes of the pickle that describe modules and tensors are interpreted here as
plain data; names of classes stay names, nothing is called, and any other opcode is refused.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dqd.safe.files import UnreadableError

KINDS = {
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "DoubleStorage": np.float64,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}
LARGEST = 8 * 2**30  # bytes of all numbers
LARGEST_PICKLE = 64 * 2**20
PLAIN = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINSTRING")
ALLOWED = "only modules and tensors are read; nothing of the file is run"


def is_torchscript(path: Path) -> bool:
    """Whether a file is such an archive: it holds programs."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.split("/", 1)[-1] == "constants.pkl" for name in archive.namelist())


def read(path: Path) -> dict[str, np.ndarray]:
    """The parameters and buffers of the module, by their dotted names; real numbers as float32."""
    try:
        return _read(path)
    except UnreadableError:
        raise
    except Exception as error:  # whatever a hostile file does to those who believe it
        raise UnreadableError(path, f"it is damaged ({error})", ALLOWED) from error


def _read(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        names = {name.split("/", 1)[-1]: name for name in archive.namelist()}
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        if sum(sizes.values()) > LARGEST or sizes.get(names.get("data.pkl", ""), LARGEST) > LARGEST_PICKLE:
            raise UnreadableError(path, "it declares too many bytes, or no data.pkl", ALLOWED)
        module = _Plain(path).read(archive.read(names["data.pkl"]))
        if not isinstance(module, dict):
            raise UnreadableError(path, "its pickle holds no module", ALLOWED)

        def storage(key: str, kind: str) -> np.ndarray:
            if kind not in KINDS or f"data/{key}" not in names:
                raise UnreadableError(path, f"numbers of kind {kind} under data/{key}", ALLOWED)
            return np.frombuffer(archive.read(names[f"data/{key}"]), KINDS[kind])

        found = dict(_tensors(module))
        if sum(4 * math.prod(about["shape"]) for about in found.values()) > LARGEST:
            raise UnreadableError(path, "its tensors are larger than all its numbers may be", ALLOWED)
        return {name: _tensor(path, about, storage) for name, about in found.items()}


def _tensors(module: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in module.items() if isinstance(module, dict) else ():
        if isinstance(value, dict) and value.get("") == "tensor":
            yield f"{prefix}{name}", value
        else:
            yield from _tensors(value, f"{prefix}{name}.")


def _tensor(path: Path, about: dict[str, Any], storage: Any) -> np.ndarray:
    numbers, shape, strides = storage(about["key"], about["kind"]), about["shape"], about["strides"]
    last = about["offset"] + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    inside = min(strides, default=0) >= 0 and math.prod(shape) <= len(numbers)
    if math.prod(shape) and not (inside and 0 <= about["offset"] <= last < len(numbers)):
        raise UnreadableError(path, f"a tensor of shape {shape} reaches beyond its {len(numbers)} numbers", ALLOWED)
    steps = tuple(stride * numbers.itemsize for stride in strides)
    found = np.lib.stride_tricks.as_strided(numbers[about["offset"] :], shape, steps, writeable=False)
    return np.array(found, np.float32 if found.dtype.kind == "f" else None)


class _Plain:
    """A pickle as plain data: a module is the dictionary of what it holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[Any, Any] = {}

    def read(self, content: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(content):
            name = opcode.name
            if name == "STOP":
                return self.stack.pop()
            if name in PLAIN:
                self.stack.append(argument)
            elif name != "PROTO":
                getattr(self, f"_{name.lower()}", self._refused(name))(argument)
        raise ValueError("cut short")

    def _refused(self, name: str) -> Any:
        def refuse(argument: Any) -> None:
            raise UnreadableError(self.path, f"its pickle asks for {name}", ALLOWED)

        return refuse

    def _none(self, _: Any) -> None:
        self.stack.append(None)

    def _newtrue(self, _: Any) -> None:
        self.stack.append(True)

    def _newfalse(self, _: Any) -> None:
        self.stack.append(False)

    def _global(self, argument: str) -> None:
        self.stack.append(("class", argument))

    def _empty_dict(self, _: Any) -> None:
        self.stack.append({})

    def _empty_list(self, _: Any) -> None:
        self.stack.append([])

    def _empty_tuple(self, _: Any) -> None:
        self.stack.append(())

    def _binput(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    def _binget(self, key: int) -> None:
        self.stack.append(self.memo[key])

    _long_binput, _long_binget = _binput, _binget

    def _mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def _marked(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._marked()))

    def _tuple1(self, _: Any) -> None:
        self.stack.append((self.stack.pop(),))

    def _tuple2(self, _: Any) -> None:
        second, first = self.stack.pop(), self.stack.pop()
        self.stack.append((first, second))

    def _tuple3(self, _: Any) -> None:
        third, second, first = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self.stack.append((first, second, third))

    def _appends(self, _: Any) -> None:
        items = self._marked()
        self.stack[-1].extend(items)

    def _append(self, _: Any) -> None:
        item = self.stack.pop()
        self.stack[-1].append(item)

    def _setitems(self, _: Any) -> None:
        items = self._marked()
        self.stack[-1].update(zip(items[::2], items[1::2], strict=True))

    def _setitem(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][key] = value

    def _binpersid(self, _: Any) -> None:
        match self.stack.pop():
            case ("storage", ("class", str(kind)), str(key), *_):
                self.stack.append({"": "storage", "kind": kind.split()[-1], "key": key})
            case other:
                raise UnreadableError(self.path, f"its pickle points to {str(other)[:80]}", ALLOWED)

    def _newobj(self, _: Any) -> None:
        """A module that is not filled yet."""
        self.stack.pop()
        self.stack.pop()
        self.stack.append({})

    def _reduce(self, _: Any) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        match function, arguments:
            case ("class", "torch._utils _rebuild_tensor_v2"), ({"": "storage", **where}, offset, shape, strides, *_):
                about = {"offset": offset, "shape": tuple(shape), "strides": tuple(strides)}
                self.stack.append({"": "tensor", **where, **about})
            case ("class", "collections OrderedDict"), ():
                self.stack.append({})
            case ("class", str(name)), (inner, *_) if name.startswith("torch.jit._pickle "):
                self.stack.append(inner)  # a list that says of what type it is
            case ("class", str(name)), _:
                raise UnreadableError(self.path, f"its pickle wants to call {name}", ALLOWED)

    def _build(self, _: Any) -> None:
        """What a module holds."""
        state = self.stack.pop()
        if isinstance(self.stack[-1], dict) and isinstance(state, dict):
            self.stack[-1].update(state)
