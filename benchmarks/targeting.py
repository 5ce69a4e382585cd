"""Targeting beside CMA-MEGA on the functions of the suite `seen`: for those who change it.

    python benchmarks/targeting.py [--seeds 4] [--only "arm,noisy"] [--most 80000] [--alone]
    python benchmarks/targeting.py --alone --only arm --without chase.LONGEST=0     # another value of a constant

`dqd benchmark` makes a page of all that; this prints lines; `--entries FOLDER` keeps what was found. `--without`
names a constant of a module of dqd.emitters.targeting. benchmarks/parts.py asks so which parts earn their place.
"""

import argparse
import contextlib
import importlib
import sys
import tempfile
from pathlib import Path

import numpy as np

from dqd.benchmark.run import Benchmark, run
from dqd.cli.benchmark import MARKS
from dqd.compiler import cache


def words(found: np.ndarray) -> str:
    return f"{found.mean():6.2f} ± {found.std():4.2f}"


def change(constant: str) -> None:
    """`module.NAME=value` in dqd.emitters.targeting."""
    place, value = constant.split("=")
    module, name = place.split(".")
    home = importlib.import_module(f"dqd.emitters.targeting.{module}")
    setattr(home, name, type(getattr(home, name))(float(value)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", default="", help="names of functions, with commas between")
    parser.add_argument("--most", type=int, default=MARKS[-1], help="evaluations")
    parser.add_argument("--alone", action="store_true", help="without CMA-MEGA")
    parser.add_argument("--without", nargs="*", default=[], metavar="MODULE.NAME=VALUE")
    parser.add_argument("--entries", type=Path, help="a folder to keep what was found")
    given = parser.parse_args()
    for constant in given.without:
        change(constant)
    cache.enable()
    only = [name for name in given.only.split(",") if name]
    algorithms = ["targeting"] if given.alone else ["cma-mega-tuned", "targeting"]
    marks = [mark for mark in MARKS if mark <= given.most]
    with contextlib.nullcontext(given.entries) if given.entries else tempfile.TemporaryDirectory() as folder:
        wanted = Benchmark(["seen"], algorithms, Path(folder), given.seeds, marks[-1], only=only)
        for entry in run(wanted, marks, lambda line: print(line, file=sys.stderr)):
            print(f"{entry.function:16s} {entry.title:30s} {'  '.join(words(entry.at(mark)) for mark in marks)}")


if __name__ == "__main__":
    main()
