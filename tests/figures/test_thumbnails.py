"""Small pictures show the best of what lies under a pixel."""

import numpy as np
from explorer.samples import archive

from dqd.figures import thumbnails


def test_a_thumbnail_is_small_and_shows_the_best_of_what_lies_under_a_pixel():
    small = thumbnails.thumbnail(archive((200, 90), filled=0.5).arrays())
    assert small.shape == (thumbnails.SIDE, thumbnails.SIDE)
    saved = archive((5, 3, 4), filled=0.4)
    picture = thumbnails.thumbnail(saved.arrays())
    across, up, _ = np.unravel_index(saved.cell[np.argmax(saved.objective)], (5, 3, 4))
    assert picture.shape == (3, 5)
    assert picture[up, across] == 254
