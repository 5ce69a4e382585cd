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

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dqd.inputs.arrays import to_numpy
from dqd.own_loop import OwnLoop, named
from dqd.runners.progress import uninterrupted
from dqd.search.search import SearchState
from dqd.search.walk import Walk, spread

if TYPE_CHECKING:
    from torch import Tensor


class AskTell(OwnLoop[Walk]):
    """A search whose evaluations happen outside: it hands out solutions (batch, n), and is told what they scored.

    They are new arrays of NumPy, or of torch and on the device of x0 where x0 is. The arguments are those of
    `dqd.illuminate`. One round is one iteration; with the same seed it finds what the compiled search finds. A round
    costs O(batch n) beside your evaluations, whatever the number of cells.

    >>> grid = dqd.Grid(lower=[-2, -2], upper=[2, 2], shape=[10, 10])
    >>> search = dqd.AskTell(dqd.map_elites(sigma=0.3), grid, x0=np.zeros(4), seed=1)
    >>> while search.iteration < 20:
    ...     solutions = search.ask()  # (36, 4)
    ...     search.tell(-np.sum(solutions**2, axis=1), solutions[:, :2])
    >>> search.result().coverage > 30
    True

    With gradients, `ask_dqd` and `tell_dqd` come before in every round:

    >>> search = dqd.AskTell(dqd.cma_mega(sigma=0.5), grid, x0=np.zeros(4))
    >>> points = search.ask_dqd()  # (1, 4)
    >>> jacobian = np.stack([-2 * points, *np.eye(4)[:2, None]], axis=1)  # (1, 1 + 2, 4)
    >>> search.tell_dqd(-np.sum(points**2, axis=1), points[:, :2], jacobian)
    >>> search.ask().shape
    (35, 4)
    """

    def _moving(self, state: SearchState) -> Walk:
        return Walk(self._search, state)

    def _within(self) -> bool:
        return self._walk.proposal is not None

    # The loop ---------------------------------------------------------------------------------------------------------

    def ask_dqd(self) -> np.ndarray | jax.Array | Tensor:
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
        fields: Any = None,
    ) -> None:
        """Objective (p,), measures (p, k), jacobian (p, 1 + k, n) of the points; row 0 is the objective's gradient.

        Or one `dqd.Evaluation` of all. `feasible`, `evaluations` and `fields` are those of `tell`.
        """
        given = named(
            objective, measures=measures, jacobian=jacobian, feasible=feasible, evaluations=evaluations, fields=fields
        )
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

    def ask(self) -> np.ndarray | jax.Array | Tensor:
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

    def tell(
        self, objective: Any, measures: Any = None, *, feasible: Any = None, evaluations: Any = None, fields: Any = None
    ) -> None:
        """Objective (b,) and measures (b, k) of the solutions of `ask`, in their order; or one `dqd.Evaluation`.

        `feasible`, booleans (b,), keeps solutions out of the archive; `evaluations`, whole numbers (b,), says how many
        were needed for each, where that is not one; `fields`, a dictionary, has what `fields=` keeps.
        """
        given = named(objective, measures=measures, feasible=feasible, evaluations=evaluations, fields=fields)
        self._check_open("tell")
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
        self._passed()
