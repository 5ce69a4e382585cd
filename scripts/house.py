"""The house in numbers: what stands in the root, what has no layer, what returns `Any`, and how long everything is.

python scripts/house.py [CHECKOUT]
"""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


def layers(root: Path) -> set[str]:
    """The modules, below `dqd`, that the first contract of import-linter names."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    named = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {name.strip(" ()").removeprefix("dqd.") for layer in named for name in layer.split("|")}


def functions(tree: ast.AST, owner: ast.ClassDef | None = None) -> Iterator[tuple[ast.ClassDef | None, Function]]:
    """Functions, each with the class that it is a method of."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield owner, node
        yield from functions(node, node if isinstance(node, ast.ClassDef) else None)


def public(root: Path, trees: dict[Path, ast.Module]) -> set[str]:
    """Names in docs/api.md, and the bases of its classes, whose methods users call as well."""
    text = (root / "docs/api.md").read_text()
    modules = " ".join(re.findall(r"`[^`]*`", text.partition("## Modules")[2]))
    names = set(re.findall(r"dqd\.(\w+)", text) + re.findall(r"\w+", modules))
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while bases := {ast.unparse(base) for each in classes if each.name in names for base in each.bases} - names:
        names |= bases
    return names


def is_public(owner: ast.ClassDef | None, function: Function, names: set[str]) -> bool:
    return not function.name.startswith("_") and (owner.name if owner else function.name) in names


def is_any(function: Function) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "Any"


def docstring_lines(tree: ast.Module) -> int:
    """Lines of all docstrings of a file."""
    kinds = ast.Module | ast.ClassDef | Function
    documented = [node for node in ast.walk(tree) if isinstance(node, kinds) and ast.get_docstring(node)]
    return sum(node.body[0].end_lineno - node.body[0].lineno + 1 for node in documented)


def main(root: Path) -> None:
    package = root / "src" / "dqd"
    trees = {path.relative_to(package): ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}
    lines = {path: len((package / path).read_text().splitlines()) for path in trees}
    names, known = public(root, trees), layers(root)
    vague = [(path, *each) for path, tree in trees.items() for each in functions(tree) if is_any(each[1])]
    open_to_all = [f"{path}: {each.name}" for path, owner, each in vague if is_public(owner, each, names)]
    homeless = [path for path in trees if path.parts[0].removesuffix(".py") not in known | {"__init__", "__main__"}]
    longest = max(lines, key=lines.__getitem__)

    print(f"files in the root            {sum(len(path.parts) == 1 for path in trees)}")
    print(f"modules without a layer      {len(homeless)}  {' '.join(map(str, homeless))}".rstrip())
    print(f"functions that return Any    {len(vague)}, of them public {len(open_to_all)}")
    print(*(f"    {each}" for each in open_to_all), sep="\n", end="\n" * bool(open_to_all))
    print(f"longest file                 {longest}, {lines[longest]} lines")
    print(f"\n{'folder':24} files  lines  without docstrings")
    folders = defaultdict(list)
    for path in trees:
        folders[path.parts[0] if len(path.parts) > 1 else "."].append(path)
    for folder, files in [*folders.items(), ("all", list(trees))]:
        count, said = sum(lines[path] for path in files), sum(docstring_lines(trees[path]) for path in files)
        print(f"{folder:24} {len(files):5}  {count:5}  {count - said:5}")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]) if sys.argv[1:] else Path(__file__).parents[1])
