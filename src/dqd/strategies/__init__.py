"""Evolution strategies: they know points and ranks, never an archive."""

from dqd.strategies.cma_es import CMAES, CMAESState
from dqd.strategies.strategy import Strategy

__all__ = ["CMAES", "CMAESState", "Strategy"]
