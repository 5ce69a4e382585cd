"""Arrays out of other people's model files: OpenVINO IR, ONNX, TensorFlow.js and the older PyTorch checkpoints.

Nothing of theirs is run. A PyTorch checkpoint is a pickle; its few opcodes that describe tensors are interpreted here
as plain data, and any other one is refused. No JAX.
"""

from __future__ import annotations

import io
import json
import math
import pickletools
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree  # its input was checked against a pinned hash

import numpy as np

Arrays = dict[str, np.ndarray]

# OpenVINO IR ----------------------------------------------------------------------------------------------------------

LARGEST_XML = 2**24
OPENVINO_TYPES = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32}


def read_openvino(graph: bytes, weights: bytes) -> Arrays:
    """The constants of an OpenVINO IR of version 10, in the order of the graph."""
    if len(graph) > LARGEST_XML:
        raise ValueError(f"OpenVINO graph: expected at most {LARGEST_XML:,} bytes, got {len(graph):,}")
    layers = ElementTree.fromstring(graph).find("layers")  # noqa: S314
    if layers is None:
        raise ValueError("OpenVINO graph: there is no <layers> in it")
    arrays: Arrays = {}
    for layer in layers:
        data = layer.find("data")
        if layer.get("type") == "Const" and data is not None:
            arrays[str(layer.get("name"))] = _openvino_constant(data.attrib, weights)
    return arrays


def _openvino_constant(data: dict[str, str], weights: bytes) -> np.ndarray:
    kind = OPENVINO_TYPES.get(data["element_type"])
    if kind is None:
        raise ValueError(f"OpenVINO graph: constants of type {data['element_type']!r} are not known here")
    shape = [int(size) for size in data["shape"].split(",") if size.strip()]
    start, size = int(data["offset"]), int(data["size"])
    if start + size > len(weights) or size != math.prod(shape) * np.dtype(kind).itemsize:
        raise ValueError(f"OpenVINO weights: {size} bytes at {start} do not fit {shape} in a file of {len(weights)}")
    return np.frombuffer(weights, kind, math.prod(shape), start).reshape(shape)


# ONNX: a protocol buffer, of which only the initialisers are wanted --------------------------------------------------

MODEL_GRAPH, GRAPH_INITIALIZER = 7, 5
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW = 1, 2, 8, 9
ONNX_TYPES = {1: np.float32, 7: np.int64}


def read_onnx(model: bytes) -> Arrays:
    """The initialisers of an ONNX model."""
    arrays: Arrays = {}
    for field, graph in _fields(memoryview(model)):
        if field == MODEL_GRAPH:
            tensors = (tensor for number, tensor in _fields(graph) if number == GRAPH_INITIALIZER)
            arrays.update(_onnx_tensor(tensor) for tensor in tensors)
    if not arrays:
        raise ValueError("ONNX: no weights found; the file is not a model or is cut short")
    return arrays


