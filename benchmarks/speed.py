"""Milliseconds per iteration, side by side with peers, in turns on one machine.

    python benchmarks/speed.py [--quick] [--cases cma-mega/lp-sphere ...] [--out benchmarks/results/speed-cpu.json]

Each case starts its contestants as separate processes. Only one is busy at a time: first each does the first iterations
of its search, then come rounds in which every contestant takes a turn of about a second, in an order that rotates.
CMA-ME costs far more in iterations that decompose its matrix than in others, so there a median would hide them, and who
is ahead would be measured in another phase: all advance by the same number of iterations and totals are compared.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from contestants import Contestant, ContestantError, start
from device import describe_device, source_digest, today

REFERENCE = "dqd"
IN_STEP = ("cma-me",)  # algorithms whose cost depends on the phase of the search
MEGA = ("dqd", "floor", "pyribs", "pyribs-float32", "qdax", "qdax-patched")
CASES = {
    "cma-mega/lp-sphere": MEGA,
    "cma-mega/lp-rastrigin": MEGA,
    "cma-mega/arm": MEGA,
    "cma-me/lp-sphere": ("dqd", "pyribs", "pyribs-float32"),
    "cma-me/arm": ("dqd", "pyribs", "pyribs-float32"),
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long to measure."""

    iterations: int  # the first part of each search, and the least turn of the reference
    rounds: int
    turn_seconds: float
    n: int
    seed: int


def main() -> None:
    given = _arguments()
    plan = Plan(given.iterations, given.rounds, given.turn_seconds, given.n, given.seed)
    source = source_digest()
    results = {"date": today(), "device": describe_device(), "source": source, "plan": dataclasses.asdict(plan)}
    results["cases"] = {}
    for case in given.cases:
        results["cases"][case] = measure(case, CASES[case], plan)
        if source_digest() != source:
            raise SystemExit(f"src/dqd changed while {case} was measured: its figures are not kept, run it again")
        print(table(case, results["cases"][case], plan), flush=True)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(results, indent=1)  # after every case: an interrupted run keeps its data
        given.out.write_text(text + "\n")


def measure(case: str, names: tuple[str, ...], plan: Plan) -> dict:
    """Raw turns and summary of every contestant of one case; {"failed": why} for one that broke."""
    algorithm, domain = case.split("/")
    failures: dict[str, str] = {}
    running: dict[str, Contestant] = {}
    try:
        for name in names:
            with _failure_noted(name, failures):
                print(f"{case}: starting {name}", file=sys.stderr, flush=True)
                running[name] = start(name, domain, algorithm, plan.n, plan.seed)
        first, turn = _first_iterations(running, failures, plan)
        if algorithm in IN_STEP:
            grain = max(contestant.ready["granularity"] for contestant in running.values())
            turn = dict.fromkeys(turn, _round_up(plan.iterations / 5, grain))
        _rounds(running, failures, turn, plan.rounds)
    finally:
        for contestant in running.values():
            contestant.stop()
    summary = {name: {"failed": why} for name, why in failures.items()}
    for name, contestant in running.items():
        if name not in failures:
            summary[name] = {"versions": contestant.ready["versions"], "first": first[name], "turns": contestant.turns}
    return _with_statistics({name: summary[name] for name in names}, in_step=algorithm in IN_STEP)


def _first_iterations(running: dict, failures: dict, plan: Plan) -> tuple[dict, dict]:
    """The start of each search, which also shows how many iterations fill a turn."""
    first, turn = {}, {}
    for name, contestant in running.items():
        with _failure_noted(name, failures):
            grain = contestant.ready["granularity"]
            first[name] = contestant.run(_round_up(plan.iterations, grain))
            wanted = plan.turn_seconds * first[name]["iterations"] / first[name]["seconds"]
            least = plan.iterations if name == REFERENCE else 1
            turn[name] = _round_up(max(wanted, least), grain)
    return first, turn


def _rounds(running: dict, failures: dict, turn: dict, rounds: int) -> None:
    names = list(running)
    for number in range(rounds):
        shift = number % len(names) if names else 0
        for name in names[shift:] + names[:shift]:
            if name not in failures:
                with _failure_noted(name, failures):
                    running[name].turns.append(running[name].run(turn[name]))


def _with_statistics(summary: dict, in_step: bool) -> dict:
    """Add the cost per iteration and its ratio to the reference: medians over rounds, or of totals if in step."""
    cost = {name: [_cost(turn) for turn in entry["turns"]] for name, entry in summary.items() if "failed" not in entry}
    typical = {name: _cost(_total(summary[name])) if in_step else median(costs) for name, costs in cost.items()}
    for name, costs in cost.items():
        summary[name]["milliseconds_per_iteration"] = typical[name]
        if REFERENCE in cost:
            ratios = [own / reference for own, reference in zip(costs, cost[REFERENCE], strict=True)]
            summary[name]["ratio_to_dqd"] = typical[name] / typical[REFERENCE] if in_step else median(ratios)
            summary[name]["ratio_range"] = [min(ratios), max(ratios)]
            summary[name]["first_ratio"] = _cost(summary[name]["first"]) / _cost(summary[REFERENCE]["first"])
    return summary


def _total(entry: dict) -> dict:
    """Everything a contestant did, as if it had been one turn."""
    parts = [entry["first"], *entry["turns"]]
    return {key: sum(part[key] for part in parts) for key in ("seconds", "iterations")}


def _cost(turn: dict) -> float:
    """Milliseconds per iteration."""
    return 1000 * turn["seconds"] / turn["iterations"]


def table(case: str, summary: dict, plan: Plan) -> str:
    """The case as Markdown; a ratio of 20 means twenty times as long per iteration as dqd."""
    lines = [
        f"\n### {case}, n = {plan.n}\n",
        "| contestant | ms per iteration | x dqd (least..most) | "
        f"first {plan.iterations}: ms (x dqd) | QD-score | coverage % |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [_row(name, entry) for name, entry in summary.items()])


def _row(name: str, entry: dict) -> str:
    if "failed" in entry:
        return f"| {name} | failed: {entry['failed'].replace('|', '/')} | | | | |"
    first = entry["first"]
    ratio, early = "-", f"{_cost(first):.4f}"
    if "ratio_to_dqd" in entry:
        least, most = entry["ratio_range"]
        ratio = f"{entry['ratio_to_dqd']:.2f} ({least:.2f}..{most:.2f})"
        early += f" ({entry['first_ratio']:.2f})"
    score, coverage = ("-" if value is None else f"{value:.2f}" for value in (first["qd_score"], first["coverage"]))
    return f"| {name} | {entry['milliseconds_per_iteration']:.4f} | {ratio} | {early} | {score} | {coverage} |"


@contextmanager
def _failure_noted(name: str, failures: dict) -> Iterator[None]:
    """Write a contestant's failure down instead of ending the run."""
    try:
        yield
    except ContestantError as error:
        failures[name] = str(error)


def _round_up(iterations: float, grain: int) -> int:
    return grain * max(1, -(-int(iterations) // grain))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--iterations", type=int, default=1000, help="length of the first part of each search")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn-seconds", type=float, default=1.0)
    parser.add_argument("--n", type=int, default=1000, help="solution dimension")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="200 first iterations, 3 rounds of a quarter of a second")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "speed-cpu.json")
    given = parser.parse_args()
    if given.quick:
        given.iterations, given.rounds, given.turn_seconds = 200, 3, 0.25
    return given


if __name__ == "__main__":
    main()
