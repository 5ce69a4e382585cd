"""The asynchronous runner: several rounds at a time, so that workers never wait for the slowest of a batch."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.metrics import Standing
from dqd.runners.hosted import Hosted
from dqd.search.jobs import Jobs
from dqd.search.rounds import Rounds
from dqd.search.search import SearchState, Tally
from dqd.workers.stream import Stream


class Asynchronous:
    """One seed. Rounds that are under way when a launch ends go on in the next; a launch ends with the last of its
    iterations, which is when its last evaluation does: an accident, unlike with any other runner."""

    grain = chunk = 1

    def __init__(self, hosted: Hosted, iterations: int) -> None:
        self.hosted, self.iterations = hosted, iterations
        self.stream = Stream(hosted.evaluations)
        self.rounds: Rounds | None = None

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        return self.hosted.start(archive, x0, seed)

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, Standing, Tally]:
        if self.rounds is None:
            self.rounds = Rounds(self.hosted.search, state, Jobs(), most=self.iterations)
        rounds = self.rounds
        goal = rounds.iteration + length
        while rounds.iteration < goal:
            self._feed(rounds)
            number, evaluation = self.stream.next()
            rounds.jobs.tell([number], evaluation)
        rows, state = rounds.rows(), rounds.release()
        return state, rows, jax.tree.map(np.asarray, state.tally)

    def _feed(self, rounds: Rounds) -> None:
        """Give out as much as workers can take."""
        every = self.hosted.search.emitter.batch_size + self.hosted.search.emitter.num_points
        while (room := self.stream.room(every)) and (asked := rounds.ask(room)) is not None:
            for number, solution in zip(asked.ids, asked.solutions, strict=True):
                self.stream.give(int(number), solution, rounds.iteration + 1, asked.jacobian)

    def close(self) -> None:
        self.stream.cancel()
        self.hosted.close()
