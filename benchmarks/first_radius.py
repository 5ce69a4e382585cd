"""Does targeting depend on how far its first shots may go? The same functions with several first radii.

    python benchmarks/first_radius.py [--only sphere,kinks] [--seeds 4] [--most 20000] [--out FILE]

Radii are in cells; 4 is what `dqd.targeting()` has. All run side by side, in one program for every size of function.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from device import describe_device, source_digest, today
from dqd.benchmark.contestants import CONTESTANTS, Contestant
from dqd.benchmark.run import Benchmark, run
from dqd.compiler import cache
from dqd.emitters import targeting
from dqd.types import replace

RADII = (0.5, 1.0, 4.0, 16.0, 64.0)
ONLY = "boat,deep-network,generator,kinks,narrow,network,noisy,picture,sphere,truss,units,weighted-sphere"
MARKS = (5_000, 20_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=ONLY)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--most", type=int, default=MARKS[-1])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "first-radius.json")
    given = parser.parse_args()
    cache.enable()
    names = [f"{radius:g} cells" for radius in RADII]
    for name, radius in zip(names, RADII, strict=True):
        CONTESTANTS[name] = Contestant(name, lambda radius=radius: [replace(targeting(), reach=radius)])
    with tempfile.TemporaryDirectory() as folder:
        wanted = Benchmark(["seen"], names, Path(folder), given.seeds, given.most, only=given.only.split(","))
        entries = run(wanted, MARKS, lambda line: print(line, file=sys.stderr))
    scores = {f"{e.function}, {e.title}": [float(np.mean(e.at(mark))) for mark in MARKS] for e in entries}
    about = {"date": today(), "source": source_digest(), **describe_device(), "seeds": given.seeds, "marks": MARKS}
    given.out.write_text(json.dumps(about | {"qd_score": scores}, indent=1) + "\n")
    for function in wanted.only:
        rows = [" ".join(f"{scores[f'{function}, {name}'][i]:7.2f}" for name in names) for i in range(len(MARKS))]
        print(f"{function:18s} {'  |'.join(rows)}")


if __name__ == "__main__":
    main()
