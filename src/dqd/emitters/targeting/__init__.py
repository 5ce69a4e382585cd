"""Targeting: from one point with its jacobian, every branch is the computed step to a cell of its own."""

from dqd.emitters.targeting.emitter import Targeting

__all__ = ["Targeting"]
