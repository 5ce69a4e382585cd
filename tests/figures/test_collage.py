"""The collage shows the best elite of each block, where it belongs."""

import warnings

import numpy as np
import pytest

from dqd.figures import collage, draw


def arrays(cells: list[int], objective: list[float], shape=(4, 6)) -> dict[str, np.ndarray]:
    """Cells count measure 1 fastest; the solution of an elite is its index."""
    return {
        "cell": np.array(cells, np.int32),
        "objective": np.array(objective, np.float32),
        "solutions": np.arange(len(cells), dtype=np.float32)[:, None],
        "grid_lower": np.array([0.0, -6.0, 0.0])[: len(shape)],
        "grid_upper": np.array([8.0, 6.0, 1.0])[: len(shape)],
        "grid_shape": np.array(shape),
    }


def test_a_block_shows_its_best_elite():
    #            cell (0,0) (0,1) (1,2) (3,5) (2,3)
    found = arrays([0, 1, 8, 23, 15], [1.0, 3.0, 2.0, 5.0, 4.0])
    chosen = collage.blocks(found, columns=2, rows=2)
    # columns: cells 0-1 and 2-3 of measure 0; rows: cells 0-2 and 3-5 of measure 1, the lower ones first
    assert chosen.elite.tolist() == [[1, -1], [-1, 3]]
    assert chosen.extent == (0.0, 8.0, -6.0, 6.0)


def test_cropping_leaves_out_what_is_empty_at_the_borders():
    found = arrays([7, 8, 14], [1.0, 2.0, 3.0])  # (1,1) (1,2) (2,2)
    chosen = collage.blocks(found, columns=5, rows=5)
    assert chosen.elite.tolist() == [[0, -1], [1, 2]]
    assert chosen.extent == (2.0, 6.0, -4.0, 0.0)
    whole = collage.blocks(found, columns=4, rows=6, crop=False)
    assert whole.elite.shape == (6, 4)
    assert whole.elite[2, 2] == 2


def test_every_image_lies_in_its_block():
    found = arrays([0, 5, 18], [1.0, 2.0, 3.0])  # bottom left, top left, bottom right

    def render(solutions):
        return np.broadcast_to(
            (10 * (1 + solutions[:, 0, None, None, None])).astype(np.uint8), (len(solutions), 4, 4, 3)
        )

    chosen = collage.blocks(found, 2, 2)
    images = render(found["solutions"][chosen.elite[chosen.elite >= 0]])
    mosaic = collage.mosaic(chosen, images, pixels=8)
    assert mosaic.shape == (16, 16, 3)
    assert mosaic[12, 4].tolist() == [10] * 3
    assert mosaic[4, 4].tolist() == [20] * 3
    assert mosaic[12, 12].tolist() == [30] * 3
    assert mosaic[4, 12].tolist() == [int(draw.EMPTY[1:3], 16)] * 3


def test_two_pictures_have_room_for_a_title(tmp_path):
    found = arrays([0, 18], [1.0, 3.0])
    chosen = collage.blocks(found, 8, 8)
    images = np.zeros((2, 4, 4, 3), np.uint8)
    axes = draw.new_axes(*collage.size(chosen, images))
    words = "\n".join(3 * ["Faces: hair by age and glasses"])
    collage.draw(chosen, images, axes, labels=("age", "glasses"), title=words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as that axes have collapsed
        axes.figure.savefig(tmp_path / "collage.png")
    assert axes.get_window_extent().height / axes.figure.dpi > collage.INCHES / 2


def test_an_image_replaces_a_link_and_leaves_what_it_led_to(tmp_path):
    (tmp_path / "ours").write_text("precious")
    (tmp_path / "image.png").symlink_to(tmp_path / "ours")
    collage.save_image(np.zeros((4, 4, 3), np.uint8), str(tmp_path / "image.png"))
    assert (tmp_path / "ours").read_text() == "precious"
    assert (tmp_path / "image.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="the archive is empty"):
        collage.blocks(arrays([], []))
    with pytest.raises(ValueError, match="expected an archive with 2 measures, got 3"):
        collage.blocks(arrays([0], [1.0], shape=(2, 2, 2)))


def test_a_block_may_show_its_centre_or_whom_judges_trust():
    found = arrays([0, 7, 14, 2], [1.0, 2.0, 9.0, 4.0])  # (0,0) (1,1) (2,2) (0,2): one block of 3 x 3
    assert collage.blocks(found, 1, 1).elite.tolist() == [[2]]
    assert collage.blocks(found, 1, 1, pick="centre").elite.tolist() == [[1]]
    judged = found | {"field_disagreement": np.array([0.2, 0.9, 1.1, 0.0], np.float32)}
    assert collage.blocks(judged, 1, 1, pick="trusted").elite.tolist() == [[3]]
    nobody = found | {"field_disagreement": np.full(4, 5.0, np.float32)}
    assert collage.blocks(nobody, 1, 1, pick="trusted").elite.tolist() == [[-1]]


def test_images_that_are_not_square_keep_their_proportions():
    chosen = collage.blocks(arrays([0, 23], [1.0, 2.0]), 2, 2)
    images = np.full((2, 3, 6, 3), 7, np.uint8)
    assert collage.mosaic(chosen, images, pixels=8).shape == (8, 16, 3)
    many = collage.blocks(arrays([0, 63], [1.0, 2.0], shape=(8, 8)))
    width, height = collage.size(many, images)
    assert (width - 0.6) == pytest.approx(2 * (height - 0.6))
