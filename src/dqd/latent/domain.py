"""The domain of an image generator: solutions become latents, latents images, images scores.

Objective and measures are scores chosen by name; all of them judge the same image. Batches go through the networks as
batches, in passes of at most `images`, so that memory is bounded. A jacobian costs one forward pass and 1 + k
pull-backs for the whole batch: rows of a batch do not depend on one another, so the gradient of a column's sum holds
the gradient of every row.

With `fresh` noise every solution meets noise of its own, drawn from a hash of its bits and `salt`. So scores depend on
luck as they did in the paper, yet `evaluate` stays a pure function: a resumed run is the same run. Elites are then the
luckiest of many; `reevaluate` with another salt shows what they are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.domains.domain import Domain
from dqd.domains.rejudge import batches
from dqd.inputs.arrays import filled
from dqd.inputs.names import check_known
from dqd.latent.cutouts import Cutouts
from dqd.latent.host import HostedLatent
from dqd.latent.spaces import Space
from dqd.latent.terms import signed, unsigned
from dqd.latent.torch_models import check_part, is_foreign
from dqd.types import Evaluation, PyTree, pytree, static

T = TypeVar("T")


class Generator(Protocol):
    """A frozen pytree whose leaves are its weights. Images may be of any height and width."""

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """Shape of one latent."""
        ...

    def images(self, latents: Array, key: Array | None) -> Array:
        """(b, *latent_shape) -> (b, 3 or 1, h, w) in about [-1, 1]. `key`: None for fixed noise, else (b,) keys."""
        ...


class Scorer(Protocol):
    """A frozen pytree that judges images; all its names share one forward pass."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def scores(self, images: Array) -> Array:
        """(b, c, h, w) -> (b, len(names))"""
        ...


