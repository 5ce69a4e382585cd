"""Every algorithm on every function of the suite `seen`, on a machine that is lent for minutes; and who wins where.

    python benchmarks/field.py --cores 0-6 --seconds 420 [--seeds 10] [--evaluations 20000] [--out FOLDER]
                               [--work FOLDER]   where entries stay, so that what is missing can be run later

Algorithms run in processes of one core each, the dearest first, and are ended when the time is over. Those that were
done with all functions make the page, `field.md` with `field.png` and `field.json`; the others are named. The page and
its picture belong into `docs` and `docs/images`.
"""

import argparse
import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from PIL import Image

from device import describe_device, source_digest, today

HERE = Path(__file__).parent
# By what they cost.
ALGORITHMS = (
    *("dns-g", "dms", "cma-me", "cma-mae", "dds", "gradient-map-elites", "dns", "cma-mega-tuned", "auto", "targeting"),
    *(
        "dms-mega",
        "dds-mega",
        "squad",
        "cma-maega",
        "omg-mega",
        "cma-mega-adam",
        "cma-mega",
        "map-elites-line",
        "map-elites",
    ),
)
PARTS = {"dns-g": 4, "gradient-map-elites": 2, "cma-mega-tuned": 2, "dms": 2, "dns": 2}  # processes; of others one
SHOWN = ("auto", "targeting", "cma-mega", "cma-maega", "dms-mega", "cma-me", "dms", "map-elites-line")  # in the figure

INTRODUCTION = """\
19 algorithms on {functions} functions of `dqd benchmark --suite seen`: n = 100, {seeds} seeds,
{evaluations:,} evaluations, about 10,000 cells, σ chosen by the library wherever it may be left out. A jacobian counts
as the evaluation of its point. CMA-MAE, CMA-MAEGA, DDS, DMS and their -MEGA forms have one emitter of 36 evaluations
here; with 15, as published, few generations would fit into the budget. CMA-MEGA, gradient MAP-Elites and DNS-G take
part as the best of six settings, chosen for every function; CMA-MEGA also with a σ that the library chooses. DNS and
DNS-G search in an archive of 1,024 elites without cells. All are judged by what they would leave in one grid. DDS and
DDS-MEGA never look at objectives: where these have no floor, nor have their scores.
"""
BY_CHOICE = """\
Figures of every seed are in `benchmarks/results/field.json`. These functions were looked at while `dqd.targeting` and
`dqd.auto` were made; what is best here may be so by choice.
"""
COLUMNS = """\
Ranks are means over functions and seeds, with 95 % intervals over functions. Then the score at the last mark in percent
of the best algorithm's, median and least over functions; and where the mean is the best of all."""


def main() -> None:
    given = _arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        work = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        race(given, work)
        page(given, work)


# Running --------------------------------------------------------------------------------------------------------------


def race(given: argparse.Namespace, work: Path) -> None:
    """As many at a time as there are cores, until all is done or the time is over."""
    every = given.only.split(",") if given.only else functions()
    waiting = [(name, every[i :: PARTS.get(name, 1)]) for name in given.algorithms for i in range(PARTS.get(name, 1))]
    waiting = [(name, part) for name, part in waiting if part]
    running, end = {}, time.monotonic() + given.seconds
    free = list(_cores(given.cores))
    (work / "entries").mkdir(parents=True, exist_ok=True)
    while (waiting or running) and time.monotonic() < end:
        while waiting and free:
            (name, part), core = waiting.pop(0), free.pop()
            running[core] = start(given, work, name, part, core), name
        for core, (child, name) in list(running.items()):
            if child.poll() is not None:
                print(f"{name}: {child.returncode}, {given.seconds - (end - time.monotonic()):.0f} s", flush=True)
                free.append(core)
                del running[core]
        time.sleep(0.5)
    for child, _ in running.values():
        child.send_signal(signal.SIGINT)
    for child, _ in running.values():
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()


def functions() -> list[str]:
    from dqd.benchmark.seen import seen

    return list(seen(100))


def start(given: argparse.Namespace, work: Path, name: str, part: list[str], core: int) -> subprocess.Popen:
    pin = ["taskset", "-c", str(core)] if shutil.which("taskset") else []
    command = [*pin, sys.executable, "-m", "dqd", "benchmark", "--suite", "seen", "--algorithms", name]
    command += ["--seeds", str(given.seeds), "--evaluations", str(given.evaluations), "--out", str(work)]
    command += ["--only", ",".join(part)]
    variables = {"PYTHONPATH": str(HERE.parent / "src"), "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1"}
    log = (work / f"{name}-{core}.log").open("w")
    return subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log)


