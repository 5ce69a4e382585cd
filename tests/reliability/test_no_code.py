"""No file is code: while every loader runs, in a process of its own, whatever could run code from data raises."""

import subprocess
import sys

import numpy as np
import pytest
from reliability.samples import write_all

CHILD = """
import builtins, importlib, marshal, pickle, sys
from pathlib import Path
import numpy as np
from dqd import safe
from dqd.saved.load import from_pyribs, load

FORBIDDEN = ("import", "exec", "compile", "pickle.find_class", "marshal.loads", "code.__new__", "os.system", "os.exec",
             "os.posix_spawn", "os.spawn", "subprocess.Popen", "ctypes.dlopen")
armed = False

def hook(event, arguments):
    if armed and event in FORBIDDEN:
        raise PermissionError(f"{event}: {arguments!r:.200}")

def refuse(name):
    def call(*arguments, **options):
        raise PermissionError(name)
    return call

def arm():
    for module, names in {
        builtins: ("eval", "exec", "compile"),
        pickle: ("load", "loads", "Unpickler", "_Unpickler", "_load", "_loads"),
        marshal: ("load", "loads"),
        importlib: ("import_module",),
        np: ("load",),
        np.lib.format: ("read_array",),
    }.items():
        for name in names:
            setattr(module, name, refuse(name))
    if "yaml" in sys.modules:
        sys.modules["yaml"].load = refuse("yaml.load")
    sys.addaudithook(hook)
    global armed
    armed = True

def load_everything(folder):
    count = 0
    for path in sorted(folder.iterdir()):
        load(path); count += 1
    for path in sorted((folder / "run").rglob("*")):
        reader = {".json": safe.load_json, ".jsonl": safe.load_jsonl, ".safetensors": safe.load_safetensors}
        if path.suffix in reader:
            reader[path.suffix](path); count += 1
    from_pyribs(folder / "archive.csv", ((0., 0.), (1., 1.), (4, 4))); count += 1
    return count

def refused(path):
    try:
        load(path)
    except safe.UnreadableError:
        return True
    return False

folder, hostile = Path(sys.argv[1]), Path(sys.argv[2])
load_everything(folder)  # what is imported on first use is imported now
real_load = np.load
arm()
try:
    real_load(hostile / "objects.npz", allow_pickle=True)["cell"]
except PermissionError:
    print("armed")
print(load_everything(folder), all(refused(path) for path in sorted(hostile.iterdir())))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    valid, hostile = write_all(tmp_path_factory.mktemp("valid")), tmp_path_factory.mktemp("hostile")
    np.savez(hostile / "objects.npz", cell=np.array([print, {}], object))
    (hostile / "pickle.npz").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    (hostile / "pickle.safetensors").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    (hostile / "code.csv").write_text("cell,objective\n__import__('os'),eval('1')\n")
    (hostile / "formula.csv").write_text('cell,objective\n=cmd|"/c calc"!A1,1\n')
    return valid, hostile


def test_nothing_that_runs_code_is_called_while_files_are_loaded(folders):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, folders)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    armed, counted = done.stdout.splitlines()
    assert armed == "armed"  # the trap works
    files = len(list(folders[0].iterdir()))
    count, refused = counted.split()
    assert int(count) > files
    assert refused == "True"
