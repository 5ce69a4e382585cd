"""Feeds mutations of valid files to every loader, in a process of its own with little memory and a clock.

    python fuzz.py SEEDS COUNT SEED        SEEDS: a folder of valid files and of one valid run, `run`

Prints one JSON object: how many inputs were read, how many refused, and the first that did neither.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

import dqd
from dqd.storage import record

SECONDS, BYTES = 5, 256 * 2**20
NUMBERS = [b"0", b"-1", b"1", b"7", b"1e999", b"NaN", b"4294967296", b"9223372036854775807", b"9" * 30, b"[", b'"']
INTEGERS = [0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**40, 2**63 - 1, 2**64 - 1]


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """A file with one to three things wrong with it."""
    for _ in range(chance.choice([1, 1, 2, 3])):
        data = chance.choice(MUTATIONS)(bytearray(data), others, chance)
    return bytes(data)


def flip(data, others, chance):
    for _ in range(chance.choice([1, 1, 4, 16]) if data else 0):
        data[_place(data, chance)] ^= 1 << chance.randrange(8)
    return data


def truncate(data, others, chance):
    return data[: _place(data, chance)]


def grow(data, others, chance):
    return data + bytes(chance.randrange(64))


def cut(data, others, chance):
    at = _place(data, chance)
    del data[at : at + chance.choice([1, 4, 8, 40])]
    return data


def repeat(data, others, chance):
    at = _place(data, chance)
    return data[:at] + data[at : at + 40] * chance.choice([1, 2, 30]) + data[at:]


def splice(data, others, chance):
    other = chance.choice(others)
    return data[: _place(data, chance)] + other[_place(other, chance) :]


def integer(data, others, chance):
    size, at = chance.choice([2, 4, 8]), _place(data, chance)
    data[at : at + size] = (chance.choice(INTEGERS) & (256**size - 1)).to_bytes(size, "little")
    return data


def header(data, others, chance):
    data[:8] = chance.choice([chance.randbytes(8), chance.choice(INTEGERS).to_bytes(8, "little"), b"PK\3\4\0\0\0\0"])
    return data


def number(data, others, chance):
    """Another number in the text of a header, a table or JSON."""
    found = list(re.finditer(rb"\d+", data[:4000]))
    if found:
        chosen = chance.choice(found)
        data[chosen.start() : chosen.end()] = chance.choice(NUMBERS)
    return data


def noise(data, others, chance):
    at = _place(data, chance)
    data[at : at + 16] = chance.randbytes(16)
    return data


MUTATIONS = [flip, flip, truncate, grow, cut, repeat, splice, integer, header, number, number, noise]


def _place(data, chance):
    """Anywhere, more often near the ends, where headers and footers are."""
    size = max(len(data), 1)
    return chance.choice(
        [chance.randrange(size), chance.randrange(min(size, 200)), size - 1 - chance.randrange(min(size, 400))]
    )


def reseal(run: Path) -> None:
    """Make the manifests of a damaged run fit again, as somebody with bad intentions would."""
    for path in run.rglob("manifest.json"):
        with contextlib.suppress(ValueError, TypeError, AttributeError, KeyError, RecursionError):
            content = json.loads(path.read_bytes())
            content.pop("sha256")
            for name, entry in content["files"].items():
                with contextlib.suppress(OSError):  # another name, after the damage
                    data = (path.parent / name).read_bytes()
                    entry |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            path.write_bytes(record._seal(content))


def outcome(load) -> str:
    """`read` or `refused`, or the story of what else happened."""
    signal.alarm(SECONDS)
    try:
        load()
    except (ValueError, OSError) as error:
        raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
        ours = f"{os.sep}dqd{os.sep}" in raised_in
        return "refused" if ours else traceback.format_exc()
    except BaseException:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return "read"


def late(*_):
    raise BaseException(f"more than {SECONDS} seconds")


def targets(folder: Path) -> list[tuple[Path, list[Path], object]]:
    """(file to mutate, files of its kind, loader)."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    run = folder / "run"
    inside = sorted(path for path in run.rglob("*") if path.is_file() and path.suffix != ".png")
    found = [(path, [path], lambda path=path: dqd.load(path)) for path in files]
    found += [(path, inside, lambda: dqd.load(run)) for path in inside]
    found += [
        (path, [path], lambda path=path: dqd.from_pyribs(path, ((0.0, 0.0), (1.0, 1.0), (4, 4))))
        for path in files
        if path.suffix == ".csv"
    ]
    return found


def main(seeds: str, count: int, seed: int) -> dict:
    here = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    try:
        shutil.copytree(seeds, here / "x")
        return run(here / "x", count, random.Random(seed))
    finally:
        shutil.rmtree(here)


def run(here: Path, count: int, chance: random.Random) -> dict:
    things = targets(here)
    valid = {path: path.read_bytes() for path, *_ in things}
    manifests = [path for path in valid if path.name == "manifest.json"]
    for _, _, load in things:  # warm, and valid files are read
        load()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    signal.signal(signal.SIGALRM, late)
    np.seterr(all="ignore")
    counts, slowest = {"read": 0, "refused": 0}, 0.0
    kinds: dict[str, int] = {}
    for i in range(count):
        path, kin, load = things[i % len(things)]
        data = mutated(valid[path], [valid[other] for other in kin], chance)
        print(i, file=sys.stderr, flush=True) if i % 1000 == 0 else None
        path.write_bytes(data)
        if len(kin) > 1 and chance.random() < 0.7:  # a file of the run
            reseal(here / "run")
        began = time.perf_counter()
        what = outcome(load)
        slowest = max(slowest, time.perf_counter() - began)
        for changed in (path, *manifests):
            changed.write_bytes(valid[changed])
        if what not in counts:
            return {**counts, "file": path.name, "input": data[:2000].hex(), "story": what}
        counts[what] += 1
        kinds[f"{path.name} {what}"] = kinds.get(f"{path.name} {what}", 0) + 1
    return {**counts, "slowest": slowest, "kinds": kinds}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
