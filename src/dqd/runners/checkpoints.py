"""A search in motion, kept on disk and taken up again.

A checkpoint holds every leaf of the search state under its path in the pytree. Cells are stored once: the rows of the
elites lie in archive.safetensors, and an empty archive with these rows is the archive as it was, bit for bit.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.console import saying
from dqd.inputs.fields import FIELD
from dqd.inputs.halves import HALVES
from dqd.runners.progress import CompileClock
from dqd.runners.snapshot import ROWS, SETTINGS, Snapshot, Snapshots, thinned
from dqd.safe import UnreadableError
from dqd.search.history import COLUMNS, History
from dqd.search.search import Search, SearchState
from dqd.storage import record
from dqd.storage.folder import Folder
from dqd.storage.record import with_versions
from dqd.storage.settings import SettingsChangedError, differences, with_about
from dqd.storage.writer import MOST_VIEWS, Writer
from dqd.types import PyTree

CELLS = ("solutions", "objective", "measures", "found")  # arrays of the archive whose rows are the elites
NAMED = 10  # settings that changed; of more, only their number is said
SHARE = 0.01  # of the time may go into checkpoints; when they take long, they become rarer


@contextlib.contextmanager
def recording(
    folder: Folder | None,
    settings: Callable[[], dict[str, Any]],
    clock: CompileClock,
    search: Search,
    grain: int = 1,
    told: Callable[[Path], None] = lambda checkpoint: None,
) -> Iterator[Checkpoints | NoCheckpoints]:
    """The record of a run, whose folder is held for as long as this lasts."""
    if folder is None:
        yield NoCheckpoints()
        return
    config = with_versions(with_about(folder.about, settings()))
    with Writer(folder.path, config["iterations"]) as writer:
        yield Checkpoints(writer, config, folder.checkpoint_seconds, clock, search, grain, told)


class NoCheckpoints:
    """A run that is not recorded."""

    def restore(self, empty: Archive, x0: Array) -> None:
        return None

    def passed(self, done: int) -> None:
        pass

    def before_view(self, done: int) -> int:
        return sys.maxsize

    def due(self, done: int) -> bool:
        return False

    def keep(self, state: SearchState, history: History, stopped: str | None = None, last: bool = False) -> None:
        pass


class Checkpoints:
    """Knows when a checkpoint or a view is due, and writes it."""

    def __init__(
        self,
        writer: Writer,
        config: Mapping[str, Any],
        seconds: float,
        clock: CompileClock,
        search: Search,
        grain: int = 1,
        told: Callable[[Path], None] = lambda checkpoint: None,
    ) -> None:
        self.writer, self.config, self.seconds, self.clock, self.search = writer, config, seconds, clock, search
        self.grain = grain
        self.kept, self.viewed = -1, 0  # iterations of the last checkpoint and of the last view
        self.timings: list[dict[str, Any]] = []
        self.next = time.monotonic() + seconds
        self.told = told  # of every checkpoint that was written

    # Going on ---------------------------------------------------------------------------------------------------------

    def restore(self, empty: Archive, x0: Array) -> tuple[SearchState, History] | None:
        """State and history of the newest checkpoint, if there is one. Its settings must agree with ours."""
        self._check_settings()
        begun = (self.writer.folder / record.CONFIG).exists()
        self.writer.configure(self.config)
        checkpoint = self.writer.latest
        if checkpoint is None:
            if begun:
                saying.warn(
                    f"{self.writer.folder}: a run began there but left no checkpoint; it begins anew", stacklevel=3
                )
                self.writer.forget_views_after(0)
            return None
        try:
            state, history = self._stored(checkpoint, empty, x0)
        except UnreadableError:
            raise
        except (ValueError, TypeError, LookupError) as error:
            raise UnreadableError(
                checkpoint.folder, str(error), "begin elsewhere, or restore it from a copy"
            ) from error
        self.timings = checkpoint.lines(record.TIMINGS)
        if self.timings:
            self.clock.earlier = (self.timings[-1]["seconds"], self.timings[-1]["compile_seconds"])
        self.kept = self.viewed = checkpoint.step
        self.writer.forget_views_after(checkpoint.step)
        return state, history

    def _stored(self, checkpoint: record.Checkpoint, empty: Archive, x0: Array) -> tuple[SearchState, History]:
        arrays = checkpoint.arrays(record.STATE)
        history = History.restored({name: arrays.pop(f"history/{name}") for name in ("iteration", *COLUMNS)})
        shapes = _shapes(self.search, empty, x0, self.config.get("seeds"))
        state = from_arrays(shapes, arrays | self._cells(checkpoint, empty))
        if history.done != checkpoint.step or np.any(np.asarray(state.iteration) != checkpoint.step):
            raise ValueError(f"the checkpoint does not fit: its numbers are not those of iteration {checkpoint.step}")
        return state, history

    def _cells(self, checkpoint: record.Checkpoint, empty: Archive) -> dict[str, np.ndarray]:
        seeds = self.config.get("seeds")
        if seeds is None:
            return _filled(empty, checkpoint.arrays())
        each = [_filled(empty, checkpoint.of(f"seed-{seed}").arrays()) for seed in seeds]
        return {name: np.stack([cells[name] for cells in each]) for name in each[0]}

    def _check_settings(self) -> None:
        folder, checkpoint = self.writer.folder, self.writer.latest
        if checkpoint is None and not (folder / record.CONFIG).exists():
            return
        there = checkpoint.manifest["config"] if checkpoint else record.read_config(folder)
        then, now = ({name: config.get(name) for name in SETTINGS} for config in (there, self.config))
        changed = list(differences(then, now))
        if changed:
            more = [f"and {len(changed) - NAMED} more"] if len(changed) > NAMED else []
            raise SettingsChangedError(
                f"{folder} holds a run of other settings ({'; '.join(changed[:NAMED] + more)}); "
                "give these again to go on with it, or choose another folder"
            )
        if checkpoint is None:
            return
        if record.STATE not in checkpoint.manifest["files"]:
            raise FileExistsError(
                f"{folder} already exists: a saved result, without the state to go on from; choose another name"
            )
        if self.config["iterations"] is not None and checkpoint.step > self.config["iterations"]:
            raise SettingsChangedError(
                f"iterations: {folder} has done {checkpoint.step:,} already; expected at least that, "
                f"got {self.config['iterations']:,}"
            )

    # Keeping ----------------------------------------------------------------------------------------------------------

    def passed(self, done: int) -> None:
        """A chunk has ended. The seconds are those of all sessions of the run."""
        seconds, compile_seconds = self.clock.read()
        self.timings.append({"iteration": done, "seconds": seconds, "compile_seconds": compile_seconds})
        if len(self.timings) == 10 * ROWS:  # a run of days has many chunks
            self.timings = thinned(self.timings)

    def before_view(self, done: int) -> int:
        """Iterations that are left before the next view."""
        stride = self._stride(done)
        return stride - done % stride

    def _stride(self, done: int) -> int:
        """Iterations between two views. Launches end there, so where it costs few views, it is of the fastest length.

        Of a run without an end, whenever it has become twice as long, it is twice as many.
        """
        if self.config["iterations"] is None:
            return 2 ** math.ceil(math.log2(max(1.0, done / MOST_VIEWS)))
        stride = max(1, math.ceil(self.config["iterations"] / MOST_VIEWS))
        return stride + -stride % self.grain if 2 * stride > self.grain else stride

    def due(self, done: int) -> bool:
        """Whether something is to be kept of the state after `done` iterations."""
        return self._view_due(done) or time.monotonic() >= self.next

    def _view_due(self, done: int) -> bool:
        stride = self._stride(done)
        return done // stride > self.viewed // stride

    def keep(self, state: SearchState, history: History, stopped: str | None = None, last: bool = False) -> None:
        """Write what is due; in the end, everything."""
        done = int(np.asarray(state.iteration).max())
        self._count(done, state)
        if self._view_due(done):
            self.writer.view(done, self._snapshot(state, History(), None).view())
            self.viewed = done
        if done != self.kept and (last or time.monotonic() >= self.next):
            self._commit(done, self._snapshot(state, history, stopped))

    def _count(self, done: int, state: SearchState) -> None:
        """What was spent until now, beside the seconds; of several seeds a list."""
        if self.timings and self.timings[-1]["iteration"] == done:
            evaluations, count = state.tally.each(), self.search.emitter.restarts
            reasons = (count if evaluations.ndim == 0 else jax.vmap(count))(state.emitter)
            restarts = sum(map(np.asarray, reasons.values()), np.zeros_like(evaluations))
            self.timings[-1] |= {"evaluations": evaluations.tolist(), "restarts": restarts.tolist()}

    def _snapshot(self, state: SearchState, history: History, stopped: str | None) -> Snapshot | Snapshots:
        times = (stopped, *self.clock.read())
        if (seeds := self.config.get("seeds")) is not None:
            return Snapshots(self.search, state, history.arrays(), seeds, *times)
        return Snapshot(self.search, state, history.arrays(), self.config["seed"], *times)

    def _commit(self, done: int, found: Snapshot | Snapshots) -> None:
        started = time.monotonic()
        cells = _cells_of(found.state.archive)
        state = {name: array for name, array in to_arrays(found.state).items() if name not in cells}
        state |= {f"history/{name}": values for name, values in found.history.items()}
        timings = record.to_lines(thinned(self.timings))
        files = {**found.files(), record.TIMINGS: timings, record.STATE: state}
        place = self.writer.commit(done, self.config, found.summary(), files)
        self.kept, now = done, time.monotonic()
        self.next = now + max(self.seconds, (now - started) / SHARE if self.seconds else 0)
        self.told(place)


def _shapes(search: Search, empty: Archive, x0: Array, seeds: list[int] | None) -> PyTree:
    """The structure of the state, with a leading axis for seeds."""

    def state(archive: Archive, x0: Array, seed: Array) -> SearchState:
        return search.init(archive, x0, jax.random.key(seed))

    if seeds is None:
        return jax.eval_shape(state, empty, x0, jnp.asarray(0))
    return jax.eval_shape(jax.vmap(state, in_axes=(None, None, 0)), empty, x0, jnp.asarray(seeds))


# A pytree as arrays ---------------------------------------------------------------------------------------------------


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Every leaf under its path; keys of random numbers as their data."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    found = {_name(path): np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf) for path, leaf in leaves}
    return {name: array.astype(np.float32) if _is_half(array) else array for name, array in found.items()}


def from_arrays(shapes: Any, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """The pytree of that structure; every array must fit, and none may be left."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(shapes)
    names = [_name(path) for path, _ in leaves]
    missing, extra = sorted(set(names) - set(arrays)), sorted(set(arrays) - set(names))
    if missing or extra:
        raise ValueError(
            "the checkpoint is of another kind of search, or of another version: "
            f"missing {', '.join(missing) or 'nothing'}; unknown {', '.join(extra) or 'nothing'}"
        )
    return jax.tree.unflatten(
        treedef, [_leaf(name, arrays[name], like) for name, (_, like) in zip(names, leaves, strict=True)]
    )


