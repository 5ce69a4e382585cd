"""`AskTell`: the same half-steps for a loop of one's own, around PyTorch, a simulator or anything that returns numbers.

    search = dqd.AskTell(dqd.cma_mega(sigma=1.0), grid, x0=x0, seed=0)
    while search.iteration < 1000:
        points = search.ask_dqd();   search.tell_dqd(objective, measures, jacobian)
        solutions = search.ask();    search.tell(objective, measures)

Where the emitter's sigma was left out, the first rounds look around x0 and choose it: they ask for few solutions, which
enter no archive, and are no iterations. The first round of an algorithm with an initial population asks for that
population and for no jacobians; rounds of an algorithm without gradients ask for no points, and their
`ask_dqd`/`tell_dqd` may be left out. Asking twice gives the same solutions. A `tell` that fails changes nothing and can
be repeated. A round costs the same whatever the number of cells; `archive` and `result` copy what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.threshold import Threshold
from dqd.compiler import cache
from dqd.domains.survey import Ask
from dqd.emitters.emitter import Emitter, check_emitter
from dqd.inputs.arguments import check_initial_sigma, check_seed
from dqd.inputs.arrays import checked, expected_shapes, to_numpy
from dqd.inputs.layout import Layout
from dqd.result import Result
from dqd.runners.progress import uninterrupted
from dqd.search.health import warn
from dqd.search.history import History
from dqd.search.scales import Scales, say
from dqd.search.search import Search
from dqd.search.walk import Walk, init, spread
from dqd.tessellations.kinds import check_tessellation
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Evaluation


class AskTell:
    """A search whose evaluations happen outside. Solutions are handed out as new NumPy arrays (batch, n)."""

    def __init__(
        self,
        emitter: Emitter,
        tessellation: Tessellation,
        *,
        x0: Any,
        seed: int = 0,
        bounds: Any = None,
        initial_sigma: float | None = None,
        threshold: Threshold = Threshold(),  # noqa: B008 - frozen
        qd_score_offset: float = 0.0,
    ) -> None:
        cache.enable()
        check_emitter("emitter", emitter)
        check_tessellation(tessellation)
        sigma = check_initial_sigma(initial_sigma)
        check_seed(seed)
        self._layout, flat = Layout.of(x0)
        search = Search(emitter, self._layout.flatten_bounds(bounds), sigma)
        self._seed = int(seed)
        archive = Archive.empty(
            tessellation,
            flat.size,
            threshold=threshold,
            qd_score_offset=qd_score_offset,
            dtype=flat.dtype,
        )
        self._size, self._dtype, self._k = flat.size, np.dtype(flat.dtype), tessellation.num_measures
        self._initial_left = emitter.initial_population > 0
        self._history = History()
        self._scales, self._chosen = Scales.of(search, initial_sigma), dict[str, float]()
        self._choosing = self._scales.choosing(flat, tessellation)
        self._look: Ask | None = next(self._choosing) if self._scales.names else None
        self._begin(archive, flat, dict.fromkeys(self._scales.names, 1.0))

    def _begin(self, archive: Archive, x0: jax.Array, sigmas: Mapping[str, float]) -> None:
        """Before iteration 1. While sigmas are looked for, others stand in their place."""
        self._search = self._scales.chosen(sigmas)
        self._walk = Walk(self._search, init(self._search, archive, x0, jax.random.key(self._seed)))

    # Before the search: which sigma? ----------------------------------------------------------------------------------

    def _looked(self, evaluation: Evaluation) -> None:
        """Go on with what was found; in the end, begin with what was chosen."""
        try:
            self._look = self._choosing.send(evaluation)
        except StopIteration as end:
            self._look, self._chosen = None, end.value
            say(self._chosen)
            state = self._walk.release()
            self._begin(state.archive, state.x0, self._chosen)

    # The loop ---------------------------------------------------------------------------------------------------------

    def ask_dqd(self) -> np.ndarray:
        """Points (p, n) at which the emitter wants jacobians; p may be 0."""
        if self._look is not None:
            return np.array(self._look.solutions if self._look.jacobian else np.zeros((0, self._size), self._dtype))
        if self._walk.has_points and self._walk.proposal is not None and not self._initial_left:
            raise RuntimeError("ask_dqd: this round's points were told already; go on with ask()")
        if self._initial_left:
            return np.zeros((0, self._size), self._dtype)
        points = self._walk.ask_dqd()
        return np.array(points.solutions)[np.asarray(points.mask)]

    def tell_dqd(self, objective: Any, measures: Any, jacobian: Any) -> None:
        """Objective (p,), measures (p, k), jacobian (p, 1 + k, n) of the points; row 0 is the objective's gradient."""
        if self._look is not None and self._look.jacobian:
            self._looked(self._validate("tell_dqd", len(self._look.solutions), objective, measures, jacobian))
            return
        if self._walk.has_points and self._walk.proposal is not None and not self._initial_left:
            raise RuntimeError("tell_dqd: this round's points were told already; go on with ask()")
        if self._look is not None or self._initial_left or not self._walk.has_points:
            if np.size(to_numpy(objective)):
                raise ValueError("tell_dqd: no points were asked for in this round, so none can be told")
            return
        if self._walk.points is None:
            raise RuntimeError("tell_dqd: call ask_dqd() first and evaluate what it returns")
        mask = np.asarray(self._walk.points.mask)
        answer = self._validate("tell_dqd", int(mask.sum()), objective, measures, jacobian)
        with uninterrupted():
            self._walk.tell_dqd(spread(answer, mask))

    def ask(self) -> np.ndarray:
        """Solutions (b, n) to evaluate."""
        if self._look is not None and not self._look.jacobian:
            return np.array(self._look.solutions)
        proposal = self._walk.proposal
        return np.array(self._propose() if proposal is None else proposal.solutions)

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

    def tell(self, objective: Any, measures: Any) -> None:
        """Objective (b,) and measures (b, k) of the solutions of `ask`, in their order."""
        if self._look is not None and not self._look.jacobian:
            self._looked(self._validate("tell", len(self._look.solutions), objective, measures))
            return
        if self._walk.proposal is None:
            raise RuntimeError("tell: call ask() first and evaluate what it returns")
        evaluation = self._validate("tell", len(self._walk.proposal.solutions), objective, measures)
        with uninterrupted():
            if self._initial_left:
                self._walk.tell_initial(evaluation)
                self._initial_left = False
            else:
                self._walk.tell(evaluation)

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
        for rows in self._walk.rows():
            self._history.append(rows)
        history, state = self._history.arrays(), self._walk.state
        warn(state, flat=True)
        return Result(self._search, state, history, self._seed, None, 0.0, 0.0, self._layout, chosen=self._chosen)

    # The border -------------------------------------------------------------------------------------------------------

    def _validate(self, call: str, batch: int, objective: Any, measures: Any, jacobian: Any = None) -> Evaluation:
        """Copies of the caller's arrays, checked."""
        given = {"objective": objective, "measures": measures, "jacobian": jacobian}
        expected = expected_shapes(batch, self._k, self._size, jacobian=call == "tell_dqd")
        arrays = {name: checked(call, name, given[name], shape) for name, shape in expected.items()}
        copies: Any = {name: np.array(array, self._dtype) for name, array in arrays.items()}
        return Evaluation(**copies)
