"""What a logger writes is read back by the readers of its own package."""

import sys

import jax.numpy as jnp
import pytest

import dqd

GRID = dqd.Grid(lower=[-2, -2], upper=[2, 2], shape=[20, 20])
METRICS = {"qd_score", "coverage", "best", "mean", "seconds", "evaluations"}


def score(x):
    return -jnp.sum(x**2), x[:2]


def run(logger):
    return dqd.illuminate(
        score, dqd.cma_mega(0.5), GRID, x0=jnp.zeros(5), iterations=20, progress=False, callbacks=[logger]
    )


def needs(package):
    return pytest.importorskip(package, reason=f"{package} is not installed: this logger is NOT TESTED here")


@pytest.mark.filterwarnings("error:callbacks:UserWarning")
def test_tensorboard(tmp_path):
    needs("tensorboardX")
    needs("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    result = run(dqd.loggers.TensorBoard(tmp_path))
    read = EventAccumulator(str(tmp_path)).Reload()
    assert set(read.Tags()["scalars"]) == {f"dqd/{name}" for name in METRICS}
    last = read.Scalars("dqd/coverage")[-1]
    assert (last.step, last.value) == (20, pytest.approx(result.coverage))
    assert b"Arborescence" in read.Tensors("settings/text_summary")[0].tensor_proto.string_val[0]


def wandb_records(data):
    """Messages of a .wandb file: blocks of 32 KiB of pieces with checksum, length and kind, as LevelDB has them."""
    assert data[:4] == b":W&B"
    position, message = 7, b""
    while position + 7 <= len(data):
        room = 32768 - position % 32768
        length, kind = int.from_bytes(data[position + 4 : position + 6], "little"), data[position + 6]
        if room < 7 or kind == 0:
            position += room
            continue
        if position + 7 + length > len(data):  # not all of it is there yet
            return
        message += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield message
            message = b""


@pytest.mark.filterwarnings("error:callbacks:UserWarning")
def test_wandb_offline(tmp_path, monkeypatch):
    wandb = needs("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    from wandb.proto.wandb_internal_pb2 import Record

    result = run(dqd.loggers.WandB(project="dqd-test", dir=str(tmp_path)))
    wandb.teardown()  # its own process writes the file, and may still do so when a run has ended
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    entries = [Record.FromString(data) for data in wandb_records(file.read_bytes())]
    rows = [{item.key or item.nested_key[0]: item.value_json for item in entry.history.item} for entry in entries]
    configs = [item.key for entry in entries for item in entry.config.update]
    last = [row for row in rows if "coverage" in row][-1]
    assert float(last["coverage"]) == pytest.approx(result.coverage)
    assert set(last) >= METRICS
    assert int(last["_step"]) == 20
    assert "emitter" in configs


@pytest.mark.filterwarnings("error:callbacks:UserWarning")
def test_mlflow(tmp_path, monkeypatch):
    mlflow = needs("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file://{tmp_path}"
    logger = dqd.loggers.MLflow(uri, experiment="test")
    result = run(logger)
    client = mlflow.MlflowClient(uri)
    (found,) = client.search_runs([client.get_experiment_by_name("test").experiment_id])
    assert set(found.data.metrics) == METRICS
    assert found.info.status == "FINISHED"
    last = client.get_metric_history(found.info.run_id, "coverage")[-1]
    assert (last.step, last.value) == (20, pytest.approx(result.coverage))
    assert [each.path for each in client.list_artifacts(found.info.run_id)] == ["settings.json"]


@pytest.mark.parametrize(
    ("name", "package"), [("TensorBoard", "tensorboardX"), ("WandB", "wandb"), ("MLflow", "mlflow")]
)
def test_a_package_that_is_missing_is_named(name, package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{name} needs {package}: pip install 'dqd\[{name.lower()}\]'"):
        getattr(dqd.loggers, name)(str(tmp_path))


def test_a_database_of_mlflow_needs_all_of_it(monkeypatch, tmp_path):
    needs("mlflow")
    monkeypatch.setitem(sys.modules, "alembic", None)
    with pytest.raises(ImportError, match="pip install mlflow; or give the address of a server"):
        dqd.loggers.MLflow(f"sqlite:///{tmp_path}/runs.db")


def test_they_load_nothing_before_they_are_made():
    from whole.test_imports import loaded_by

    loaded = loaded_by("from dqd import loggers; loggers.TensorBoard")
    assert not {"tensorboardX", "wandb", "mlflow", "jax"} & loaded
