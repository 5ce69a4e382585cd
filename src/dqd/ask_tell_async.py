"""`AskTellAsync`: a loop of one's own in which nobody waits for the slowest of a batch.

    search = dqd.AskTellAsync(dqd.cma_me(sigma=0.5), grid, x0=x0, rounds=4)
    while search.iteration < 1000:
        asked = search.ask(idle_workers)             # asked.ids, asked.solutions (m, n), asked.jacobian
        ...
        search.tell(ids, objective, measures)        # whenever, in whatever order, however many at once

So many `rounds` are under way at once, each with a copy of the emitter of its own, as in `dqd.replicate`; all share
one archive. A round is judged when its last solution is told, and counts as an iteration; a slow solution holds back
its own round alone. With `batch_size=1` every solution is judged as soon as it is told. What is found depends on the
order in which solutions are told, and the result says so (`result.asynchronous`).

A worker that dies costs nothing: what it was given is still to be told, by whoever evaluates it (`waiting`). With
`out`, rounds that were under way when a session ended are asked for anew in the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dqd.emitters.combine import Staggered
from dqd.emitters.emitter import Emitter, check_emitter
from dqd.emitters.presets import usual
from dqd.inputs.arguments import check_rounds
from dqd.inputs.arrays import to_numpy
from dqd.own_loop import OwnLoop, named
from dqd.runners.progress import uninterrupted
from dqd.search.jobs import Asked, Jobs
from dqd.search.rounds import Rounds
from dqd.search.search import SearchState
from dqd.tessellations.tessellation import Tessellation
from dqd.types import replace


class AskTellAsync(OwnLoop[Rounds]):
    """A search whose evaluations happen outside and end when they like. Solutions are handed out with ids.

    What comes back is told by id, in any order and any number at once; a round is judged when its last solution is
    told. The arguments are those of `dqd.AskTell`, and `rounds`, how many are under way at once.

    >>> grid = dqd.Grid(lower=[-2, -2], upper=[2, 2], shape=[10, 10])
    >>> search = dqd.AskTellAsync(dqd.map_elites(sigma=0.3, batch_size=4, initial_population=4), grid, x0=np.zeros(3))
    >>> first, second = search.ask(3), search.ask(1)
    >>> for asked in (second, first):  # the later one ends sooner
    ...     search.tell(asked.ids, -np.sum(asked.solutions**2, axis=1), asked.solutions[:, :2])
    >>> search.iteration, len(search.archive) > 0  # the initial population is not an iteration
    (0, True)
    """

    def __init__(
        self, emitter: Emitter | None, tessellation: Tessellation, *, x0: Any, rounds: int = 4, **options: Any
    ) -> None:
        """`rounds` are under way at once: as many as hold two or three times as many solutions as there are workers.

        The other arguments are those of `dqd.AskTell`.
        """
        emitter = usual(tessellation, options.get("threshold")) if emitter is None else emitter
        check_emitter("emitter", emitter)
        self._jobs = Jobs()
        super().__init__(Staggered(emitter, check_rounds(rounds)), tessellation, x0=x0, **options)

    def ask(self, count: int = 1) -> Asked:
        """The next solutions, `count` at most, all to be evaluated with jacobians or all without.

        There are none, `len(asked) == 0`, while every round waits for what is being evaluated.
        """
        self._check_open("ask")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise ValueError(f"ask: count: expected a whole number, at least 0, got {count!r}")
        if self._look is not None and not self._jobs.ready and not self._jobs.out:
            self._jobs.add(self._look.solutions, self._look.jacobian, self._looked)
        asked = self._jobs.ask(count) if self._look is not None else self._walk.ask(count)
        return self._given(
            Asked(np.zeros(0, int), np.zeros((0, self._size), self._dtype), False) if asked is None else asked
        )

    @property
    def waiting(self) -> list[Asked]:
        """What was handed out and is not told yet, one by one."""
        return [self._given(self._jobs.again([number])) for number in self._jobs.out]

    def tell(
        self,
        ids: Any,
        objective: Any,
        measures: Any = None,
        jacobian: Any = None,
        *,
        feasible: Any = None,
        evaluations: Any = None,
        fields: Any = None,
    ) -> None:
        """Objective (m,), measures (m, k) and, where it was asked for, the jacobian (m, 1 + k, n) of some ids (m,).

        Or one `dqd.Evaluation` of all. `feasible`, `evaluations` and `fields` are those of `AskTell.tell`. A tell that
        fails changes nothing.
        """
        self._check_open("tell")
        numbers = _numbers(ids)
        given = named(
            objective, measures=measures, jacobian=jacobian, feasible=feasible, evaluations=evaluations, fields=fields
        )
        if not self._jobs.check("tell", numbers):
            del given["jacobian"]
        evaluation, before = self._validate("tell", len(numbers), given), self.iteration
        with uninterrupted():
            self._jobs.tell(numbers, evaluation)
        if self.iteration > before:
            self._passed()

    def _moving(self, state: SearchState) -> Rounds:
        initial = self._initial_left and self._look is None
        return Rounds(self._search, state, self._jobs, initial)

    def _within(self) -> bool:
        return False  # a state that is looked at is always one between rounds

    def _given(self, asked: Asked) -> Asked:
        return replace(asked, solutions=self._handed(asked.solutions))


def _numbers(ids: Any) -> list[int]:
    array = np.atleast_1d(to_numpy(ids))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"tell: ids: expected whole numbers, those that ask() returned, got {array.dtype}")
    return [int(number) for number in array]
