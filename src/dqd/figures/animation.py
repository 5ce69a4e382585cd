"""Pictures one after the other: an animated GIF, or a film where ffmpeg is at hand."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from dqd.storage.durable import replace_file

FILMS = (".mp4", ".webm", ".mkv")


def check_name(path: Path) -> None:
    """Raise ValueError unless a file of that name can be made here."""
    ending = path.suffix.lower()
    if ending not in (".gif", *FILMS):
        raise ValueError(f"{path}: expected the name of an animation, such as {path.stem}.gif or {path.stem}.mp4")
    if ending in FILMS and not shutil.which("ffmpeg"):
        raise ValueError(f"{path}: a film needs ffmpeg, which is not installed; {path.stem}.gif does without")


def save(frames: Sequence[np.ndarray], path: Path, frames_per_second: float) -> None:
    """Frames (h, w, 3) of bytes, all of one size, as a file; a GIF begins anew at its end."""
    check_name(path)
    if path.suffix.lower() in FILMS:
        replace_file(path, lambda aside: _film(frames, aside, path.suffix, frames_per_second))
        return
    first, *others = map(Image.fromarray, frames)
    shown = {"append_images": others, "duration": round(1000 / frames_per_second), "loop": 0}
    replace_file(path, lambda aside: first.save(aside, "GIF", save_all=True, **shown))


def _film(frames: Sequence[np.ndarray], path: Path, ending: str, frames_per_second: float) -> None:
    height, width = frames[0].shape[:2]
    command = [
        *("ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"),
        *("-r", str(frames_per_second), "-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"),
        *("-f", {".mkv": "matroska"}.get(ending.lower(), ending.lower()[1:]), str(path)),
    ]
    content = b"".join(np.ascontiguousarray(frame).tobytes() for frame in frames)
    done = subprocess.run(command, input=content, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"ffmpeg could not make the film: {done.stderr.decode(errors='replace').strip()}")


def there_and_back(start: np.ndarray, end: np.ndarray, frames: int) -> np.ndarray:
    """Solutions on the straight way from one to another and back, (2 * frames - 2, n); the ends once each."""
    way = np.linspace(0, 1, frames)[:, None]
    there = ((1 - way) * start + way * end).astype(start.dtype)
    return np.concatenate([there, there[-2:0:-1]])
