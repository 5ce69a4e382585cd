"""The one place where bytes from disk become values. Opening somebody else's file is safe.

Every reader knows what a file may hold before it believes the file: sizes are compared with the file's own and with a
cap before anything is allocated, names and types with a list. Nothing here can run code: no pickle, no eval. A file
that is not what it should be raises `UnreadableError`, whatever is wrong with it. NumPy only; never JAX.
"""

from dqd.safe.files import MAX_BYTES, UnreadableError, load_bytes
from dqd.safe.npz import load_npz
from dqd.safe.parquet import load_parquet
from dqd.safe.tensors import describe_safetensors, load_safetensors
from dqd.safe.text import load_csv, load_json, load_jsonl, load_text

__all__ = [
    "MAX_BYTES",
    "UnreadableError",
    "describe_safetensors",
    "load_bytes",
    "load_csv",
    "load_json",
    "load_jsonl",
    "load_npz",
    "load_parquet",
    "load_safetensors",
    "load_text",
]
