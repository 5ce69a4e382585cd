"""Evolution strategies: they know points and ranks, never an archive."""

from dqd.strategies.cma_es import CMAES, CMAESState
from dqd.strategies.sep_cma_es import SepCMAES
from dqd.strategies.strategy import Strategy

__all__ = ["CMAES", "CMAESState", "SepCMAES", "Strategy"]
