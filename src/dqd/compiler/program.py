"""What XLA made of a function: its operations, read from the text of the compiled program.

An operation that is no mere name for something else is a kernel: on a GPU it is launched, on a CPU it is called. For a
loop of tiny operations their number is the cost, so tests and `make profile` count them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What costs nothing: names, views, and constants.
NAMES = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "opt-barrier", "after-all", "partition-id")
SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
_OPERATION = re.compile(r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<shape>.*?) (?P<kind>[a-z][\w\-]*)\((?P<rest>.*)$")
_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) \(.*\{$")
_ARRAY = re.compile(r"([a-z]+\d*)\[([\d,]*)\]")


@dataclass(frozen=True)
class Operation:
    """One line: what it is called, what shape it returns, what kind it is, and the rest as text."""

    name: str
    shape: str
    kind: str
    rest: str

    @property
    def bytes(self) -> int:
        """How much memory its results take."""
        arrays = [(SIZES.get(kind, 4), sizes) for kind, sizes in _ARRAY.findall(self.shape)]
        total = 0
        for size, sizes in arrays:
            for length in filter(None, sizes.split(",")):
                size *= int(length)
            total += size
        return total

    @property
    def library(self) -> str | None:
        """The function of a library that it calls."""
        found = re.search(r'custom_call_target="([^"]*)"', self.rest)
        return found[1] if found else None

    def called(self, *roles: str) -> list[str]:
        """The computations that it has in these roles, such as `body` or `branch_computations`."""
        names = []
        for role in roles:
            for one, several in re.findall(rf"{role}=(?:%?([\w.\-]+)|\{{([^}}]*)\}})", self.rest):
                names += [one] if one else [name.strip().lstrip("%") for name in several.split(",")]
        return names


@dataclass(frozen=True)
class Program:
    """A compiled program as its computations, each a list of operations."""

    computations: dict[str, list[Operation]]
    entry: str

    @staticmethod
    def read(text: str) -> Program:
        """From what `lowered.compile().as_text()` returns."""
        computations: dict[str, list[Operation]] = {}
        entry, operations = "", []
        for line in text.splitlines():
            if begin := _COMPUTATION.match(line):
                operations = computations[begin["name"]] = []
                entry = begin["name"] if begin["entry"] else entry
            elif found := _OPERATION.match(line):
                operations.append(Operation(**found.groupdict()))
        return Program(computations, entry)

    def kernels(self, computation: str | None = None) -> list[Operation]:
        """What runs when a computation does, loops within it counted as one round, of branches the longest.

        Without a name: of the whole program.
        """
        found = []
        for operation in self.computations[computation or self.entry]:
            if operation.kind == "while":
                found += [kernel for part in operation.called("condition", "body") for kernel in self.kernels(part)]
            elif operation.kind == "conditional":
                branches = operation.called("true_computation", "false_computation", "branch_computations")
                found += [operation, *max((self.kernels(branch) for branch in branches), key=len)]
            elif operation.kind == "call":
                found += [kernel for part in operation.called("to_apply") for kernel in self.kernels(part)]
            elif operation.kind not in NAMES:
                found.append(operation)
        return found

    def loop(self) -> str:
        """The body of the innermost loop that carries as many bytes as any: for a search, one iteration."""
        loops = list(self._loops(self.entry, 0))
        if not loops:
            raise ValueError("the program has no loop")
        most = max(operation.bytes for _, operation in loops)
        _, innermost = max((loop for loop in loops if loop[1].bytes >= most / 2), key=lambda loop: loop[0])
        return innermost.called("body")[0]

    def _loops(self, computation: str, depth: int) -> Iterator[tuple[int, Operation]]:
        for operation in self.computations[computation]:
            if operation.kind == "while":
                yield depth, operation
            within = ("body", "to_apply", "true_computation", "false_computation", "branch_computations")
            for part in operation.called(*within) if operation.kind in ("while", "call", "conditional") else []:
                yield from self._loops(part, depth + 1)

    def copies(self, least: int, computation: str | None = None) -> list[Operation]:
        """Copies of at least so many bytes, anywhere in the program or when that computation runs."""
        every = [operation for part in self.computations.values() for operation in part]
        return [
            operation
            for operation in (every if computation is None else self.kernels(computation))
            if operation.kind in ("copy", "copy-start") and operation.bytes >= least
        ]
