"""The digits of scikit-learn, 8 x 8 pixels, drawn at 28 x 28: as they are, or as somebody else might have written them.

A digit becomes the distance to its outline. So strokes are made thinner and bolder, leaned, stretched and bent without
being blurred. The ranges are about those of the maps of `lsi-digits`: what a map asks for, the generator has seen.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits

SIZE, FINE = 28, 56  # pixels of a drawing, and of the outline it is drawn from
FRAME = 10 / SIZE  # old pixels to a new one
SHARP = 3.0  # how quickly ink ends
JUDGED = 70  # of each digit are kept for the judge alone
BOLDNESS = (-0.4, 0.4, 1.2)  # of the judge's drawings, in pixels that strokes grow on each side


def load() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 8, 8) in [0, 1] and labels (Alpaydin & Kaynak 1998, UCI, CC BY 4.0)."""
    images, labels = load_digits(return_X_y=True)
    return images.reshape(-1, 8, 8) / 16, labels


def split(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which digits the networks may see, and which are the judge's, 70 of each, in their order."""
    order = np.random.default_rng(0).permutation(len(labels))
    judged = np.concatenate([order[labels[order] == digit][:JUDGED] for digit in range(10)])
    return np.setdiff1d(order, judged), judged


def outline(image: np.ndarray) -> np.ndarray:
    """Distance to the outline, (56, 56), positive inside, in pixels of a drawing; the frame has a margin."""
    step = 12 / FINE
    corner = 5.5 - step * (FINE - 1) / 2
    inside = ndimage.affine_transform(np.pad(image, 2), np.full(2, step), corner, (FINE, FINE), order=3) > 0.45
    distance = ndimage.distance_transform_edt(inside) - ndimage.distance_transform_edt(~inside)
    return distance * step / FRAME


def plainly(image: np.ndarray, bold: float) -> np.ndarray:
    """A digit as it is, its strokes `bold` pixels wider on each side."""
    return _inked(outline(image), np.eye(2), np.zeros((2, SIZE, SIZE)), bold)


def freely(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A digit with a lean, a width, a height, a boldness and bends of its own."""
    lean, turn, bold = random.uniform(-0.9, 0.9), 0.06 * random.normal(), random.uniform(-0.6, 1.6)
    wide, tall = np.exp(random.uniform(np.log([0.55, 0.72]), np.log([1.35, 1.3])))
    turned = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    bends = [ndimage.zoom(0.45 * random.normal(size=(4, 4)), SIZE / 4, order=3) for _ in range(2)]
    moved = np.stack(bends) + 0.3 * random.normal(size=(2, 1, 1))
    return _inked(outline(image), np.array([[tall, 0], [-lean * tall, wide]]) @ turned, moved, bold)


def _inked(distance: np.ndarray, shape: np.ndarray, moved: np.ndarray, bold: float) -> np.ndarray:
    """The ink (28, 28) in [0, 1] of an outline whose every point p, from the centre, comes to lie at shape @ p."""
    place = np.mgrid[:SIZE, :SIZE] + moved - (SIZE - 1) / 2
    back = np.linalg.inv(shape) * FRAME * FINE / 12
    there = np.tensordot(back, place, axes=1) + (FINE - 1) / 2
    scale = np.sqrt(abs(np.linalg.det(shape)))
    inside = ndimage.map_coordinates(distance, there, order=1, mode="nearest") * scale + bold
    return (1 / (1 + np.exp(-SHARP * inside))).astype(np.float32)
