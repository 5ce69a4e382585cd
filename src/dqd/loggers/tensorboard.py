"""TensorBoard, by tensorboardX."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from dqd.loggers.needed import needed


class TensorBoard:
    """Metrics as curves, settings as text, in event files below a folder: `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        with needed("dqd.loggers.TensorBoard", "'dqd[tensorboard]'"):
            from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(os.fspath(folder))

    def on_start(self, settings: Mapping[str, Any]) -> None:
        self.writer.add_text("settings", f"```\n{json.dumps(settings, indent=2)}\n```")

    def on_chunk(self, now: Mapping[str, float]) -> None:
        for name, value in now.items():
            if name != "iteration":
                self.writer.add_scalar(f"dqd/{name}", value, int(now["iteration"]))
        self.writer.flush()

    def on_end(self, result: Any) -> None:
        self.writer.close()
