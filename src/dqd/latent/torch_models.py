"""Generators and scorers written in PyTorch, for a `LatentDomain` like any other.

    generator = TorchGenerator(decoder, latent_shape=32)
    scorer = TorchScorer(network, ("smile", "age"))
    domain = LatentDomain(Identity(32, (-2, 2)), generator, (scorer,), "smile", ("age",))

Such a domain is evaluated outside of the compiled search. Spaces stay JAX's; parts of both kinds may be mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dqd.interop.torch_parts import TorchPart

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, init=False, eq=False)
class TorchGenerator:
    """A module, or a function, that makes images (b, c, h, w) of latents (b, *latent_shape), c being 1 or 3.

    It must always make the same image of the same latent: put modules into eval(), and let noise be fixed.

    Args:
        function: what makes images.
        latent_shape: of one latent; a number for a vector.
        values: of black and white in its images, such as (0, 1).
        device: where it computes; by default where its parameters lie.
    """

    latent_shape: tuple[int, ...]
    values: tuple[float, float]
    weights: str  # a digest: with another model a run is another run
    part: TorchPart = field(compare=False, repr=False)

    def __init__(
        self,
        function: Callable[..., Any],
        latent_shape: int | Sequence[int],
        *,
        values: tuple[float, float] = (-1.0, 1.0),
        device: Any = None,
    ) -> None:
        low, high = values
        if not low < high:
            raise ValueError(f"TorchGenerator: values: expected those of black and white, such as (0, 1), got {values}")
        shape = (latent_shape,) if isinstance(latent_shape, int) else tuple(latent_shape)
        part = TorchPart(function, device, "generator")
        for name, value in (("latent_shape", shape), ("values", (float(low), float(high))), ("part", part)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "weights", part.weights)

    def images(self, latents: Any, key: Any = None) -> Tensor:
        """Tensors (b, c, h, w) in about [-1, 1]."""
        return self._ranged(self.part.values(latents))

    def linearised(self, latents: Any) -> tuple[Any, Callable[[Any], Any]]:
        images, pull_back = self.part.linearised(latents)
        low, high = self.values
        return self._ranged(images), lambda cotangent: pull_back(2 / (high - low) * cotangent)

    def _ranged(self, images: Any) -> Any:
        low, high = self.values
        if images.ndim != 4 or images.shape[1] not in (1, 3):
            raise ValueError(f"generator: expected images (b, 1 or 3, height, width), got {tuple(images.shape)}")
        return images if self.values == (-1.0, 1.0) else 2 * (images - low) / (high - low) - 1


@dataclass(frozen=True, init=False, eq=False)
class TorchScorer:
    """A module, or a function, that makes scores (b, len(names)) of images (b, c, h, w) in [-1, 1]; (b,) for one name.

    Args:
        function: what judges images.
        names: of its scores.
        device: where it computes; by default where its parameters lie.
    """

    names: tuple[str, ...]
    weights: str
    part: TorchPart = field(compare=False, repr=False)

    def __init__(self, function: Callable[..., Any], names: str | Sequence[str], *, device: Any = None) -> None:
        part = TorchPart(function, device, "scorer")
        named = (names,) if isinstance(names, str) else tuple(names)
        for name, value in (("names", named), ("weights", part.weights), ("part", part)):
            object.__setattr__(self, name, value)

    def scores(self, images: Any) -> Tensor:
        """A tensor (b, len(names))."""
        return self._named(self.part.values(images))

    def linearised(self, images: Any) -> tuple[Any, Callable[[Any], Any]]:
        scores, pull_back = self.part.linearised(images)
        return self._named(scores), lambda cotangent: pull_back(cotangent.reshape(tuple(scores.shape)))

    def _named(self, scores: Any) -> Any:
        scores = scores[:, None] if scores.ndim == 1 else scores
        if scores.ndim != 2 or scores.shape[1] != len(self.names):
            raise ValueError(
                f"scorer: expected scores (b, {len(self.names)}), one for each of {', '.join(self.names)}, "
                f"got {tuple(scores.shape)}"
            )
        return scores


def check_part(chosen: str, part: Any) -> None:
    """Raise TypeError unless it is a part of a domain that can be traced, or one of those above."""
    import jax

    if not is_foreign(part) and jax.tree_util.all_leaves([part]):
        raise TypeError(
            f"{chosen}: expected a pytree, of a class under @dqd.types.pytree, or a Torch{chosen.capitalize()} around "
            f"a model of PyTorch, got {type(part).__name__}"
        )


def is_foreign(part: Any) -> bool:
    """Whether JAX cannot trace it."""
    return isinstance(part, TorchGenerator | TorchScorer)
