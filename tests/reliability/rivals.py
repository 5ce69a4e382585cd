"""A process that runs a suite beside others, in the same folder.

`rivals.py search` runs trials of milliseconds, `rivals.py write` writes without a search. A line on stdin, `FOLDER
TRIAL`, runs that trial of every entry, or all trials if it is `all`; then the process says `done`.
"""

import dataclasses
import itertools
import random
import sys
import time
from pathlib import Path

import numpy as np

from dqd.paper import launch, suites, trials
from dqd.paper.suites import Suite
from dqd.storage import record

IDS = ("arm.map-elites", "lp-sphere.cma-mega")
SUITE = Suite(
    "table1",
    "tiny",
    tuple(
        dataclasses.replace(entry, n=8, resolution=10, trials=4, iterations=20)
        for entry in suites.suite("table1").entries
        if entry.id in IDS
    ),
)


def in_this_process(folder, tasks, jobs, progress):
    for entry, trial in tasks:
        trials.run_trial_once(folder, entry, trial)
    return "a test"


class Nothing:
    """A result that took milliseconds to find."""

    def save(self, folder, **_):
        time.sleep(random.uniform(0, 0.002))
        files = {record.METRICS: b"", record.ARCHIVE: {"solutions": np.zeros((1000, 8))}}
        record.write_run(folder, 20, {}, {}, files)


def main(how: str) -> None:
    launch.run_on_cpu = in_this_process
    launch.time.perf_counter = itertools.cycle([0.0, 1.0]).__next__
    if how == "write":
        trials.run_trial = lambda folder, entry, trial: trials._write(folder, entry, trial, Nothing())
    print("ready", flush=True)
    for line in sys.stdin:
        folder, trial = line.split()
        index = None if trial == "all" else int(trial)
        launch.reproduce(SUITE, Path(folder), device="cpu", trial_index=index, say=lambda line: None)
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
