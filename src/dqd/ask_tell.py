"""`AskTell`: the same half-steps for a loop of one's own, around PyTorch, a simulator or anything that returns numbers.

    search = dqd.AskTell(dqd.cma_mega(sigma=1.0), grid, x0=x0, seed=0)
    while search.iteration < 1000:
        points = search.ask_dqd();   search.tell_dqd(objective, measures, jacobian)
        solutions = search.ask();    search.tell(objective, measures)

Where the emitter's sigma was left out, the first rounds look around x0 and choose it: they ask for few solutions, which
enter no archive, and are no iterations. The first round of an algorithm with an initial population asks for that
population and for no jacobians; rounds of an algorithm without gradients ask for no points, and their
`ask_dqd`/`tell_dqd` may be left out. Asking twice gives the same solutions. A `tell` that fails changes nothing and can
be repeated. A round costs the same whatever the number of cells; `archive` and `result` copy what was found. With `out`
it is kept on disk like any run, until it is closed: made again, it goes on bit for bit.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.beginning import Beginning
from dqd.archives.threshold import Threshold
from dqd.compiler import cache
from dqd.domains.survey import Ask
from dqd.emitters.emitter import Emitter, check_emitter, threshold_of
from dqd.inputs.arguments import check_initial_sigma, check_seed
from dqd.inputs.arrays import expected_shapes, extras, to_numpy
from dqd.inputs.layout import Layout
from dqd.interop.torch_arrays import copied, spoken, to_torch
from dqd.result import Result
from dqd.runners.checkpoints import NoCheckpoints, recording
from dqd.runners.progress import CompileClock, uninterrupted
from dqd.runners.snapshot import settings
from dqd.search.health import warn
from dqd.search.history import History
from dqd.search.scales import Scales, say_chosen
from dqd.search.search import Search
from dqd.search.walk import Walk, init, spread
from dqd.storage.folder import Folder
from dqd.tessellations.kinds import check_tessellation
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Evaluation, PyTree


class AskTell:
    """A search whose evaluations happen outside. Solutions are handed out as new arrays (batch, n).

    They are of NumPy, or of torch and on the device of x0 where x0 is.
    """

    def __init__(
        self,
        emitter: Emitter,
        tessellation: Tessellation,
        *,
        x0: Any,
        seed: int = 0,
        bounds: Any = None,
        initial_sigma: float | None = None,
        archive: Any = None,
        threshold: Threshold | None = None,
        qd_score_offset: float = 0.0,
        out: str | os.PathLike[str] | Folder | None = None,
    ) -> None:
        """The arguments are those of `dqd.illuminate`."""
        cache.enable()
        check_emitter("emitter", emitter)
        check_tessellation(tessellation)
        sigma = check_initial_sigma(initial_sigma)
        check_seed(seed)
        self._layout, flat = Layout.of(x0)
        self._device = spoken(jax.tree.leaves(x0))
        search = Search(emitter, self._layout.flatten_bounds(bounds), sigma)
        self._seed = int(seed)
        self._size, self._dtype, self._k = flat.size, np.dtype(flat.dtype), tessellation.num_measures
        empty = Archive.empty(
            tessellation,
            flat.size,
            threshold=threshold_of(emitter, threshold),
            qd_score_offset=qd_score_offset,
            dtype=flat.dtype,
        )
        self._x0 = flat
        self._beginning = Beginning.of(archive, empty, search.bounds)
        self._clock, self._closed = CompileClock(), False
        self._told: dict[str, Evaluation] = {}
        self._scales, self._out = Scales.of(search, initial_sigma), Folder.of(out)
        self._choosing = self._scales.choosing(flat, tessellation)
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
        self._walk = Walk(self._search, state)

    # Before the search: which sigma? ----------------------------------------------------------------------------------

    def _looked(self, evaluation: Evaluation) -> None:
        """Go on with what was found; in the end, begin with what was chosen."""
        try:
            self._look = self._choosing.send(evaluation)
        except StopIteration as end:
            self._look = None
            say_chosen(end.value)
            self._begin(self._walk.release().archive, end.value)

    # The loop ---------------------------------------------------------------------------------------------------------

    def ask_dqd(self) -> Any:
        """Points (p, n) at which the emitter wants jacobians; p may be 0."""
        if self._look is not None:
            return self._handed(self._look.solutions if self._look.jacobian else self._look.solutions[:0])
        if self._walk.has_points and self._walk.proposal is not None and not self._initial_left:
            raise RuntimeError("ask_dqd: this round's points were told already; go on with ask()")
        if self._initial_left:
            return self._handed(np.zeros((0, self._size), self._dtype))
        points = self._walk.ask_dqd()
        mask = np.asarray(points.mask)
        return self._handed(points.solutions if mask.all() else np.asarray(points.solutions)[mask])

    def tell_dqd(
        self,
        objective: Any,
        measures: Any = None,
        jacobian: Any = None,
        *,
        feasible: Any = None,
        evaluations: Any = None,
    ) -> None:
        """Objective (p,), measures (p, k), jacobian (p, 1 + k, n) of the points; row 0 is the objective's gradient.

        Or one `dqd.Evaluation` of all. `feasible` and `evaluations` are those of `tell`.
        """
        given = _named(objective, measures=measures, jacobian=jacobian, feasible=feasible, evaluations=evaluations)
        if self._look is not None and self._look.jacobian:
            self._looked(self._validate("tell_dqd", len(self._look.solutions), given))
            return
        if self._walk.has_points and self._walk.proposal is not None and not self._initial_left:
            raise RuntimeError("tell_dqd: this round's points were told already; go on with ask()")
        if self._look is not None or self._initial_left or not self._walk.has_points:
            if np.size(to_numpy(given["objective"])):
                raise ValueError("tell_dqd: no points were asked for in this round, so none can be told")
            return
        if self._walk.points is None:
            raise RuntimeError("tell_dqd: call ask_dqd() first and evaluate what it returns")
        mask = np.asarray(self._walk.points.mask)
        if not mask.any() and not np.size(to_numpy(given["objective"])):
            return
        answer = self._validate("tell_dqd", int(mask.sum()), given)
        with uninterrupted():
            self._walk.tell_dqd(spread(answer, mask))

    def ask(self) -> Any:
        """Solutions (b, n) to evaluate."""
        if self._look is not None and not self._look.jacobian:
            return self._handed(self._look.solutions)
        proposal = self._walk.proposal
        return self._handed(self._propose() if proposal is None else proposal.solutions)

    def _propose(self) -> jax.Array:
        walk = self._walk
        if self._initial_left and self._look is None:
            return walk.ask_initial()
        if len(self.ask_dqd()):
            raise RuntimeError(
                "ask: this algorithm uses gradients; first call ask_dqd(), evaluate its points with their jacobians "
                "and hand them to tell_dqd()"
            )
        mask = np.asarray(walk.ask_dqd().mask)  # an emitter that can do without jacobians, at least in this round
        with uninterrupted():
            return walk.tell_dqd(spread(walk.nothing, mask))

    def tell(self, objective: Any, measures: Any = None, *, feasible: Any = None, evaluations: Any = None) -> None:
        """Objective (b,) and measures (b, k) of the solutions of `ask`, in their order; or one `dqd.Evaluation`.

        `feasible`, booleans (b,), keeps solutions out of the archive; `evaluations`, whole numbers (b,), says how many
        were needed for each, where that is not one.
        """
        given = _named(objective, measures=measures, feasible=feasible, evaluations=evaluations)
        if self._closed:
            raise RuntimeError("tell: this search was closed; make it again, with the same `out`, to go on")
        if self._look is not None and not self._look.jacobian:
            self._looked(self._validate("tell", len(self._look.solutions), given))
            return
        if self._walk.proposal is None:
            raise RuntimeError("tell: call ask() first and evaluate what it returns")
        evaluation = self._validate("tell", len(self._walk.proposal.solutions), given)
        with uninterrupted():
            if self._initial_left:
                self._walk.tell_initial(evaluation)
                self._initial_left = False
            else:
                self._walk.tell(evaluation)
        self._checkpoints.passed(self.iteration)
        if self._checkpoints.due(self.iteration):
            self._keep()

    # On disk ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """With `out`: write what was found and let go of the folder. A round that was begun is asked for again."""
        closed, self._closed = self._closed, True
        with self._folder:
            if self._walk.proposal is None and not closed:
                self._keep(last=True)

    def _keep(self, last: bool = False) -> None:
        if not isinstance(self._checkpoints, NoCheckpoints):
            self._checkpoints.keep(self._walk.state, self._settled(), last=last)

    def __enter__(self) -> AskTell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What was found ---------------------------------------------------------------------------------------------------

    @property
    def archive(self) -> Archive:
        return self._walk.state.archive

    @property
    def iteration(self) -> int:
        """Iterations completed; the initial population is not one."""
        return self._walk.iteration

    @property
    def qd_score(self) -> float:
        return float(self._walk.metrics.qd_score)

    @property
    def coverage(self) -> float:
        return float(self._walk.metrics.coverage)

    @property
    def best(self) -> float:
        return float(self._walk.metrics.best)

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
        for rows in self._walk.rows():
            self._history.append(rows)
        return self._history

    # The border -------------------------------------------------------------------------------------------------------

    def _handed(self, array: Any) -> Any:
        """A copy of an array of ours, of the kind that x0 is."""
        return np.array(array) if self._device is None else to_torch(array, self._device, copy=True)

    def _validate(self, call: str, batch: int, given: Mapping[str, Any]) -> Evaluation:
        """Copies of the caller's arrays, checked."""
        expected = expected_shapes(batch, self._k, self._size, jacobian="jacobian" in given)
        like = self._walk.nothing.objective
        copies: Any = {name: copied(call, name, given[name], shape, like) for name, shape in expected.items()}
        copies |= extras(call, given, batch)
        self._told[call] = Evaluation(**copies)  # kept until the next one
        return self._told[call]


def _named(objective: Any, **others: Any) -> dict[str, Any]:
    """What was told, by name; all of it may have come as one `Evaluation`."""
    if not hasattr(objective, "objective"):
        return {"objective": objective, **others}
    return {name: getattr(objective, name, None) for name in ("objective", *others)}
