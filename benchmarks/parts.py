"""Which parts of targeting earn their place: the same functions without each of them, beside all of them.

    python benchmarks/parts.py [--seeds 10] [--most 80000] [--workers 1] [--out benchmarks/results/parts]

Every variant is a process of its own (benchmarks/targeting.py), for constants are read when a program is made. What a
part is worth on a function is the score without it in percent of the score with it; Wilcoxon's signed-rank test over
the seeds says whether that is more than chance. Writes OUT.json and OUT.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import wilcoxon

from device import describe_device, source_digest, today
from dqd.benchmark.entry import Entry, read

HERE = Path(__file__).parent
FUNCTIONS = (
    "sphere,rastrigin,arm,crumpled-arm,network,ill-conditioned,collinear,partly-flat,noisy,narrow,weighted-sphere,"
    "weighted-plateau,rotated,limited-joints,truss,noisy-network,kinks,units,outline,uneven-sphere"
)
PARTS = {
    "all parts": None,
    "steps that cost least, and Newton's climb": "curvature.CURVED=2",
    "going on from a branch that did well": "emitter.LAST=0",
    "kinks crossed backwards": "footing.WRONG=1e9",
    "the chase": "chase.LONGEST=0",
    "spare branches that pursue": "targets.SPARE=0",
    "steps that few coordinates make": "sideways.THINNED=999",
    "wild jumps": "sideways.WILD=0",
    "shots at open cells climb on their way": "sideways.ON_THE_WAY=1e-9",
    "good elites first, to explore": "starts.GOOD=0",
    "the last two": "sideways.ON_THE_WAY=1e-9 starts.GOOD=0",
    "the elite most ahead of its neighbours, to polish": "starts.ANY=1",
    "saving elites that spoil the score": "starts.SAVE=0",
}
MARKS = (5_000, 20_000, 80_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=MARKS[-1])
    parser.add_argument("--only", default=FUNCTIONS)
    parser.add_argument("--workers", type=int, default=1, help="variants side by side")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "parts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(given.workers) as pool:
        found = dict(zip(PARTS, pool.map(lambda part: entries(Path(place), part, given), PARTS), strict=True))
    marks = [mark for mark in MARKS if mark <= given.most]
    about = {"date": today(), "source": source_digest(), **describe_device(), "seeds": given.seeds, "marks": marks}
    scores = {part: {e.function: [e.at(mark).tolist() for mark in marks] for e in each} for part, each in found.items()}
    given.out.with_suffix(".json").write_text(json.dumps(about | {"without": PARTS, "qd_score": scores}) + "\n")
    text = table(found, marks)
    given.out.with_suffix(".md").write_text(text)
    print(text)


def entries(place: Path, part: str, given: argparse.Namespace) -> list[Entry]:
    folder = place / str(list(PARTS).index(part))
    command = [sys.executable, str(HERE / "targeting.py"), "--alone", "--only", given.only, "--entries", str(folder)]
    command += ["--seeds", str(given.seeds), "--most", str(given.most)]
    command += ["--without", *PARTS[part].split()] if PARTS[part] else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"DQD_NO_CACHE": "1"})
    print("measured:", part, file=sys.stderr, flush=True)
    paths = sorted((folder / "entries").glob("*.json"))
    return [entry for path in paths if (entry := read(path, json.loads(path.read_text())))]


def table(found: dict[str, list[Entry]], marks: list[int]) -> str:
    """Median percent and, beyond chance, on how many functions a part is worth something, and does harm."""
    heads = [f"{mark:,}: median %; gains, harms" for mark in marks]
    lines = [f"| without | {' | '.join(heads)} | needed most by |", "|---|" + "---|" * (len(marks) + 1)]
    whole = {entry.function: entry for entry in found["all parts"]}
    for part in list(found)[1:]:
        cells, every = [], {}
        for mark in marks:
            pairs = {e.function: (whole[e.function].at(mark), e.at(mark)) for e in found[part]}
            share = {name: 100 * less.mean() / more.mean() for name, (more, less) in pairs.items()}
            signs = [sign(*pair) for pair in pairs.values()]
            cells.append(f"{np.median(list(share.values())):.1f}; {signs.count(1)}, {signs.count(-1)}")
            every |= {f"{name} ({value:.0f} % at {mark:,})": value for name, value in share.items()}
        needed = ", ".join(sorted(every, key=every.__getitem__)[:3])
        lines.append(f"| {part} | {' | '.join(cells)} | {needed} |")
    return "\n".join(lines) + "\n"


def sign(with_it: np.ndarray, without: np.ndarray) -> int:
    """1 where the part gains beyond chance (p < 0.01), -1 where it does harm."""
    if np.array_equal(with_it, without) or wilcoxon(with_it, without).pvalue >= 0.01:
        return 0
    return 1 if with_it.mean() > without.mean() else -1


if __name__ == "__main__":
    main()
