"""What is said where a Dask cluster is not what it should be. tests/reliability/test_workers.py has real ones."""

import subprocess
import sys

import dask
import distributed
import pytest

from dqd.workers.dask import Cluster, connect
from dqd.workers.engine import ClusterError, WorkerDiedError


class Client:
    """What of a client is used, with no cluster behind it."""

    status = "running"

    def __init__(self, **answers):
        self.answers = answers

    def run(self, *arguments, **options):
        return self.answers.get("run", {})

    def nthreads(self):
        return {}

    def as_current(self):
        return pytest.MonkeyPatch.context()  # any context

    def processing(self):
        return {"tcp://one": ("busy", "queued"), "tcp://two": ("foreign",)}

    def cancel(self, tasks, force):
        self.answers["cancelled"] = [task.key for task in tasks]

    def restart_workers(self, workers):
        self.answers["restarted"] = workers
        if "restart" in self.answers:
            raise self.answers["restart"]


class Task:
    def __init__(self, key="task", error=None):
        self.key, self.error = key, error

    def result(self):
        raise self.error


def test_workers_without_dqd_are_named():
    answers = {"tcp://one": None, "tcp://two": Exception("ModuleNotFoundError(\"No module named 'dqd'\")")}
    with pytest.raises(ClusterError, match=r"the worker tcp://two cannot import dqd.*same version"):
        Cluster(Client(run=answers), owned=False)


def test_a_worker_that_is_just_dying_is_passed_over():
    Cluster(Client(run={"tcp://one": OSError("Timed out")}), owned=False)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (TimeoutError(), None, ""),
        (RuntimeError("closed"), ClusterError, r"does not answer any more \(RuntimeError: closed\)"),
    ],
    ids=["nobody there", "gone"],
)
def test_a_cluster_without_workers_is_waited_for_and_a_lost_one_is_an_error(error, kind, words, monkeypatch):
    def wait(*arguments, **options):
        raise error

    monkeypatch.setattr(distributed, "wait", wait)
    cluster = Cluster(Client(), owned=False)
    if kind is None:
        with pytest.warns(UserWarning, match="the Dask cluster has no workers; waiting for some to join"):
            assert cluster.wait([Task()], 0.1) == []
    else:
        with pytest.raises(kind, match=words):
            cluster.wait([Task()], 0.1)


def test_what_a_task_raised_is_told_from_the_end_of_its_workers_and_of_the_cluster():
    cluster = Cluster(Client(), owned=False)
    killed = distributed.KilledWorker("task", None, 1)
    with pytest.raises(WorkerDiedError, match="its workers died"):
        cluster.result(Task(error=killed))
    with pytest.raises(ArithmeticError, match="diverged"):
        cluster.result(Task(error=ArithmeticError("diverged")))
    cluster.client.status = "closed"
    with pytest.raises(ClusterError, match="does not answer any more"):
        cluster.result(Task(error=ArithmeticError("diverged")))


def test_only_the_workers_of_ones_own_tasks_are_restarted():
    client = Client()
    waiting = Task("waiting")
    taken = Cluster(client, owned=False).stop([Task("busy"), waiting, Task("queued")])
    assert [task.key for task in taken] == client.answers["cancelled"] == ["busy", "queued"]
    assert client.answers["restarted"] == ["tcp://one"]


def test_a_worker_without_a_nanny_cannot_be_restarted():
    cluster = Cluster(Client(restart=ValueError("no nanny")), owned=False)
    with pytest.raises(ClusterError, match=r"an evaluation hangs.*no nanny.*with a nanny"):
        cluster.stop([Task("busy")])


def test_an_encrypted_cluster_without_a_certificate_is_explained():
    with pytest.raises(ConnectionError, match=r"no certificate; set one in Dask's configuration"):
        connect("tls://127.0.0.1:1")


def test_a_certificate_that_cannot_be_read_is_named_as_the_cause(tmp_path):
    files = {name: str(tmp_path / "absent.pem") for name in ("cert", "key")}
    with (
        dask.config.set({"distributed.comm.tls.ca-file": files["cert"], "distributed.comm.tls.client": files}),
        pytest.raises(ConnectionError, match=r"cannot be read \(.*No such file.*\); set one in Dask's configuration"),
    ):
        connect("tls://127.0.0.1:1")


def test_a_program_without_a_certificate_ends():
    script = "from dqd.workers.dask import connect; connect('tls://127.0.0.1:1')"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "has no certificate" in answer.stderr


def test_without_dask_the_package_to_install_is_named():
    script = "import sys; sys.modules['distributed'] = None; import dqd.workers.dask"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'dqd[cluster]'" in answer.stderr
