"""What an iteration of CMA-MEGA costs, in time and memory, as one thing grows; and the same of pyribs and QDax.

    python benchmarks/curves.py [--who dqd pyribs qdax] [--qdax PYTHON] [--workers 1] [--seconds 1200] --out FILE
    python benchmarks/curves.py --draw benchmarks/results/curves-*.json      # docs/images/scaling.png, and a table

LP sphere; 36 solutions per iteration, 10^4 cells, n = 1000 (10 where cells grow, 100 where seeds do). Every point is a
process of its own. They compile side by side, as many as there are workers, and are timed one after the other. Memory
is the most that the process held beyond its imports, or on a GPU what the device held. PYTHON is that of an environment
with benchmarks/peers/requirements-qdax.txt.
"""

import argparse
import contextlib
import fcntl
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from device import describe_device, source_digest, today

HERE = Path(__file__).parent
USUAL = {"n": 1_000, "cells": 10**4, "batch": 36, "emitters": 1, "seeds": 1}
AXES = {
    "n": [10**2, 10**3, 10**4, 10**5, 10**6],
    "cells": [10**2, 10**3, 10**4, 10**5, 10**6, 10**7],
    "batch": [36, 256, 1_024, 4_096, 16_384, 65_536],
    "emitters": [1, 16, 128, 1_024],
    "seeds": [1, 16, 128, 1_024],
}
CHANGED = {"n": {"cells": 1_024}, "cells": {"n": 10}, "seeds": {"n": 100}}  # so that the largest fits into a device
WORDS = {"n": "numbers in a solution", "batch": "solutions per iteration"}
NAMES = {"qdax": "QDax"}
ABLE = {"dqd": list(AXES), "pyribs": ["n", "cells", "batch", "emitters"], "qdax": ["n", "cells", "batch"]}
MOST = {"pyribs": {}, "qdax": {"cells": 10**6}}  # beyond: minutes, or more memory than there is
PICTURE = HERE.parent / "docs" / "images" / "scaling.png"


def main() -> None:
    given = _arguments()
    if given.point:
        print(json.dumps(measure(given.who[0], json.loads(given.point), given.lock)))
    elif given.draw:
        drawn([json.loads(path.read_text()) for path in given.draw])
    else:
        measure_all(given)


# Measuring ------------------------------------------------------------------------------------------------------------


def measure(who: str, settings: dict, lock: Path | None) -> dict:
    """In this process, which does nothing else."""
    if who == "dqd":
        import jax

        from limits import measure as iteration
    else:
        import settings as shared

        shared.BATCH, shared.SIDE = settings["batch"], round(settings["cells"] ** 0.5)  # before workers read them
        from curves_peers import iteration
    before = _memory()
    found = iteration(**settings, alone=_alone(lock))
    if who == "dqd" and jax.default_backend() != "cpu":
        device = jax.devices()[0]
        return found | {"memory": device.memory_stats()["peak_bytes_in_use"], "on": device.device_kind}
    return found | {"memory": _memory() - before, "on": "CPU"}


@contextlib.contextmanager
def _alone(lock: Path | None) -> Iterator[None]:
    with open(lock or os.devnull) as file:
        if lock:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure_all(given: argparse.Namespace) -> None:
    points = [(who, axis, value) for axis, values in AXES.items() for value in values for who in given.who]
    points = [
        (who, axis, value) for who, axis, value in points if axis in ABLE[who] and value <= _most(who, axis, given)
    ]
    results = {"date": today(), "device": describe_device(), "source": source_digest(), "rows": []}
    end = time.monotonic() + given.seconds
    with tempfile.NamedTemporaryFile() as lock, ThreadPoolExecutor(given.workers) as threads:
        running = [threads.submit(_in_a_process, given, Path(lock.name), *point, end) for point in points]
        for (who, axis, value), future in zip(points, running, strict=True):
            row = {"who": who, "axis": axis, "value": value, **future.result()}
            print(json.dumps(row), flush=True)
            results["rows"].append(row)
            given.out.write_text(json.dumps(results, indent=1) + "\n")


def _most(who: str, axis: str, given: argparse.Namespace) -> float:
    return min(MOST.get(who, {}).get(axis, float("inf")), given.most.get(axis, float("inf")))


