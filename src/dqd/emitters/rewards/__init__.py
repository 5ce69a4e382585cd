"""Models that reward an emitter in place of the archive: how crowded a place is, what is expected of it."""

from dqd.emitters.rewards.density import Density
from dqd.emitters.rewards.discount import Discount
from dqd.emitters.rewards.rewarded import Reward, Rewarded

__all__ = ["Density", "Discount", "Reward", "Rewarded"]
