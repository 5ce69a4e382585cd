"""`AskTell`: the same half-steps for a loop of one's own, around PyTorch, a simulator or anything that returns numbers.

    search = dqd.AskTell(dqd.cma_mega(sigma=1.0), grid, x0=x0, seed=0)
    while search.iteration < 1000:
        points = search.ask_dqd();   search.tell_dqd(objective, measures, jacobian)
        solutions = search.ask();    search.tell(objective, measures)

The first round of an algorithm with an initial population asks for that population and for no jacobians; rounds of an
algorithm without gradients ask for no points, and their `ask_dqd`/`tell_dqd` may be left out. Asking twice gives the
same solutions. A `tell` that fails changes nothing and can be repeated.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dqd import half_steps, told
from dqd.archives.archive import Archive
from dqd.archives.grid import Grid
from dqd.checks import check_search, check_seed
from dqd.emitters.emitter import Emitter
from dqd.history import History
from dqd.result import Result
from dqd.search import Search, SearchState, no_evaluation
from dqd.solutions import Layout
from dqd.types import Evaluation, Points, Proposal


class AskTell:
    """A search whose evaluations happen outside. Solutions are handed out as new NumPy arrays (batch, n)."""

    def __init__(
        self,
        emitter: Emitter,
        tessellation: Grid,
        *,
        x0: Any,
        seed: int = 0,
        bounds: Any = None,
        initial_sigma: float = 1.0,
        archive_learning_rate: float = 1.0,
        archive_minimum: float = -math.inf,
        qd_score_offset: float = 0.0,
    ) -> None:
        check_search(emitter, tessellation, initial_sigma)
        check_seed(seed)
        self._layout, flat = Layout.of(x0)
        self._search = Search(emitter, self._layout.flatten_bounds(bounds), float(initial_sigma))
        self._seed = int(seed)
        archive = Archive.empty(
            tessellation,
            flat.size,
            learning_rate=archive_learning_rate,
            minimum=archive_minimum,
            qd_score_offset=qd_score_offset,
            dtype=flat.dtype,
        )
        self._state: SearchState = half_steps.init(self._search, archive, flat, jax.random.key(self._seed))
        self._initial_left = emitter.initial_population > 0
        self._history = History()
        self._begin()

    def _begin(self) -> None:
        """Nothing asked yet in this round."""
        self._noise: Any = None
        self._points: Points | None = None
        self._evaluation: Evaluation | None = None  # of the points
        self._proposal: Proposal | None = None
        self._asked: SearchState | None = None  # the state in which the proposal was made

    # The loop ---------------------------------------------------------------------------------------------------------

    def ask_dqd(self) -> np.ndarray:
        """Points (p, n) at which the emitter wants jacobians; p may be 0."""
        if self._evaluation is not None:
            raise RuntimeError("ask_dqd: this round's points were told already; go on with ask()")
        if self._initial_left:
            return np.zeros((0, self._state.x0.size), self._state.x0.dtype)
        if self._points is None:
            self._noise = half_steps.noise(self._search, self._state, self._state.iteration + 1)
            self._points = half_steps.ask_dqd(self._search, self._state, self._noise)
        return np.array(self._points.solutions)[np.asarray(self._points.mask)]

    def tell_dqd(self, objective: Any, measures: Any, jacobian: Any) -> None:
        """Objective (p,), measures (p, k), jacobian (p, 1 + k, n) of the points; row 0 is the objective's gradient."""
        if self._evaluation is not None:
            raise RuntimeError("tell_dqd: this round's points were told already; go on with ask()")
        if self._initial_left or self._search.emitter.num_points == 0:
            if np.size(told.to_numpy(objective)):
                raise ValueError("tell_dqd: no points were asked for in this round, so none can be told")
            return
        if self._points is None:
            raise RuntimeError("tell_dqd: call ask_dqd() first and evaluate what it returns")
        mask = np.asarray(self._points.mask)
        answer = self._validate("tell_dqd", int(mask.sum()), objective, measures, jacobian)
        evaluation = jax.tree.map(lambda part: half_steps.spread(part, mask), answer)
        state = half_steps.tell_dqd(self._search, self._state, self._points, evaluation)
        self._state, self._evaluation = state, evaluation

    def ask(self) -> np.ndarray:
        """Solutions (b, n) to evaluate."""
        if self._proposal is None:
            self._propose()
        assert self._proposal is not None
        return np.array(self._proposal.solutions)

    def _propose(self) -> None:
        search, state = self._search, self._state
        if self._initial_left:
            self._asked, self._proposal = state, Proposal(half_steps.ask_initial(search, state), ())
            return
        wanted = len(self.ask_dqd()) if self._evaluation is None else 0
        if search.emitter.num_points == 0:
            self._evaluation = no_evaluation(state.archive.tessellation, state.x0)
        elif self._evaluation is None and wanted == 0:  # an emitter that can do without jacobians in this round
            empty = no_evaluation(state.archive.tessellation, state.x0)
            self.tell_dqd(empty.objective, empty.measures, empty.jacobian)
        if self._evaluation is None:
            raise RuntimeError(
                "ask: this algorithm uses gradients; first call ask_dqd(), evaluate its points with their jacobians "
                "and hand them to tell_dqd()"
            )
        self._asked, self._proposal = half_steps.ask(search, self._state, self._points, self._evaluation, self._noise)

    def tell(self, objective: Any, measures: Any) -> None:
        """Objective (b,) and measures (b, k) of the solutions of `ask`, in their order."""
        if self._proposal is None or self._asked is None:
            raise RuntimeError("tell: call ask() first and evaluate what it returns")
        evaluation = self._validate("tell", len(self._proposal.solutions), objective, measures)
        if self._initial_left:
            self._state = half_steps.tell_initial(self._search, self._asked, self._proposal.solutions, evaluation)
            self._initial_left = False
        else:
            self._state, info = half_steps.tell(self._search, self._asked, self._proposal, evaluation)
            self._history.append(jax.tree.map(lambda value: np.asarray(value)[None], info))
        self._begin()

    # What was found ---------------------------------------------------------------------------------------------------

    @property
    def archive(self) -> Archive:
        return self._state.archive

    @property
    def iteration(self) -> int:
        """Iterations completed; the initial population is not one."""
        return int(self._state.iteration)

    @property
    def qd_score(self) -> float:
        return float(self.archive.metrics.qd_score)

    @property
    def coverage(self) -> float:
        return float(self.archive.metrics.coverage)

    @property
    def best(self) -> float:
        return float(self.archive.best)

    def result(self) -> Result:
        """What was found so far, as `illuminate` returns it."""
        history = self._history.arrays()
        return Result(self._search, self._state, history, self._seed, self._layout, None, 0.0, 0.0)

    # The border -------------------------------------------------------------------------------------------------------

    def _validate(self, call: str, batch: int, objective: Any, measures: Any, jacobian: Any = None) -> Evaluation:
        """Copies of the caller's arrays, checked."""
        given = {"objective": objective, "measures": measures, "jacobian": jacobian}
        k, x0 = self.archive.tessellation.num_measures, self._state.x0
        expected = told.shapes(batch, k, x0.size, jacobian=call == "tell_dqd")
        arrays = {name: told.checked(call, name, given[name], shape) for name, shape in expected.items()}
        return Evaluation(**{name: jnp.array(array, x0.dtype) for name, array in arrays.items()})