def _in_a_process(given: argparse.Namespace, lock: Path, who: str, axis: str, value: int, end: float) -> dict:
    settings = USUAL | CHANGED.get(axis, {}) | {axis: value}
    python = given.qdax if who == "qdax" else sys.executable
    command = [str(python), __file__, "--who", who, "--point", json.dumps(settings), "--lock", str(lock)]
    own = {"PYTHONPATH": str(HERE.parent / "src"), "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "DQD_NO_CACHE": "1"}
    left = min(given.longest, end - time.monotonic())
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(left, 0.1), env=os.environ | own)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {max(left, 0):.0f} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["ended without a word"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


# Showing --------------------------------------------------------------------------------------------------------------


def drawn(results: list[dict]) -> None:
    """Time above, memory below, one column for each thing that grows; and a table of both."""
    import matplotlib

    from dqd.figures.draw import DASHES, LINES, STYLE, Picture, save

    lines = _lines(results)
    with matplotlib.rc_context(STYLE):
        figure = Picture(figsize=(11, 4.4), layout="constrained")
        panels = figure.subplots(2, len(AXES), sharex="col", sharey="row")
        for panel, axis in zip(panels[1], AXES, strict=True):
            panel.set_xlabel(WORDS.get(axis, axis))
        for row, (key, unit, label) in enumerate((("us", 1e-3, "ms per iteration"), ("memory", 1e-6, "memory, MB"))):
            panels[row, 0].set_ylabel(label)
            for panel, axis in zip(panels[row], AXES, strict=True):
                panel.set(xscale="log", yscale="log")
                panel.grid(alpha=0.25, linewidth=0.5)
                for number, (name, rows) in enumerate(lines.items()):
                    there = [(one["value"], one[key] * unit) for one in rows if one["axis"] == axis and key in one]
                    xs, ys = [x for x, _ in there], [y for _, y in there]
                    style = {"color": LINES[number], "linestyle": DASHES[number % len(DASHES)], "label": name}
                    panel.plot(xs, ys, marker="o", markersize=2.5, linewidth=1.2, **style)
        names = panels[0, 0].get_legend_handles_labels()
        figure.legend(*names, loc="outside upper center", ncols=len(lines), frameon=False)
        save(figure, PICTURE)
    print(table(lines))


def _lines(results: list[dict]) -> dict[str, list[dict]]:
    """Rows by who measured them and on what."""
    lines: dict[str, list[dict]] = {}
    for result in results:
        for row in result["rows"]:
            lines.setdefault(f"{NAMES.get(row['who'], row['who'])}, {row.get('on', 'CPU')}", []).append(row)
    return lines


def table(lines: dict[str, list[dict]]) -> str:
    """Milliseconds per iteration and megabytes, as Markdown."""
    text = [f"| | | {' | '.join(lines)} |", f"|---|---:|{'---:|' * len(lines)}"]
    for axis, values in AXES.items():
        for value in values:
            cells = [
                _cell(next((r for r in rows if (r["axis"], r["value"]) == (axis, value)), {}))
                for rows in lines.values()
            ]
            if any(cell != "–" for cell in cells):
                text.append(f"| {WORDS.get(axis, axis)} | {value:,} | {' | '.join(cells)} |")
    return "\n".join(text)


def _cell(row: dict) -> str:
    return f"{row['us'] / 1e3:.3g} ms, {row['memory'] / 1e6:,.0f} MB" if "us" in row else "–"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--who", nargs="+", choices=ABLE, default=["dqd"])
    parser.add_argument("--qdax", type=Path, help="the Python of its environment")
    parser.add_argument(
        "--most", type=json.loads, default={}, help='the largest of an axis, such as {"cells": 1000000}'
    )
    parser.add_argument("--workers", type=int, default=1, help="processes that compile side by side")
    parser.add_argument("--seconds", type=float, default=1200, help="for all; what is not begun by then is left out")
    parser.add_argument("--longest", type=float, default=120, help="seconds for one point")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "curves-cpu.json")
    parser.add_argument("--draw", type=Path, nargs="+", help="results to be shown, instead of measuring")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    parser.add_argument("--lock", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
