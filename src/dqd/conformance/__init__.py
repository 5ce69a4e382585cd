"""What every emitter must keep, as functions: for the tests of an emitter of one's own.

    from dqd import conformance

    def test_mine():
        conformance.check_emitter(lambda scale=1.0: Mine(sigma=0.5 * scale))

A check is given a function that makes the emitter; its argument multiplies every number that the emitter holds as data.
It raises AssertionError with words. All of them run in float64, on small problems of 40 numbers and 2 measures.
"""

from dqd.conformance.checks import CHECKS, check_emitter

__all__ = ["CHECKS", "check_emitter"]
