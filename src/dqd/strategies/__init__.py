"""Evolution strategies: they know points and ranks, never an archive."""

from dqd.strategies.cma_es import CMAES, CMAESState
from dqd.strategies.lm_ma_es import LMMAES
from dqd.strategies.openai_es import OpenAIES
from dqd.strategies.sep_cma_es import SepCMAES
from dqd.strategies.strategy import Strategy
from dqd.strategies.xnes import XNES

__all__ = ["CMAES", "LMMAES", "XNES", "CMAESState", "OpenAIES", "SepCMAES", "Strategy"]
