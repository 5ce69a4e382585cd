"""Domains: the problems of the paper, and what a problem of one's own needs."""

from dqd.domains.arm import Arm
from dqd.domains.check_jacobian import JacobianReport, check_jacobian
from dqd.domains.domain import Domain
from dqd.domains.function import FunctionDomain
from dqd.domains.linear_projection import LinearProjection
from dqd.domains.problem import Problem
from dqd.domains.rejudge import rejudged
from dqd.inputs.evaluator import Evaluator

__all__ = [
    "Arm",
    "Domain",
    "Evaluator",
    "FunctionDomain",
    "JacobianReport",
    "LinearProjection",
    "Problem",
    "check_jacobian",
    "rejudged",
]