@pytree
class LatentDomain(Domain):
    """A domain made of a space, a generator and scorers, with objective and measures chosen among the scores by name.

        raw objective = score(image) - norm_penalty * mean(x^2)         image = generator(space(x))
        stored        = scale * raw objective + offset

    Evaluating b solutions costs b images, and a pass of those scorers alone whose names are asked for. Their jacobians
    cost 1 + k pull-backs more, k being the number of measures. Weights are data: domains that differ in them, in `salt`
    or in `norm_penalty` share one compiled program.

    Args:
        space: turns solutions (n,) into latents.
        generator: turns latents into images with values in about [-1, 1].
        scorers: judge images; no two scores may have the same name.
        objective: the score to maximise. With a minus in front, such as "-age", it is minimised.
        measures: the scores to spread over, in the order of the grid's axes; a minus negates here, too.
        stored: (scale, offset) of what the archive stores, such as (10, 100) for a log-probability on the scale of the
            paper's tables. Algorithms follow the gradient of the raw objective.
        images: how many go through the networks at once, which bounds memory. A pass with gradients takes
            images // (1 + k) solutions. Values do not depend on it beyond rounding.
        fresh: give every solution noise of its own, which follows from its bits and the salt; otherwise the generator's
            fixed noise serves all. Scores are then partly luck: judge elites again under other salts (`reevaluate`).
        salt: a whole number; another one means other noise and other cut-outs for the same solution.
        norm_penalty: in units of the score per mean square of a solution; it keeps a free search near the origin.
        cutouts: judge an image by the mean of random crops of it.
        hold: scores that are held within a range, by name, such as {"glasses": (0, 1)}: an image outside of it is not
            feasible and is not kept, so that a map of ages is none of glasses.

    A generator that paints four grey pixels, and their mean and spread as scores:

        >>> from dqd.latent import Identity
        >>> @pytree
        ... class Four:
        ...     latent_shape = (4,)
        ...     def images(self, latents, key):
        ...         return jnp.tanh(latents).reshape(-1, 1, 2, 2)
        >>> @pytree
        ... class Light:
        ...     names = ("brightness", "contrast")
        ...     def scores(self, images):
        ...         return jnp.stack([images.mean((1, 2, 3)), images.std((1, 2, 3))], axis=1)
        >>> domain = LatentDomain(Identity(4), Four(), (Light(),), "contrast", ("brightness",), stored=(100.0, 0.0))
        >>> found = domain.evaluate(jnp.array([[20.0, 20.0, -20.0, -20.0], [20.0, 20.0, 20.0, 20.0]]))
        >>> found.objective.tolist(), found.measures.tolist()
        ([100.0, 0.0], [[0.0], [1.0]])
        >>> domain.render(jnp.array([[20.0, 20.0, -20.0, -20.0]]))[0, :, :, 0].tolist()
        [[255, 255], [0, 0]]
    """

    space: Space
    generator: Generator
    scorers: tuple[Scorer, ...]
    objective: str = static()
    measures: tuple[str, ...] = static()
    stored: tuple[float, float] = static(default=(1.0, 0.0))
    images: int = static(default=64)
    fresh: bool = static(default=False)
    salt: int = 0
    norm_penalty: float = 0.0
    cutouts: Cutouts | None = None
    hold: Mapping[str, tuple[float, float]] | tuple[tuple[str, tuple[float, float]], ...] = static(default=())

    def __post_init__(self) -> None:
        check_part("generator", self.generator)
        for scorer in self.scorers:
            check_part("scorer", scorer)
        object.__setattr__(self, "hold", tuple((name, tuple(ends)) for name, ends in dict(self.hold).items()))
        for name, (lower, upper) in dict(self.hold).items():
            check_known("score to hold", name, self.names)
            if not lower < upper:
                raise ValueError(f"hold: {name}: expected a lower and an upper end, got {lower} and {upper}")
        foreign = [part for part in (self.generator, *self.scorers) if is_foreign(part)]
        if foreign and (self.fresh or self.cutouts is not None):
            what = "fresh noise" if self.fresh else "cut-outs"
            raise ValueError(f"{what}: for parts in JAX; a {type(foreign[0]).__name__} must do without")
        for kind, name in (("objective", self.objective), *(("measure", name) for name in self.measures)):
            check_known(kind, name.removeprefix("-"), self.names)
        if twice := [name for name in unsigned(self.measures) if unsigned(self.measures).count(name) > 1]:
            raise ValueError(f"measures: {twice[0]!r} twice; a map spreads over different scores")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"scorers: every score needs a name of its own, got {', '.join(self.names)}")
        if self.images < 1:
            raise ValueError(f"images: expected at least 1 image per pass, got {self.images}")

    @property
    def names(self) -> tuple[str, ...]:
        """Every score that there is."""
        return tuple(name for scorer in self.scorers for name in scorer.names)

    @property
    def transform(self) -> tuple[float, float]:
        return self.stored

    def on_host(self) -> LatentDomain | HostedLatent:
        """An evaluator in the place of a domain with parts of PyTorch."""
        foreign = any(is_foreign(part) for part in (self.generator, *self.scorers))
        return HostedLatent(self) if foreign else self

    # Scores -----------------------------------------------------------------------------------------------------------

    def score(self, x: Array) -> tuple[Array, Array]:
        outputs = self.outputs(x[None])[0]
        return outputs[0], outputs[1:]

    def evaluate(self, solutions: Array) -> Evaluation:
        if (host := self.on_host()) is not self:
            return host.evaluate(solutions)
        outputs, feasible = in_passes(self._look, solutions, self.images)
        return Evaluation(self.store(outputs[:, 0]), outputs[:, 1:], feasible=feasible)

    def evaluate_with_jacobian(self, solutions: Array) -> Evaluation:
        if (host := self.on_host()) is not self:
            return host.evaluate_with_jacobian(solutions)
        # 1 + k pull-backs at once weigh about as much as 1 + k images.
        most = max(1, self.images // (1 + len(self.measures)))
        outputs, jacobian, feasible = in_passes(self._linearise, solutions, most)
        return Evaluation(self.store(outputs[:, 0]), outputs[:, 1:], jacobian, feasible)

    def outputs(self, solutions: Array) -> Array:
        """Raw objective and measures of one pass: (b, n) -> (b, 1 + k)."""
        return self._look(solutions)[0]

    def _look(self, solutions: Array) -> tuple[Array, Array | None]:
        return self.look_at(self.images_of(solutions), solutions)

    def look_at(self, images: Array, solutions: Array) -> tuple[Array, Array | None]:
        """Raw objective and measures (b, 1 + k) of images, and whether what is held is within its range (b,)."""
        if self.cutouts is None:
            scores = self._scores(images)
        else:
            keys = solution_keys(solutions, self.salt, "cut-outs")
            scores = self.cutouts.mean(self._scores(self.cutouts.crops(images, keys)))
        k = len(self.measures)
        outputs = jnp.column_stack([scores[:, 0] - self.penalty(solutions), scores[:, 1 : 1 + k]])
        if not self.hold:
            return outputs.astype(solutions.dtype), None
        lower, upper = jnp.asarray(list(dict(self.hold).values()), scores.dtype).T
        held = scores[:, 1 + k :]
        return outputs.astype(solutions.dtype), jnp.all((held >= lower) & (held <= upper), axis=1)

    def penalty(self, solutions: Array) -> Array:
        """What is taken from the raw objective, (b, n) -> (b,)."""
        return self.norm_penalty * (solutions**2).mean(axis=1)

    def images_of(self, solutions: Array) -> Array:
        """(b, n) -> (b, c, h, w)"""
        keys = solution_keys(solutions, self.salt, "noise") if self.fresh else None
        return self.generator.images(self.space.latents(solutions), keys)

    def _scores(self, images: Array) -> Array:
        """Scores in the order of objective, measures and what is held, from those scorers that are needed."""
        terms = (self.objective, *self.measures, *dict(self.hold))
        wanted = set(unsigned(terms))
        columns: dict[str, Array] = {}
        for scorer in self.scorers:
            if wanted & set(scorer.names):
                columns |= zip(scorer.names, scorer.scores(images).T, strict=True)
        return jnp.stack([signed(term, columns) for term in terms], axis=1)

    def _linearise(self, solutions: Array) -> tuple[Array, Array, Array | None]:
        """Outputs (b, 1 + k), their jacobians (b, 1 + k, n), and whether they are feasible."""
        outputs, pull_back, feasible = jax.vjp(self._look, solutions, has_aux=True)
        rows = outputs.shape[1]
        columns = jnp.eye(rows, dtype=outputs.dtype)[:, None, :] * jnp.ones_like(outputs)  # (1 + k, b, 1 + k)
        together = rows * len(solutions) <= self.images
        pulled = jax.vmap(pull_back)(columns) if together else jax.lax.map(pull_back, columns)
        return outputs, jnp.swapaxes(pulled[0], 0, 1), feasible

    # Pictures ---------------------------------------------------------------------------------------------------------

    def render(self, solutions: Any) -> np.ndarray:
        """The images of solutions, (b, n) -> (b, h, w, 3) of bytes: the very ones that were judged."""
        if isinstance(host := self.on_host(), HostedLatent):
            return host.pictures(solutions)
        if not len(rows := np.atleast_2d(np.asarray(solutions))):
            return np.zeros(jax.eval_shape(self.pictures, jnp.zeros((0, self.space.n))).shape, np.uint8)
        return np.concatenate([np.asarray(_render(self, batch))[:count] for batch, count in batches(rows, self.images)])

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width."""
        if self.on_host() is not self:
            return self.render(np.zeros((1, self.space.n), np.float32)).shape[1:3]
        return jax.eval_shape(self.images_of, jnp.zeros((1, self.space.n))).shape[2:]

    def pictures(self, solutions: Array) -> Array:
        """One pass of `render`, for JAX to trace."""
        images = jnp.moveaxis(self.images_of(solutions).astype(jnp.float32), 1, -1)
        levels = jnp.clip(jnp.round((images + 1) * 127.5), 0, 255).astype(jnp.uint8)
        return jnp.broadcast_to(levels, (*levels.shape[:3], 3))


def by_device(cpu: T, gpu: T) -> T:
    """What suits the device at hand, such as the `images` that it has memory for."""
    return cpu if jax.default_backend() == "cpu" else gpu


def in_passes(function: Callable[[Array], Any], solutions: Array, rows: int) -> PyTree:
    """function over (b, n) in passes of at most `rows`, of equal length; the last one is filled with a copy."""
    count = -(-len(solutions) // rows)
    if count <= 1:
        return function(solutions)
    size = -(-len(solutions) // count)
    passes = filled(solutions, count * size).reshape(count, size, -1)
    found = jax.lax.map(function, passes)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: len(solutions)], found)


def solution_keys(solutions: Array, salt: Any, purpose: Literal["noise", "cut-outs"]) -> Array:
    """A random key for each solution, (b, n) -> (b,): it depends on its bits, the salt and the purpose alone."""
    words = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(solutions), jnp.uint32).reshape(len(solutions), -1)
    place = jnp.arange(1, words.shape[1] + 1, dtype=jnp.uint32) * jnp.uint32(0x9E3779B9)
    first = _mix(words + place)
    second = _mix(first ^ place)
    low, high = (jnp.sum(mixed, axis=1, dtype=jnp.uint32) for mixed in (first, second))
    key = jax.random.fold_in(jax.random.key(salt), ("noise", "cut-outs").index(purpose))
    return jax.vmap(lambda a, b: jax.random.fold_in(jax.random.fold_in(key, a), b))(low, high)


def _mix(words: Array) -> Array:
    """The finaliser of MurmurHash3: every bit of a word changes half of the others."""
    words = (words ^ (words >> 16)) * jnp.uint32(0x85EBCA6B)
    words = (words ^ (words >> 13)) * jnp.uint32(0xC2B2AE35)
    return words ^ (words >> 16)


@jax.jit
def _render(domain: LatentDomain, solutions: Array) -> Array:
    return domain.pictures(solutions)
