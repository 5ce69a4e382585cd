"""Runs in the tools that people watch them with: callbacks for `dqd.illuminate(callbacks=[...])`.

Each imports its package when it is made; `pip install 'dqd[tensorboard]'`, `[wandb]` or `[mlflow]` brings it.
"""

from dqd.loggers.mlflow import MLflow
from dqd.loggers.tensorboard import TensorBoard
from dqd.loggers.wandb import WandB

__all__ = ["MLflow", "TensorBoard", "WandB"]
