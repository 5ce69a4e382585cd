"""The problem that every contestant solves: numbers of Fontaine & Nikolaidis (2021), standard library only.

Every worker imports this file, each from its own environment, so nothing but Python itself may be needed here.
"""

from dataclasses import dataclass

DOMAINS = ("lp-sphere", "lp-rastrigin", "arm")
ALGORITHMS = ("cma-mega", "cma-me")

BATCH = 36  # evaluations per iteration; CMA-MEGA: 1 with jacobian + 35 branches
SIDE = 100  # cells along each measure
LEARNING_RATE = 1.0  # of theta, plain gradient ascent


@dataclass(frozen=True)
class Settings:
    """One domain under one algorithm."""

    domain: str
    algorithm: str
    n: int
    sigma: float  # standard deviation: of the coefficients (CMA-MEGA), of the solutions (CMA-ME)
    bound: float  # both measures lie in [-bound, bound]
    side: int = SIDE


def settings_of(domain: str, algorithm: str, n: int, side: int = SIDE) -> Settings:
    """The authors' hyper-parameters for a domain and an algorithm."""
    if domain not in DOMAINS or algorithm not in ALGORITHMS:
        raise ValueError(f"expected one of {DOMAINS} and one of {ALGORITHMS}, got {domain!r} and {algorithm!r}")
    is_arm = domain == "arm"
    sigma = {"cma-mega": 0.05 if is_arm else 10.0, "cma-me": 0.1 if is_arm else 0.5}[algorithm]
    return Settings(domain, algorithm, n, sigma, bound=float(n) if is_arm else 5.12 * n / 2, side=side)