def _onnx_tensor(tensor: memoryview) -> tuple[str, np.ndarray]:
    dims, kind, name, raw = [], 0, "", b""
    for field, value in _fields(tensor):
        if field == TENSOR_DIMS:
            dims.append(value)
        elif field == TENSOR_TYPE:
            kind = value
        elif field == TENSOR_NAME:
            name = bytes(value).decode()
        elif field == TENSOR_RAW:
            raw = value
    if kind not in ONNX_TYPES:
        raise ValueError(f"ONNX: {name} has element type {kind}, known are {sorted(ONNX_TYPES)}")
    return name, np.frombuffer(raw, ONNX_TYPES[kind]).reshape(dims)


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """(field number, value) of a protocol buffer; messages and strings as views."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield field, value
            continue
        if wire == 2:
            size, at = _varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"ONNX: wire type {wire} is not part of the format; the file is damaged")
        if at + size > len(message):
            raise ValueError("ONNX: the file is cut short")
        yield field, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte, at = message[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("ONNX: the file is cut short")


# TensorFlow.js: one array after the other -----------------------------------------------------------------------------

TFJS_TYPES = {"float32": np.float32, "float16": np.float16, "int32": np.int32}


def read_tfjs(graph: bytes, weights: bytes) -> Arrays:
    """The weights of a graph of TensorFlow.js by their names; those in half precision as float32."""
    arrays, at = {}, 0
    for entry in json.loads(graph)["weightsManifest"][0]["weights"]:
        kind = entry.get("quantization", {}).get("dtype") or entry["dtype"]
        if kind not in TFJS_TYPES:
            raise ValueError(f"TensorFlow.js: {entry['name']} is of type {kind!r}, known are {', '.join(TFJS_TYPES)}")
        dtype, count = np.dtype(TFJS_TYPES[kind]), math.prod(entry["shape"])
        if at + count * dtype.itemsize > len(weights):
            raise ValueError("TensorFlow.js: the file of weights is cut short")
        array = np.frombuffer(weights, dtype, count, at).reshape(entry["shape"])
        arrays[entry["name"]] = array.astype(np.float32) if dtype == np.float16 else array
        at += count * dtype.itemsize
    return arrays


# PyTorch before its zip format: five pickles, then the bytes of every storage -----------------------------------------

MAGIC = 0x1950A86A20F9469CFC6C
ITEM_BYTES = {"FloatStorage": np.float32, "LongStorage": np.int64}


def read_torch(checkpoint: bytes) -> Arrays:
    """The tensors of a state dict in the file format of PyTorch before 1.6."""
    file = io.BytesIO(checkpoint)
    if _data(file) != MAGIC:
        raise ValueError("PyTorch checkpoint: not in the format of before version 1.6")
    _version, _system, tensors, order = (_data(file) for _ in range(4))
    kinds = {tensor["storage"]: tensor["kind"] for tensor in tensors.values()}
    storages = {key: _storage(file, kinds[key]) for key in order}
    return {name: _tensor(storages[tensor["storage"]], tensor) for name, tensor in tensors.items()}


def _storage(file: io.BytesIO, kind: str) -> np.ndarray:
    dtype = np.dtype(ITEM_BYTES[kind])
    count = int(np.frombuffer(_exactly(file, 8), np.int64)[0])
    return np.frombuffer(_exactly(file, count * dtype.itemsize), dtype)


def _exactly(file: io.BytesIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) != size:
        raise ValueError("PyTorch checkpoint: the file is cut short")
    return found


def _tensor(storage: np.ndarray, about: dict[str, Any]) -> np.ndarray:
    shape, start = about["shape"], about["offset"]
    contiguous = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    if about["strides"] != contiguous:
        raise ValueError(f"PyTorch checkpoint: strides {about['strides']} of shape {shape} are not contiguous")
    return storage[start : start + math.prod(shape)].reshape(shape)


def _data(file: io.BytesIO) -> Any:
    """One pickle as plain data. Names of classes stay names; only tensors and dictionaries are made of them."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name in ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE"):
            stack.append(argument)
        elif name == "GLOBAL":
            stack.append(("name", argument))
        elif name in ("NONE", "NEWTRUE", "NEWFALSE"):
            stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[name]())
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("TUPLE", "SETITEMS", "APPENDS"):
            start = marks.pop()
            items, stack = stack[start:], stack[:start]
            if name == "TUPLE":
                stack.append(tuple(items))
            elif name == "APPENDS":
                stack[-1].extend(items)
            else:
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name == "TUPLE1":
            stack.append((stack.pop(),))
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            stack[-1][key] = value
        elif name == "BINPERSID":
            _, kind, key, _, _, _ = stack.pop()
            stack.append((kind[1].split()[-1], key))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_made(function, arguments))
        elif name == "BUILD":
            stack.pop()  # attributes beside the tensors: not wanted
        elif name == "STOP":
            return stack.pop()
        elif name != "PROTO":
            raise ValueError(f"PyTorch checkpoint: the pickle opcode {name} is not needed for tensors and is refused")
    raise ValueError("PyTorch checkpoint: the file is cut short")


def _made(function: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    if function == ("name", "collections OrderedDict"):
        return dict(*arguments)
    if function == ("name", "torch._utils _rebuild_tensor_v2"):
        (kind, storage), offset, shape, strides = arguments[:4]
        return {"kind": kind, "storage": storage, "offset": offset, "shape": shape, "strides": strides}
    raise ValueError(f"PyTorch checkpoint: it wants to call {function[1]!r}, which is refused")
