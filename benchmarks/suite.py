"""A suite of `dqd reproduce` on a machine that is lent for minutes: run, reported, and packed into four small files.

    python benchmarks/suite.py annealing high-dimensional --seconds 230 330 [--trials 20] [--out FOLDER]

Each suite is interrupted after its seconds; entries that were done by then are reported, the others named as missing.
`SUITE.json` has the figures of every entry, with the device and the versions; `SUITE-report.tar.gz` the report with its
figures; `SUITE-trials.tar.gz` what every trial recorded, without its archive.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from device import describe_device, source_digest, today

HERE = Path(__file__).parent
HEAVY = ".safetensors"


def main() -> None:
    given = _arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, seconds in zip(given.suites, given.seconds, strict=True):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / name
            wall = run(name, folder, seconds, given)
            report(name, folder, wall, given.out)


def run(name: str, folder: Path, seconds: float, given: argparse.Namespace) -> float:
    """Seconds that it took, start and compilation included."""
    command = [sys.executable, "-m", "dqd", "reproduce", name, "--device", given.device, "--out", str(folder)]
    for option in ("trials", "iterations"):
        value = getattr(given, option)
        command += [f"--{option}", str(value)] if value else []
    begin = time.perf_counter()
    child = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(HERE.parent / "src")})
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
    return time.perf_counter() - begin


def report(name: str, folder: Path, wall: float, out: Path) -> None:
    sys.path.insert(0, str(HERE.parent / "src"))
    from dqd.paper.report.collect import read_suite
    from dqd.paper.report.write import write_report

    about = {"date": today(), "device": describe_device(), "source": source_digest(), "jax": version("jax")}
    suite = read_suite(folder)
    about |= {"accelerator": suite.device, "wall_seconds": wall, "execution_seconds": suite.execution_seconds}
    about["entries"] = {entry.id: described(entry) for entry in suite.entries}
    (out / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")
    pack(out / f"{name}-trials.tar.gz", folder, name, lambda path: HEAVY in path or "/report" in path)
    if not (folder / "report" / "report.md").exists():
        write_report(folder)
    pack(out / f"{name}-report.tar.gz", folder / "report", f"{name}/report", lambda path: False)


def described(entry) -> dict:
    from dqd.storage import record

    found = {"trials": len(entry.trials), "asked for": entry.expected, "published": entry.published}
    for metric in ("qd_score", "coverage", "best"):
        found[metric] = [float(value) for value in entry.final[metric]]
    if entry.trials:
        summary = record.newest(entry.trial_folder(entry.trials[0]), lambda checkpoint: checkpoint.summary)
        found |= {key: value for key, value in summary.items() if "seconds" in key or "restart" in key}
    return found


def pack(path: Path, folder: Path, name: str, left_out) -> None:
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, name, filter=lambda info: None if left_out(info.name) else info)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", required=True, help="for each suite")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", HERE / "results")))
    return parser.parse_args()


if __name__ == "__main__":
    main()
