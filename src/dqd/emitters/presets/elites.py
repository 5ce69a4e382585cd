"""Algorithms that vary elites: by chance, along lines between them, or along their gradients."""

from __future__ import annotations

from numbers import Integral

from dqd.emitters.combine import Combined
from dqd.emitters.emitter import Emitter
from dqd.emitters.gradient_operator import Branching, GradientOperator, ObjectiveStep
from dqd.emitters.operators import Elite, Fresh, Gaussian, IsoLine, Operator
from dqd.emitters.presets.checks import batch, check_positive, population, positive_or_chosen
from dqd.emitters.variation import Variation


def random_sampling(sigma: float = 1.0, *, batch_size: int = 36) -> Variation:
    """Baseline: random solutions around the start, without looking at the archive.

        x = x0 + sigma N(0, I)

    Args:
        sigma: standard deviation, in the units of a solution.
        batch_size: evaluations per iteration.

    Costs O(batch_size n).

    >>> dqd.random_sampling(sigma=2.0).batch_size
    36
    """
    check_positive(sigma=sigma)
    return Variation(Fresh(float(sigma)), batch(batch_size), initial_population=0)


def map_elites(sigma: float | None = None, *, batch_size: int = 36, initial_population: int = 100) -> Variation:
    """MAP-Elites (Mouret & Clune 2015): elites with noise.

        x = e + sigma N(0, I)

    Args:
        sigma: standard deviation of the noise, in the units of a solution. In n dimensions a solution moves by about
            sigma sqrt(n). None chooses it by the cells of the grid.
        batch_size: evaluations per iteration.
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Needs no gradients. Costs O(batch_size n).

    >>> emitter = dqd.map_elites(sigma=0.1)
    >>> emitter.num_points, emitter.batch_size, emitter.initial_population
    (0, 36, 100)
    """
    return Variation(Gaussian(positive_or_chosen(sigma=sigma)), batch(batch_size), population(initial_population))


def map_elites_line(
    sigma1: float | None = None, sigma2: float = 0.2, *, batch_size: int = 36, initial_population: int = 100
) -> Variation:
    """MAP-Elites (line) (Vassiliades & Mouret 2018): noise, and a step along the line through two elites.

        x = e_i + sigma1 N(0, I) + sigma2 N(0, 1) (e_j - e_i)

    Elites often lie near a surface of few dimensions; the line through two of them stays close to it.

    Args:
        sigma1: standard deviation of the noise, in the units of a solution. None chooses it by the cells of the grid.
        sigma2: standard deviation of the step, as a share of the distance between both elites.
        batch_size: evaluations per iteration.
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Needs no gradients. Costs O(batch_size n).

    >>> dqd.map_elites_line(sigma1=0.1, sigma2=0.2).batch_size
    36
    """
    check_positive(sigma2=sigma2)
    return Variation(
        IsoLine(positive_or_chosen(sigma1=sigma1), float(sigma2)), batch(batch_size), population(initial_population)
    )


def og_map_elites(
    sigma: float,
    step: float,
    *,
    batch_size: int = 36,
    independent: bool = False,
    stepped: int | None = None,
    initial_population: int = 100,
) -> Emitter:
    """OG-MAP-Elites: perturb an elite, evaluate it, then step up its objective.

        theta = e + sigma N(0, I),  x = theta + step grad f(theta)

    The gradient is used as it is, not normalised; both theta and x enter the archive.

    Args:
        sigma: standard deviation of the noise, in the units of a solution.
        step: how far to go along the gradient, in (units of a solution)^2 per unit of the objective.
        batch_size: evaluations per iteration, points with gradients included.
        independent: the paper's dagger variant: one emitter steps from unperturbed elites, another one perturbs.
        stepped: gradient steps per iteration: half of the batch, or a third of it if independent. The paper describes
            12 re-evaluated + 12 stepped + 12 perturbed; the released code makes 24 perturbations
            (`batch_size=48, stepped=12`).
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Costs O(batch_size n), and the jacobians of `stepped` points.

    >>> emitter = dqd.og_map_elites(sigma=0.1, step=0.5)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (18, 18)
    """
    check_positive(sigma=sigma, step=step)
    return _objective_gradient(Gaussian(float(sigma)), step, batch_size, independent, stepped, initial_population)


def og_map_elites_line(
    sigma1: float,
    sigma2: float,
    step: float,
    *,
    batch_size: int = 36,
    independent: bool = False,
    stepped: int | None = None,
    initial_population: int = 100,
) -> Emitter:
    """OG-MAP-Elites (line): as `og_map_elites`, perturbed by the line operator of `map_elites_line`.

        theta = e_i + sigma1 N(0, I) + sigma2 N(0, 1) (e_j - e_i),  x = theta + step grad f(theta)

    >>> dqd.og_map_elites_line(sigma1=0.1, sigma2=0.2, step=0.5, independent=True).num_points
    12
    """
    check_positive(sigma1=sigma1, sigma2=sigma2, step=step)
    return _objective_gradient(
        IsoLine(float(sigma1), float(sigma2)), step, batch_size, independent, stepped, initial_population
    )


def omg_mega(
    sigma: float | None = None, normalize: bool = True, *, batch_size: int = 36, initial_population: int = 100
) -> GradientOperator:
    """OMG-MEGA: elites moved by random combinations of all their gradients.

        x = e + |c_0| grad f(e) + sum_j c_j grad m_j(e),  c ~ N(0, sigma^2 I)

    Never down the objective, and any way along the measures. Half of the batch evaluates elites for their gradients.

    Args:
        sigma: standard deviation of the coefficients. With normalised gradients it is a distance in the units of a
            solution: a branch moves by about sigma sqrt(1 + k). None chooses it by the cells of the grid.
        normalize: divide every gradient by its length, so that sigma means the same for all of them.
        batch_size: evaluations per iteration, an even number.
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Costs O(batch_size k n), and the jacobians of `batch_size` / 2 points.

    >>> emitter = dqd.omg_mega(sigma=1.0)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (18, 18)
    """
    return GradientOperator(
        Elite(),
        Branching(positive_or_chosen(sigma=sigma), bool(normalize)),
        batch(batch_size, 2, even=True) // 2,
        population(initial_population),
    )


def _objective_gradient(
    operator: Operator, step: float, batch_size: int, independent: bool, stepped: int | None, initial: int
) -> Emitter:
    initial = population(initial)
    if not independent:
        half = batch(batch_size, 2, even=True) // 2
        if stepped not in (None, half):
            raise ValueError(f"stepped: without independent=True it is half of the batch, {half}; got {stepped}")
        return GradientOperator(operator, ObjectiveStep(float(step)), half, initial)
    batch_size = batch(batch_size, 3)
    stepped = batch_size // 3 if stepped is None else stepped
    if not isinstance(stepped, Integral) or not 1 <= stepped <= (batch_size - 1) // 2:
        raise ValueError(
            f"stepped: each step costs two evaluations, so it must lie in 1..{(batch_size - 1) // 2}, got {stepped}"
        )
    stepped = int(stepped)
    return Combined(
        (
            GradientOperator(Elite(), ObjectiveStep(float(step)), stepped, initial),
            Variation(operator, batch_size - 2 * stepped, initial),
        )
    )
