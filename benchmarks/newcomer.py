"""A newcomer's walk, timed: from `pip install` in an empty environment to a map of one's own torch model.

    python benchmarks/newcomer.py [--torch torch==2.13.0] [--out benchmarks/results/newcomer.json]

Every step is a command as a newcomer types it, outside the clone. The program is the first of docs/how-to/pytorch.md,
run twice: the second time, compiled programs are there. Besides the seconds on the clock stand those of the processor.
How long packages take to arrive depends on where pip gets them from. What a person needs to read and to type is not in
these seconds.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from device import describe_device, today

ROOT = Path(__file__).parents[1]


def program() -> str:
    """What the page on PyTorch shows first."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/pytorch.md").read_text(), re.DOTALL)[0]


def seconds(command: list[str], folder: Path) -> dict[str, float]:
    """On the clock, and of the processor."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = outside | {"XDG_CACHE_HOME": str(folder / "cache"), "JAX_PLATFORMS": "cpu"}
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"clock": round(time.perf_counter() - began, 1), "processor": round(processor, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "newcomer.json")
    parser.add_argument("--torch", default="torch", help="which build of PyTorch; that for a CPU is much smaller")
    given = parser.parse_args()
    found = {"date": today(), "device": describe_device(), "steps": {}}
    with tempfile.TemporaryDirectory(prefix="dqd-newcomer-") as name:
        folder = Path(name)
        python = str(folder / "env/bin/python")
        (folder / "mine.py").write_text(program())
        steps = {
            "an environment": [sys.executable, "-m", "venv", "env"],
            "pip install . with PyTorch": [python, "-m", "pip", "install", "--quiet", str(ROOT), given.torch],
            "the first map of a torch model": [python, "mine.py"],
            "the same program again": [python, "mine.py"],
        }
        for step, command in steps.items():
            found["steps"][step] = seconds(command, folder)
            print(step, found["steps"][step], flush=True)
            given.out.write_text(json.dumps(found, indent=1) + "\n")
        assert (folder / "pytorch.png").stat().st_size > 1000


if __name__ == "__main__":
    main()
