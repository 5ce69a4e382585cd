"""MLflow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from dqd.loggers.needed import needed


class MLflow:
    """Metrics and settings in a run of MLflow.

    Args:
        tracking_uri: where, such as "http://server:5000"; by default what MLflow is set to. That may be a database in a
            file, for which the client that `dqd[mlflow]` installs is not enough: `pip install mlflow`.
        experiment: its name; made if there is none.
    """

    def __init__(self, tracking_uri: str | None = None, experiment: str = "dqd") -> None:
        with needed("dqd.loggers.MLflow", "'dqd[mlflow]'"):
            from mlflow import MlflowClient
        with needed("MLflow's own database", "mlflow; or give the address of a server, 'http://server:5000'"):
            self.client = MlflowClient(tracking_uri)
            there = self.client.get_experiment_by_name(experiment)
        number = self.client.create_experiment(experiment) if there is None else there.experiment_id
        self.run_id = self.client.create_run(number).info.run_id

    def on_start(self, settings: Mapping[str, Any]) -> None:
        self.client.log_dict(self.run_id, dict(settings), "settings.json")

    def on_chunk(self, now: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        moment, step = int(time.time() * 1000), int(now["iteration"])
        metrics = [Metric(name, value, moment, step) for name, value in now.items() if name != "iteration"]
        self.client.log_batch(self.run_id, metrics=metrics)

    def on_end(self, result: Any) -> None:
        self.client.set_terminated(
            self.run_id, "KILLED" if result.stopped in ("interrupted", "terminated") else "FINISHED"
        )
