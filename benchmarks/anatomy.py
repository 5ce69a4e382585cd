"""What one iteration is made of: its kernels, the time of each, copies, calls of libraries; on a CPU and on a GPU.

    python benchmarks/anatomy.py [--domain sphere] [--seeds 1] [--variants] [--quick]

`make profile` runs it. CMA-MEGA, n = 1000, 100 x 100 cells, the loop behind `illuminate`. `--variants` times the same
loop under other flags of XLA, each in a process of its own, in turns. Writes anatomy-*.json to the folder $OUT, else to
results/; into $OUT also what XLA compiled, as text.
"""

from __future__ import annotations

import argparse
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import types
from pathlib import Path
from typing import Any

from device import describe_device, source_digest, today

HERE = Path(__file__).parent
SIGMA = {"sphere": 10.0, "rastrigin": 10.0, "arm": 0.05}
LENGTH = 250  # iterations of a launch
GRAPHS = "--xla_gpu_enable_command_buffer="
BESIDE = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"}
EXTRA = "--xla_backend_extra_options=xla_cpu_disable_loop_unrolling=true"
VARIANTS = {
    "gpu": {
        "as it is": {},
        "again": {},
        "side by side, loops in graphs": {"DQD_SIDE_BY_SIDE": "1"},
        "side by side": {"ANATOMY_OPTIONS": json.dumps(BESIDE)},
        "no graphs": {"XLA_FLAGS": GRAPHS},
        "two iterations unrolled": {"ANATOMY_UNROLL": "2"},
        "state not packed": {"ANATOMY_PACKED": "0"},
        "reads not held": {"ANATOMY_ONCE": "0"},
        "parts kept apart": {"ANATOMY_APART": "1"},
        "length unknown": {"ANATOMY_COUNTED": "0"},
        "four sweeps": {"ANATOMY_SWEEPS": "4"},
    },
    "cpu": {
        "as it is": {},
        "again": {},
        "one thread": {"NPROC": "1"},
        "parts not kept apart": {"ANATOMY_APART": "0"},
        "plain fusions": {"XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false"},
        "plain fusions, no unrolling": {"XLA_FLAGS": f"--xla_cpu_use_fusion_emitters=false {EXTRA}"},
        "no unrolling": {"XLA_FLAGS": EXTRA},
    },
}


class Loop:
    """The compiled loop, and what it takes to run it."""

    def __init__(self, domain: str, seeds: int, n: int = 1000) -> None:
        import jax
        import jax.numpy as jnp

        import dqd
        from dqd.archives.archive import Archive
        from dqd.compiler.flags import side_by_side
        from dqd.runners import compiled
        from dqd.runners.compiled import begin, begin_seeds, iterate
        from dqd.search.search import Search

        _adjust()
        self.domain = dqd.Arm(n) if domain == "arm" else dqd.LinearProjection(domain, n)
        self.search = Search(dqd.cma_mega(SIGMA[domain], rank_one="dqd2021"))
        archive, x0 = Archive.empty(self.domain.grid(), n), jnp.zeros(n)
        start, seed = (begin, jnp.asarray(0)) if seeds == 1 else (begin_seeds, jnp.arange(seeds))
        self.state = jax.jit(start)(self.search, archive, x0, seed, self.domain)
        counted = compiled.counted(LENGTH) if os.environ.get("ANATOMY_COUNTED") != "0" else 0
        asked = os.environ.get("ANATOMY_OPTIONS")
        options = side_by_side() if asked is None else json.loads(asked)
        names = ("batched", "counted")
        program = jax.jit(iterate, static_argnames=names, donate_argnames="state", compiler_options=options)
        begun = time.perf_counter()
        traced = program.trace(self.search, self.state, self.domain, LENGTH, batched=seeds > 1, counted=counted)
        was_traced = time.perf_counter()
        lowered = traced.lower()
        was_lowered = time.perf_counter()
        self.compiled = lowered.compile()
        self.seconds = {
            "tracing": was_traced - begun,
            "lowering": was_lowered - was_traced,
            "compiling": time.perf_counter() - was_lowered,
        }

    def run(self, launches: int) -> float:
        """Microseconds per iteration."""
        import jax

        begin = time.perf_counter()
        for _ in range(launches):
            self.state, rows, _ = self.compiled(self.search, self.state, self.domain, LENGTH)
            jax.device_get(rows)
        jax.block_until_ready(self.state)
        return 1e6 * (time.perf_counter() - begin) / launches / LENGTH


def platform() -> str:
    import jax

    return "cpu" if jax.default_backend() == "cpu" else "gpu"