def _leaf(name: str, array: np.ndarray, like: jax.ShapeDtypeStruct) -> Array:
    array = array.astype(like.dtype) if _is_half(like) and array.dtype == np.float32 else array
    value = jax.random.wrap_key_data(jnp.array(array)) if _is_key(like) else jnp.array(array)  # a copy: to be donated
    if like.weak_type and value.dtype == like.dtype:  # a Python number once; it must not widen what it meets
        value = jnp.stack([jnp.asarray(number) for number in array.reshape(-1).tolist()]).reshape(array.shape)
    if (value.shape, value.dtype) != (like.shape, like.dtype):
        raise ValueError(
            f"the checkpoint does not fit: {name}: expected {like.dtype} {like.shape}, got {value.dtype} {value.shape}"
        )
    return value


def _filled(empty: Archive, elites: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The cells of an archive, from those of an empty one and the elites."""
    cell, filled = elites["cell"], {}
    own = {FIELD + name: values for name, values in (empty.fields or {}).items()}
    for leaf, name in _cells_of(empty).items():
        cells = np.array(own[name] if name in own else getattr(empty.reported, name))
        rows = elites[name]
        dtype = empty.dtype if name == "solutions" else cells.dtype
        fits = rows.shape == (len(cell), *cells.shape[1:]) and rows.dtype == dtype
        if not fits or np.any((cell < 0) | (cell >= len(cells))):
            raise ValueError(f"the checkpoint does not fit: {name}: expected rows of {dtype} {cells.shape}")
        cells[cell] = rows
        filled[leaf] = cells
    return filled


def _cells_of(archive: Archive) -> dict[str, str]:
    """Leaves of the state whose rows are the elites that are reported, and what archive.safetensors calls them."""
    place = "archive" if archive.results is None else "archive/results"
    names = {name: name for name in CELLS} | {f"fields/{name}": FIELD + name for name in archive.fields or {}}
    return {f"{place}/{there}": name for there, name in names.items()}


def _is_half(leaf: Any) -> bool:
    """Files hold numbers of 32 bits instead: NumPy alone does not know all of 16."""
    return str(leaf.dtype) in HALVES


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) if hasattr(leaf, "dtype") else False


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
