"""Thrift's compact protocol, as far as the headers of Parquet use it: bytes to numbers, bytes, lists and structs.

A struct is a dictionary from field number to value. The number of values is capped, as an empty struct takes one byte.
"""

from __future__ import annotations

from typing import Any

MAX_VALUES = 500_000  # 10,000 columns take 300,000
MAX_DEPTH = 12
TRUE, FALSE, BYTE, SHORT, INTEGER, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class Compact:
    """A cursor over bytes. Whatever does not fit raises ValueError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.values = data, 0, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self._zigzag()
            kind = header & 15
            if number in fields:
                raise ValueError("a field occurs twice")
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self.values += 1
        if self.values > MAX_VALUES or depth > MAX_DEPTH:
            raise ValueError("too many values, or nested too deep")
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind in (SHORT, INTEGER, LONG):
            return self._zigzag()
        if kind == DOUBLE:
            return self._take(8)
        if kind == BINARY:
            return self._take(self._varint())
        if kind in (LIST, SET):
            header = self._byte()
            size = header >> 4 if header >> 4 < 15 else self._varint()
            return [self._value(header & 15, depth + 1) for _ in range(self._possible(size))]
        if kind == STRUCT:
            return self.struct(depth)
        raise ValueError(f"a value of kind {kind}")  # maps do not occur

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        self.at += self._possible(size)
        return self.data[self.at - size : self.at]

    def _possible(self, size: int) -> int:
        if size > len(self.data) - self.at:
            raise ValueError("it ends early")
        return size

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("a number of more than 64 bits")

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
