"""`dqd doctor`: does all of it work here? What is installed, what a tiny search takes, what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from dqd import __version__
from dqd.cli.exits import FAILURE

NEEDED = ("jax", "numpy", "optax", "safetensors", "scipy", "typer", "tqdm", "matplotlib")
EXTRAS = {  # by the name that pip is told, the packages that come with it and what they are for
    "view": (("fastapi", "uvicorn"), "dqd view, the explorer"),
    "pandas": (("pandas",), "to_pandas"),
    "parquet": (("pyarrow",), "export to .parquet"),
    "report": (("statsmodels",), "dqd compare, dqd reproduce"),
    "torch": (("torch",), "dqd.torch_evaluator"),
    "cluster": (("distributed",), "workers of a Dask cluster"),
    "tensorboard": (("tensorboardX",), "dqd.loggers.TensorBoard"),
    "wandb": (("wandb",), "dqd.loggers.WandB"),
    "mlflow": (("mlflow-skinny",), "dqd.loggers.MLflow"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")


@dataclass(frozen=True)
class Finding:
    """One line: whether it is there, what it is, and what there is to say. Without what is vital nothing works."""

    fine: bool
    name: str
    words: str
    vital: bool = False

    def __str__(self) -> str:
        mark = "ok" if self.fine else "FAILS" if self.vital else "-"
        return f"  {mark:5}  {self.name:15}  {self.words}"


def doctor() -> None:
    """Look whether everything works here, and say what is missing.

    Runs a tiny search, twice, to see whether compiled programs are kept. Exit code 0 if all that a search needs works.
    """
    typer.echo(f"dqd {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    failed = False
    for title, examine in {"A search": _core, "Extras": _extras, "The explorer": _explorer}.items():
        typer.echo(f"\n{title}")
        for finding in examine():
            typer.echo(str(finding))
            failed = failed or (finding.vital and not finding.fine)
    typer.echo("\nsomething that every search needs does not work" if failed else "\nall that a search needs works")
    if failed:
        raise typer.Exit(FAILURE)


def _core() -> Iterator[Finding]:
    yield _installed("packages", NEEDED, "pip install dqd", vital=True)
    yield _tried("devices", _devices)
    yield _tried("current folder", _writable)
    yield _tried("a tiny search", _tiny_search)
    yield _cache()


def _extras() -> Iterator[Finding]:
    for extra, (packages, use) in EXTRAS.items():
        yield _installed(extra, packages, f"pip install 'dqd[{extra}]'    for {use}")


def _explorer() -> Iterator[Finding]:
    there = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    try:
        words = there or type(webbrowser.get()).__name__
    except webbrowser.Error:
        words = "none found here; open the address that `dqd view` prints in one elsewhere"
        yield Finding(False, "browser", words)
        return
    yield Finding(True, "browser", words)


def _installed(name: str, packages: Sequence[str], hint: str, vital: bool = False) -> Finding:
    found, missing = [], []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        return Finding(False, name, f"{hint}    ({', '.join(missing)} missing)" if vital else hint, vital)
    return Finding(True, name, ", ".join(found), vital)


def _tried(name: str, attempt: Callable[[], str]) -> Finding:
    """Something vital; what it raises is its finding."""
    try:
        return Finding(True, name, attempt(), vital=True)
    except Exception as error:
        words = " ".join(str(error).split()) or "no reason given"
        return Finding(False, name, f"{type(error).__name__}: {words}", vital=True)


def _devices() -> str:
    import jax

    return ", ".join(f"{device.platform} {device.id} ({device.device_kind})" for device in jax.devices())


def _writable() -> str:
    with tempfile.TemporaryFile(dir="."):
        return f"can be written, {shutil.disk_usage('.').free / 2**30:.1f} GiB are free"


def _tiny_search() -> str:
    import dqd

    domain = dqd.LinearProjection("sphere", 10)
    emitter, grid = dqd.cma_mega(sigma=1.0, batch_size=9), domain.grid(10)
    found = dqd.illuminate(domain, emitter, grid, x0=[0.0] * 10, iterations=100, progress=False)
    return f"compiled in {found.compile_seconds:.1f} s, ran in {found.seconds:.2f} s"


def _cache() -> Finding:
    """Whether the programs of a search that was just compiled are found again."""
    import jax

    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    if not folder:
        why = "off: DQD_NO_CACHE is set" if os.environ.get("DQD_NO_CACHE") else "the cache folder cannot be written"
        return Finding(False, "compile cache", f"{why}; every start compiles anew")
    if not any(Path(folder).iterdir()):
        return Finding(False, "compile cache", f"nothing was kept in {folder}; every start compiles anew")
    jax.clear_caches()
    again = _tried("compile cache", _tiny_search)
    return Finding(again.fine, again.name, f"works; the same search again {again.words}; kept in {folder}")
