"""How soon does the command answer, and what does `import dqd` add to `import jax`?

    python benchmarks/startup.py [--repeats 15]

Every figure is the median of fresh processes, the kinds taken in turn so that a busy moment hits all of them. The
limits hold for a machine that is idle. Writes results/startup.json.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from device import describe_device, today

RESULT = Path(__file__).parent / "results" / "startup.json"
EVERY_NAME = "import jax, dqd; [getattr(dqd, name) for name in dqd.__all__]"
COMMANDS = {
    "python": ["-c", "pass"],
    "dqd --help": ["-m", "dqd", "--help"],
    "import jax": ["-c", "import jax"],
    "import jax, dqd": ["-c", "import jax, dqd"],
    "import jax, every name of dqd": ["-c", EVERY_NAME],
    "dqd.load": ["-c", "import dqd; dqd.load"],
}
LIMITS = {"dqd --help": 0.6, "import dqd beyond jax": 0.3}


def seconds(arguments: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    for arguments in COMMANDS.values():  # files are in memory from now on
        seconds(arguments)
    taken = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    median = {name: statistics.median(times) for name, times in taken.items()}
    median["import dqd beyond jax"] = median["import jax, dqd"] - median["import jax"]
    median["every name of dqd beyond jax"] = median["import jax, every name of dqd"] - median["import jax"]
    found = {
        "median_seconds": {name: round(value, 4) for name, value in median.items()},
        "best_seconds": {name: round(min(times), 4) for name, times in taken.items()},
        "limits": LIMITS,
        "within_limits": {name: median[name] <= limit for name, limit in LIMITS.items()},
        "repeats": repeats,
        "device": describe_device(),
        "date": today(),
    }
    RESULT.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    sys.exit(0 if all(found["within_limits"].values()) else 1)


if __name__ == "__main__":
    main()
