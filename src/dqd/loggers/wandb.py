"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dqd.loggers.needed import needed


class WandB:
    """Metrics and settings in a run of Weights & Biases; offline unless `mode="online"`.

    Args:
        project: its name.
        mode: "offline" writes below `dir`, for `wandb sync` later; "online" sends at once; "disabled" does nothing.
        options: all others go to `wandb.init`, such as `dir`, `name` or `group`.
    """

    def __init__(
        self, project: str = "dqd", mode: Literal["offline", "online", "disabled"] = "offline", **options: Any
    ) -> None:
        with needed("dqd.loggers.WandB", "'dqd[wandb]'"):
            import wandb

        self.run = wandb.init(project=project, mode=mode, **options)

    def on_start(self, settings: Mapping[str, Any]) -> None:
        self.run.config.update(dict(settings))

    def on_chunk(self, now: Mapping[str, float]) -> None:
        self.run.log({name: value for name, value in now.items() if name != "iteration"}, step=int(now["iteration"]))

    def on_end(self, result: Any) -> None:
        self.run.finish()