def _adjust() -> None:
    """What a variant changes in dqd itself, before anything is traced."""
    import jax

    from dqd.archives import archive
    from dqd.compiler import unfused
    from dqd.runners import compiled
    from dqd.search import search
    from dqd.strategies import eigen

    rounds = int(os.environ.get("ANATOMY_UNROLL", "1"))
    if rounds > 1:
        plain = jax.lax.fori_loop

        def unrolled(lower: Any, upper: Any, body: Any, start: Any) -> Any:
            return plain(lower, upper, body, start, unroll=rounds if isinstance(upper, int) else None)

        jax.lax.fori_loop = unrolled
    if apart := os.environ.get("ANATOMY_APART"):
        chosen = _branched if apart == "1" else (lambda always, function, *operands: function(*operands))
        unfused.apart = archive.apart = search.apart = chosen
    eigen.SWEEPS = int(os.environ.get("ANATOMY_SWEEPS", eigen.SWEEPS))
    if os.environ.get("ANATOMY_PACKED") == "0":
        compiled.Packed = types.SimpleNamespace(of=lambda tree: tree)  # type: ignore[misc,assignment]
    if os.environ.get("ANATOMY_ONCE") == "0":
        unfused.once = archive.once = lambda values: values


def _branched(always: Any, function: Any, *operands: Any) -> Any:
    import jax
    import jax.numpy as jnp

    nothing = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), jax.eval_shape(function, *operands))
    return jax.lax.cond(always, function, lambda *_: nothing, *operands)


# One program, looked at ---------------------------------------------------------------------------------------------


def census(text: str) -> dict[str, Any]:
    """What the compiled loop consists of."""
    from dqd.compiler.program import Program

    program = Program.read(text)
    body = program.loop()
    kernels = program.kernels(body)
    return {
        "kernels": len(kernels),
        "kinds": dict(collections.Counter(kernel.kind for kernel in kernels)),
        "library_calls": [kernel.library for kernel in kernels if kernel.library],
        "copies_from_4_kB": [[kernel.name, kernel.shape] for kernel in program.copies(4096, body)],
        "kernels_outside_the_loop": len(program.kernels()) - len(kernels),
        "lines": text.count("\n"),
        "in_order": [f"{kernel.kind} {kernel.name} {kernel.shape}"[:160] for kernel in kernels],
    }


