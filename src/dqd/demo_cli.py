"""What the command line has for its demo: the words, the pictures, and the folder that a next demo may replace."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dqd.result import Result

FILES = ("config.json", "steps", "heatmap.png", "poses.png", "collage.png")


def arm_words(result: Result, out: Path) -> str:
    disc = 25 * math.pi  # percent of the square around it
    return f"""
Found {len(result.elites):,} poses with {result.evaluations:,} evaluations and {result.gradients:,} gradients,
in {result.seconds:.1f} s and {result.compile_seconds:.1f} s of compilation.
They fill {result.coverage:.1f} % of the map; the disc that the hand can reach covers {disc:.1f} % of it.
An objective of 100 means that all angles are equal: the best pose has {result.best:.4f}, the mean is {result.mean:.4f}.

  heat map   {out / "heatmap.png"}
  poses      {out / "poses.png"}
  record     {out}{os.sep}

Next: dqd run --domain lp-sphere --algorithm cma-mega"""


def digits_words(result: Result, pictures: str, out: Path) -> str:
    return f"""
Found {len(result.elites):,} digits with {result.evaluations:,} evaluations and {result.gradients:,} gradients,
in {result.seconds:.1f} s and {result.compile_seconds:.1f} s of compilation.
They fill {result.coverage:.1f} % of the map. An objective of 100 means that the classifier is certain of a 3:
the best has {result.best:.2f}, the mean is {result.mean:.2f}.

{pictures}
  record         {out}{os.sep}

Next: dqd run --domain lsi-digits --objective digit-8 --measure width --measure slant"""


def draw_arm(result: Result, out: Path) -> None:
    """Heat map and poses."""
    from dqd import record
    from dqd.report import draw, panels

    arrays = record.read(out).arrays
    panel = panels.heatmap(arrays, x_label="hand, x", y_label="hand, y", value_label="objective (100: angles equal)")
    draw.save(draw.heatmap(panel, title=f"{len(result.elites):,} poses of an arm"), out / "heatmap.png")
    draw.save(draw.poses(panels.arm_poses(arrays, 4)), out / "poses.png")


def remove(out: Path) -> None:
    """An older demo."""
    shutil.rmtree(out / "steps", ignore_errors=True)
    for name in FILES:
        (out / name).unlink(missing_ok=True)


def check_folder(out: Path) -> None:
    """Refuse a folder that holds anything else."""
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"--out: {out} is not a folder")
    other = sorted(path.name for path in out.iterdir() if path.name not in FILES) if out.exists() else []
    if other:
        raise FileExistsError(
            f"--out: {out} holds files that are not a demo's ({', '.join(other[:3])}); choose another folder"
        )