def _cores(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


# The page -------------------------------------------------------------------------------------------------------------


def page(given: argparse.Namespace, work: Path) -> None:
    sys.path.insert(0, str(HERE.parent / "src"))
    from dqd.benchmark import standings
    from dqd.benchmark.contestants import CONTESTANTS
    from dqd.benchmark.draw import curves
    from dqd.benchmark.run import Benchmark, _read

    names = [name for name in CONTESTANTS if name in given.algorithms]
    every = given.only.split(",") if given.only else functions()
    wanted = Benchmark(["seen"], names, work, given.seeds, given.evaluations, 100, every)
    entries = {name: [_read(wanted, "seen", function, name) for function in every] for name in names}
    whole = [name for name in names if all(entries[name])]
    missing = {CONTESTANTS[name].title: sum(map(bool, entries[name])) for name in names if name not in whole}
    if not whole:
        raise SystemExit(f"no algorithm was done in time: {missing}")
    marks = [mark for mark in (5_000, given.evaluations) if mark <= given.evaluations]
    done = [entry for name in whole for entry in entries[name]]
    [suite] = standings.suites(done, marks, None)
    about = {"date": today(), "device": describe_device(), "source": source_digest(), "jax": version("jax")}
    content = about | {"seeds": given.seeds, "missing": missing, "seen": suite.figures()}
    (given.out / "field.json").write_text(json.dumps(content, indent=1) + "\n")
    (given.out / "field.md").write_text(words(suite, about, given, missing))
    shown = [entry for entry in done if entry.algorithm in SHOWN] or done
    drawn = io.BytesIO()
    curves(standings.suites(shown, marks, None)[0]).savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(48).save(given.out / "field.png", optimize=True)


def words(suite, about: dict, given: argparse.Namespace, missing: dict[str, int]) -> str:
    last = suite.marks[-1]
    best = {name: suite.share_of_best(name, last) for name in suite.algorithms}
    ranks = {mark: suite.ranks(mark) for mark in suite.marks}
    order = sorted(suite.algorithms, key=lambda name: ranks[last][name][0])
    wins = {name: sorted(f for f in suite.functions if best[name][f] == 100) for name in order}
    parts = [
        "# The field: who wins where\n",
        INTRODUCTION.format(functions=len(suite.functions), seeds=given.seeds, evaluations=given.evaluations),
        f"{about['date']}, {about['device']['cores']} cores of {about['device']['processor']}, JAX {about['jax']}: "
        f"`python benchmarks/field.py`.\n{BY_CHOICE}",
        "## Who is ahead\n",
        f"{COLUMNS}\n",
        "| algorithm | " + " | ".join(f"rank at {mark:,}" for mark in suite.marks) + " | of the best, % | best on |",
        "|---|" + "---:|" * (len(suite.marks) + 1) + "---|",
    ]
    for name in order:
        places = " | ".join("{:.1f} ({:.1f}, {:.1f})".format(*ranks[mark][name]) for mark in suite.marks)
        shares, won = list(best[name].values()), ", ".join(wins[name]) or "-"
        parts.append(f"| {suite.title(name)} | {places} | {np.median(shares):.1f}, {min(shares):.1f} | {won} |")
    if missing:
        told = ", ".join(f"{title} ({count} functions)" for title, count in missing.items())
        parts.append(f"\nNot done in time, and not here: {told}.")
    parts += [
        "\n![QD-score over evaluations, some of the algorithms](images/field.png)\n",
        f"## QD-scores at {last:,} evaluations\n",
    ]
    parts.append("Means over seeds; the best of a row is bold.\n")
    parts.append("| function | " + " | ".join(suite.title(name) for name in order) + " |")
    parts.append("|---|" + "---:|" * len(order))
    for function in suite.functions:
        means = {name: float(suite.scores(function, name, last).mean()) for name in order}
        top = max(means.values())
        cells = (f"**{mean:.1f}**" if mean == top else f"{mean:.1f}" for mean in means.values())
        parts.append(f"| {function} | " + " | ".join(cells) + " |")
    return "\n".join(parts) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default="0-1", help="such as 0-6")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--only", default="", help="some functions")
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", HERE / "results")))
    return parser.parse_args()


if __name__ == "__main__":
    main()
