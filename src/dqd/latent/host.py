"""A latent domain with parts that JAX cannot trace, evaluated on the host: part by part, each in its own library.

    solutions -> latents -> images -> scores            cotangents go the same way back, part by part

Images stay where they were made. A jacobian costs one forward pass and 1 + k pull-backs, as anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.interop.torch_parts import as_jax, as_numpy
from dqd.latent.terms import signed, unsigned
from dqd.latent.torch_models import is_foreign
from dqd.types import Evaluation, replace

if TYPE_CHECKING:
    from dqd.latent.domain import LatentDomain

PullBack = Callable[[Any], Any]

_latents = jax.jit(lambda space, solutions: space.latents(solutions))
_images = jax.jit(lambda generator, latents: generator.images(latents, None))
_scores = jax.jit(lambda scorer, images: scorer.scores(images))
# A linearised part keeps what its pull-backs need; one program computes it, another pulls back as often as one likes.
_linear_space = jax.jit(lambda space, solutions: jax.vjp(space.latents, solutions))
_linear_images = jax.jit(lambda generator, latents: jax.vjp(lambda w: generator.images(w, None), latents))
_linear_scores = jax.jit(lambda scorer, images: jax.vjp(scorer.scores, images))
_pulled = jax.jit(lambda pull_back, slope: pull_back(slope)[0])


@jax.jit
def _rows(pull_back: PullBack, latents: Array, slopes: list[Array]) -> Array:
    """All rows of a jacobian from one program: (1 + k) gradients (b, ...) by the latents -> (b, 1 + k, n)."""
    together = jnp.stack(slopes).astype(latents.dtype)
    return jax.vmap(lambda slope: pull_back(slope)[0], out_axes=1)(together)


@dataclass(frozen=True)
class HostedLatent:
    """The domain as an evaluator: NumPy in, NumPy out."""

    domain: LatentDomain

    @property
    def transform(self) -> tuple[float, float]:
        return self.domain.transform

    def evaluate(self, solutions: Any) -> Evaluation:
        parts = [self.look(rows)[0] for rows in self._passes(solutions, self.domain.images)]
        return _joined(parts)

    def evaluate_with_jacobian(self, solutions: Any) -> Evaluation:
        most = max(1, self.domain.images // (1 + len(self.domain.measures)))
        return _joined([self._linearised(rows) for rows in self._passes(solutions, most)])

    def look(self, solutions: np.ndarray) -> tuple[Evaluation, Any]:
        """One pass, and the images that were looked at."""
        images = self.images(solutions)
        columns = {name: column for scorer in self._wanted for name, column in self.columns(scorer, images).items()}
        return self._evaluation(solutions, columns), images

    def images(self, solutions: np.ndarray) -> Any:
        """(b, c, h, w) in about [-1, 1], wherever they were made."""
        latents, generator = _latents(self.domain.space, jnp.asarray(solutions)), self.domain.generator
        return generator.images(latents, None) if is_foreign(generator) else _images(generator, latents)

    def columns(self, scorer: Any, images: Any) -> dict[str, np.ndarray]:
        """The scores of one scorer by name."""
        scores = scorer.scores(images) if is_foreign(scorer) else _scores(scorer, as_jax(images))
        return dict(zip(scorer.names, as_numpy(scores).T, strict=True))

    def pictures(self, solutions: Any) -> np.ndarray:
        """Bytes (b, h, w, 3)."""
        parts = [_bytes(as_numpy(self.images(rows))) for rows in self._passes(solutions, self.domain.images)]
        return np.concatenate(parts)

    # Jacobians --------------------------------------------------------------------------------------------------------

    def _linearised(self, solutions: np.ndarray) -> Evaluation:
        domain = self.domain
        latents, to_solutions = _linear_space(domain.space, jnp.asarray(solutions))
        images, to_latents = self._generated(latents)
        judged = [(scorer, *self._judged(scorer, images)) for scorer in self._wanted]
        columns = {name: column for scorer, scores, _ in judged for name, column in _named(scorer, scores).items()}
        slopes = [self._slope(term, judged, to_latents) for term in (domain.objective, *domain.measures)]
        jacobian: Any = np.array(_rows(to_solutions, latents, slopes))
        jacobian[:, 0] -= 2 * domain.norm_penalty * solutions / solutions.shape[1]
        return replace(self._evaluation(solutions, columns), jacobian=jacobian)

    def _slope(self, term: str, judged: list[Any], to_latents: PullBack) -> Any:
        """The gradient of one score with respect to the latents."""
        name = term.removeprefix("-")
        scores, to_images, column = next((s, pull, i.names.index(name)) for i, s, pull in judged if name in i.names)
        weights = np.zeros(tuple(scores.shape), np.float32)
        weights[:, column] = -1 if term.startswith("-") else 1
        return as_jax(to_latents(to_images(weights)))

    def _generated(self, latents: Any) -> tuple[Any, PullBack]:
        generator: Any = self.domain.generator
        if is_foreign(generator):
            return generator.linearised(latents)
        images, pull_back = _linear_images(generator, latents)
        return images, lambda slope: _pulled(pull_back, as_jax(slope).astype(images.dtype))

    def _judged(self, scorer: Any, images: Any) -> tuple[Any, PullBack]:
        if is_foreign(scorer):
            return scorer.linearised(images)
        scores, pull_back = _linear_scores(scorer, as_jax(images))
        return scores, lambda weights: _pulled(pull_back, as_jax(weights).astype(scores.dtype))

    # What is common ---------------------------------------------------------------------------------------------------

    @property
    def _wanted(self) -> list[Any]:
        """The scorers that are needed."""
        names = set(unsigned((self.domain.objective, *self.domain.measures, *dict(self.domain.hold))))
        return [scorer for scorer in self.domain.scorers if names & set(scorer.names)]

    def _evaluation(self, solutions: np.ndarray, columns: Mapping[str, np.ndarray]) -> Evaluation:
        domain: Any = self.domain
        penalty = domain.norm_penalty * np.mean(solutions**2, axis=1)
        measures = np.stack([signed(term, columns) for term in domain.measures], axis=1)
        held = [(columns[name] >= low) & (columns[name] <= high) for name, (low, high) in domain.hold]
        objective = domain.store(signed(domain.objective, columns) - penalty)
        return Evaluation(objective, measures, feasible=np.all(held, axis=0) if held else None)  # type: ignore[arg-type]

    @staticmethod
    def _passes(solutions: Any, most: int) -> Iterator[np.ndarray]:
        """Equal ones as far as possible: torch and XLA prepare themselves for each size."""
        rows = np.atleast_2d(np.asarray(solutions))
        count = max(1, -(-len(rows) // most))
        return iter(np.array_split(rows, count))


def _named(scorer: Any, scores: Any) -> dict[str, np.ndarray]:
    return dict(zip(scorer.names, as_numpy(scores).T, strict=True))


def _joined(parts: list[Evaluation]) -> Evaluation:
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *each: np.concatenate(each), *parts)


def _bytes(images: np.ndarray) -> np.ndarray:
    levels = np.clip(np.round((np.moveaxis(images, 1, -1) + 1) * 127.5), 0, 255).astype(np.uint8)
    return np.broadcast_to(levels, (*levels.shape[:3], 3))
