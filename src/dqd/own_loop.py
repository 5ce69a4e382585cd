"""What every loop of one's own is, whoever evaluates: a search that begins, is kept on disk, and gives a result."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.beginning import Beginning
from dqd.archives.competition import CellsLike, check_cells
from dqd.archives.threshold import Threshold
from dqd.compiler import cache
from dqd.domains.survey import Ask
from dqd.emitters.emitter import Emitter, check_emitter, threshold_of
from dqd.emitters.presets import usual
from dqd.inputs.arguments import check_initial_sigma, check_seed
from dqd.inputs.arrays import expected_shapes, extras
from dqd.inputs.bounds import numpy_sides
from dqd.inputs.fields import check_fields, flat, nested
from dqd.inputs.halves import check_half
from dqd.inputs.layout import Layout
from dqd.interop.torch_arrays import copied, spoken, to_torch
from dqd.result import Result
from dqd.runners.checkpoints import NoCheckpoints, recording
from dqd.runners.progress import CompileClock
from dqd.runners.snapshot import settings
from dqd.search.health import warn
from dqd.search.history import History
from dqd.search.motion import Motion
from dqd.search.scales import Scales, say_chosen
from dqd.search.search import Search, SearchState
from dqd.search.walk import init
from dqd.storage.folder import Folder
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Evaluation, PyTree

Moving = TypeVar("Moving", bound=Motion)
SETTLED = 256  # iterations after which their metrics are worked out: many at once


class OwnLoop(Generic[Moving]):
    """A search whose evaluations happen outside. Solutions are handed out as new arrays (batch, n).

    They are of NumPy, or of torch and on the device of x0 where x0 is.
    """

    def __init__(
        self,
        emitter: Emitter | None,
        tessellation: CellsLike,
        *,
        x0: Any,
        seed: int = 0,
        bounds: Any = None,
        initial_sigma: float | None = None,
        archive: Any = None,
        threshold: Threshold | None = None,
        result_archive: Tessellation | None = None,
        qd_score_offset: float = 0.0,
        fields: Mapping[str, tuple[int, ...]] | None = None,
        solutions: str | None = None,
        out: str | os.PathLike[str] | Folder | None = None,
    ) -> None:
        """The arguments are those of `dqd.illuminate`; None is its usual emitter."""
        cache.enable()
        check_cells(tessellation)
        emitter = usual(tessellation, threshold) if emitter is None else emitter
        check_emitter("emitter", emitter)
        sigma = check_initial_sigma(initial_sigma)
        check_seed(seed)
        self._layout, flat = Layout.of(x0)
        self._device = spoken(jax.tree.leaves(x0))
        kept = check_half(solutions)
        search = Search(emitter, self._layout.box(bounds, flat, kept), sigma)
        self._seed = int(seed)
        self._size, self._dtype, self._k = flat.size, np.dtype(flat.dtype), tessellation.num_measures
        empty = Archive.empty(
            tessellation,
            flat.size,
            threshold=threshold_of(emitter, threshold),
            qd_score_offset=qd_score_offset,
            dtype=flat.dtype,
            fields=check_fields(fields or {}),
            results=result_archive,
            kept=kept,
        )
        self._x0, self._fields = flat, empty.field_shapes
        self._beginning = Beginning.of(archive, empty, numpy_sides(search.bounds))
        self._clock, self._closed = CompileClock(), False
        self._told: dict[str, Evaluation] = {}
        self._scales, self._out = Scales.of(search, initial_sigma), Folder.of(out)
        self._choosing = self._scales.choosing(flat, empty)
        known = self._scales.recorded(self._out) if self._scales.names else {}
        self._look: Ask | None = next(self._choosing) if known is None else None
        # While sigmas are looked for, others stand in their place, and nothing is kept.
        self._begin(empty, dict.fromkeys(self._scales.names, 1.0) if known is None else known)

    def _begin(self, empty: Archive, chosen: dict[str, float]) -> None:
        """Before iteration 1, or where an earlier session ended."""
        self._search, self._chosen = self._scales.chosen(chosen), {} if self._look else chosen

        def asked() -> dict[str, Any]:
            found: dict[str, Any] = {"seed": self._seed, "iterations": None} | ({"chosen": chosen} if chosen else {})
            return settings(self._search, empty, self._x0, None, self._beginning) | found

        with contextlib.ExitStack() as stack:
            folder = None if self._look else self._out
            self._checkpoints = stack.enter_context(recording(folder, asked, self._clock, self._search))
            restored = self._checkpoints.restore(empty, self._x0)
            self._folder = stack.pop_all()
        if restored is None:
            begun = empty if self._beginning is None or self._look else self._beginning.into(empty)
            restored = init(self._search, begun, self._x0, jax.random.key(self._seed)), History()
        state, self._history = restored
        self._initial_left = self._search.emitter.initial_population > 0 and not state.tally.candidates
        self._walk = self._moving(state)

    def _moving(self, state: SearchState) -> Moving:
        """The search in motion, from this state on."""
        raise NotImplementedError

    def _within(self) -> bool:
        """Whether something was told of a round that is not complete."""
        raise NotImplementedError

    # Before the search: which sigma? ----------------------------------------------------------------------------------

    def _looked(self, evaluation: Evaluation) -> None:
        """Go on with what was found; in the end, begin with what was chosen."""
        try:
            self._look = self._choosing.send(evaluation)
        except StopIteration as end:
            self._look = None
            say_chosen(end.value)
            self._begin(self._walk.release().archive, end.value)

    # On disk ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """With `out`: write what was found and let go of the folder. A round that was begun is asked for again."""
        closed, self._closed = self._closed, True
        with self._folder:
            if not self._within() and not closed:
                self._keep(last=True)

    def _check_open(self, call: str) -> None:
        if self._closed:
            raise RuntimeError(f"{call}: this search was closed; make it again, with the same `out`, to go on")

    def _passed(self) -> None:
        """A round is complete."""
        if self.iteration % SETTLED == 0:
            self._settled()
        self._checkpoints.passed(self.iteration)
        if self._checkpoints.due(self.iteration):
            self._keep()

    def _keep(self, last: bool = False) -> None:
        if not isinstance(self._checkpoints, NoCheckpoints):
            self._checkpoints.keep(self._walk.state, self._settled(), last=last)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What was found ---------------------------------------------------------------------------------------------------

    @property
    def archive(self) -> Archive:
        """What was found so far: in the result archive, if there is one."""
        return self._walk.state.reported

    @property
    def iteration(self) -> int:
        """Iterations completed; the initial population is not one."""
        return self._walk.iteration

    @property
    def qd_score(self) -> float:
        return float(self._walk.reported.metrics.qd_score)

    @property
    def coverage(self) -> float:
        return float(self._walk.reported.metrics.coverage)

    @property
    def best(self) -> float:
        return float(self._walk.reported.metrics.best)

    def __repr__(self) -> str:
        figures = f"qd_score={self.qd_score:.4g}, coverage={self.coverage:.2f} %, best={self.best:.4g}"
        return f"{type(self).__name__}(iteration={self.iteration:,}, {figures})"

    def result(self) -> Result:
        """What was found so far, as `illuminate` returns it, with the same warnings."""
        history, state = self._settled().arrays(), self._walk.state
        warn(state, flat=True)
        found = (self._seed, None, *self._clock.read(), self._layout)
        return Result(self._search, state, history, *found, chosen=self._chosen)

    def unflatten(self, solution: Any) -> PyTree:
        """One solution (n,), shaped like x0."""
        return self._layout.unflatten(solution)

    def _settled(self) -> History:
        """The history up to now."""
        if self.iteration > self._history.done:
            archive = self._walk.reported
            self._history.append(self._walk.rows().columns(archive.num_cells, archive.offset))
        return self._history

    # The border -------------------------------------------------------------------------------------------------------

    def _handed(self, array: Any) -> Any:
        """A copy of an array of ours, of the kind that x0 is."""
        return np.array(array) if self._device is None else to_torch(array, self._device, copy=True)

    def _validate(self, call: str, batch: int, given: Mapping[str, Any]) -> Evaluation:
        """Copies of the caller's arrays, checked."""
        # A look before the search is told of no fields.
        fields = self._fields if self._look is None else {}
        expected, told = expected_shapes(batch, self._k, self._size, "jacobian" in given, fields), flat(given)
        like = self._walk.nothing.objective
        copies: Any = {name: copied(call, name, told.get(name), shape, like) for name, shape in expected.items()}
        copies |= extras(call, given, batch)
        self._told[call] = Evaluation(**nested(copies))  # kept until the next one
        return self._told[call]


def named(objective: Any, **others: Any) -> dict[str, Any]:
    """What was told, by name; all of it may have come as one `Evaluation`."""
    if not hasattr(objective, "objective"):
        return {"objective": objective, **others}
    return {name: getattr(objective, name, None) for name in ("objective", *others)}