def profiled(loop: Loop, launches: int) -> dict[str, Any]:
    """Every kernel's median time, how often it runs in an iteration, and how much of it that makes."""
    import jax

    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            loop.run(launches)
        (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        planes = jax.profiler.ProfileData.from_file(path).planes
        events = collections.defaultdict(list)
        for plane in planes:
            on_device = "/device:GPU" in plane.name
            for line in plane.lines:
                if (on_device and "Stream" in line.name) or (not on_device and "XLAEigen" in line.name):
                    for event in line.events:
                        if not event.name.startswith(("end:", "ThunkExecutor", "while", "cond", "call")):
                            events[event.name].append(event.duration_ns / 1000)
    iterations = launches * LENGTH
    rows = []
    for name, times in events.items():
        median = sorted(times)[len(times) // 2]
        each = len(times) / iterations
        rows.append({"name": name, "us": round(median, 3), "per_iteration": round(each, 3), "us_in_all": median * each})
    rows.sort(key=lambda row: -row["us_in_all"])
    return {
        "kernels_per_iteration": sum(row["per_iteration"] for row in rows),
        "us_in_kernels": sum(row["us_in_all"] for row in rows),
        "kernels": rows,
    }


# The same program under other flags ---------------------------------------------------------------------------------


def serve(given: argparse.Namespace) -> None:
    """What a variant does: it answers every line with microseconds per iteration."""
    loop = Loop(given.domain, given.seeds)
    loop.run(2)
    print(json.dumps({"seconds": loop.seconds, **census(loop.compiled.as_text())}), flush=True)
    for line in sys.stdin:
        print(loop.run(int(line)), flush=True)


def compare(given: argparse.Namespace) -> dict[str, Any]:
    """All variants are started at once, then they take turns."""
    variants = VARIANTS[platform()]
    names = list(variants)[: 2 if given.quick else None]
    processes = {name: _start(given, variants[name]) for name in names}
    found: dict[str, dict[str, Any]] = {}
    for name, process in processes.items():
        about = process.stdout.readline()
        if about:
            about = json.loads(about)
            found[name] = {key: about[key] for key in ("kernels", "kinds", "seconds", "library_calls")} | {"us": []}
        else:
            found[name] = {"failed": _said(process)}
    for _ in range(2 if given.quick else given.rounds):
        for name, process in processes.items():
            if "us" not in found[name]:
                continue
            try:
                process.stdin.write(f"{1 if given.quick else 8}\n")
                process.stdin.flush()
                found[name]["us"].append(float(process.stdout.readline()))
            except (OSError, ValueError) as error:
                found[name] = {"failed": str(error)}
    for process in processes.values():
        process.kill()
        process.wait()
    for about in found.values():
        about["least_us"] = min(about["us"]) if about.get("us") else None
    return found


def _start(given: argparse.Namespace, changes: dict[str, str]) -> subprocess.Popen[str]:
    source = str(HERE.parent / "src")
    environment = os.environ | {"PYTHONPATH": source} | changes
    command = [sys.executable, __file__, "--serve", "--domain", given.domain, "--seeds", str(given.seeds)]
    pipe, errors = subprocess.PIPE, tempfile.TemporaryFile("w+")  # noqa: SIM115 - the process writes to it
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment)
    process.errors = errors  # type: ignore[attr-defined]
    return process


def _said(process: subprocess.Popen[str]) -> str:
    """The end of what a process that failed wrote to stderr."""
    process.wait()
    errors = process.errors  # type: ignore[attr-defined]
    errors.seek(0)
    return errors.read()[-1500:]


# All of it ------------------------------------------------------------------------------------------------------------


def look(given: argparse.Namespace) -> None:
    import jax

    where = platform()
    folder = Path(os.environ.get("OUT") or HERE / "results")
    folder.mkdir(parents=True, exist_ok=True)
    name = f"anatomy-{where}" if (given.domain, given.seeds) == ("sphere", 1) else f"anatomy-{where}-{given.domain}"
    name += "" if given.seeds == 1 else f"-{given.seeds}"
    about = {"device": jax.devices()[0].device_kind, "jax": jax.__version__, "host": describe_device()}
    results: dict[str, Any] = {"date": today(), **about, "source": source_digest(), "domain": given.domain}

    def keep(part: str, found: Any) -> Any:
        results[part] = found
        (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
        return found

    def attempt(part: str, function: Any, *arguments: Any) -> Any:
        try:
            return keep(part, function(*arguments))
        except Exception:  # one part that fails does not cost the others
            print(part, traceback.format_exc(), flush=True)
            return keep(part, {"failed": traceback.format_exc()[-2000:]})

    loop = Loop(given.domain, given.seeds)
    keep("seconds_to_compile", loop.seconds)
    text = loop.compiled.as_text()
    if "OUT" in os.environ:
        (folder / f"{name}.hlo").write_text(text)
    attempt("census", census, text)
    loop.run(2)
    launches, rounds = (2, 2) if given.quick else (40, 5)
    attempt("us_per_iteration", lambda: min(loop.run(launches) for _ in range(rounds)))
    attempt("profile", profiled, loop, 1 if given.quick else 4)
    print(report(results, given.top), flush=True)
    if given.variants:
        del loop
        for variant, found in attempt("variants", compare, given).items():
            print(variant, json.dumps({key: found.get(key) for key in ("least_us", "kernels", "seconds", "failed")}))


def report(results: dict[str, Any], top: int) -> str:
    parts, times = results["census"], results["profile"]
    lines = [f"{results['device']}, JAX {results['jax']}: CMA-MEGA on {results['domain']}"]
    lines += [f"{results['us_per_iteration']} us per iteration"]
    lines += [", ".join(f"{part} {seconds:.2f} s" for part, seconds in results["seconds_to_compile"].items())]
    if "kernels" in parts:
        lines += [f"{parts['kernels']} kernels in the loop: {parts['kinds']}"]
        lines += [f"calls of libraries: {parts['library_calls']}, copies from 4 kB: {parts['copies_from_4_kB']}"]
    if "kernels" in times:
        lines += [f"{times['kernels_per_iteration']:.1f} kernels seen, {times['us_in_kernels']:.1f} us within them"]
        lines += [
            f"{row['us_in_all']:8.2f} us  {row['per_iteration']:6.2f} times {row['us']:8.2f} us  {row['name'][:90]}"
            for row in times["kernels"][:top]
        ]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domain", choices=SIGMA, default="sphere")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--variants", action="store_true", help="also under other flags of XLA")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each variant")
    parser.add_argument("--top", type=int, default=70, help="kernels that are printed")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # variants share the device
    given = _arguments()
    (serve if given.serve else look)(given)
