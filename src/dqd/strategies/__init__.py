"""Evolution strategies: they know points and ranks, never an archive."""

from dqd.strategies.cma_es import CMAES, STOP_REASONS, CMAESState

__all__ = ["CMAES", "STOP_REASONS", "CMAESState"]
