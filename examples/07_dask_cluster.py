"""Evaluations on a Dask cluster whose workers are killed while it runs. The archive is that of an undisturbed run.

The problem stands for a simulator: a plain function of NumPy arrays that JAX knows nothing of. Each of the two workers
is killed (SIGKILL) again and again; their nannies replace them, and Dask repeats what was lost.
"""

import hashlib
import os
import signal
import sys
import threading
import time

import numpy as np

import dqd

try:
    import dask
    from distributed import Client, LocalCluster
except ImportError:
    sys.exit("This example needs Dask: pip install 'dqd[cluster]'")

KILLS, ITERATIONS = 4, 60


def simulate(solutions):  # (b, 10) -> objective (b,), measures (b, 2)
    time.sleep(0.005)
    smooth = np.cumsum(solutions, axis=1)
    return -np.sum(solutions**2, axis=1), smooth[:, [4, 9]]


def search(**options):
    return dqd.illuminate(
        dqd.evaluator(simulate),
        dqd.cma_me(sigma=0.5),
        dqd.Grid(lower=[-6, -6], upper=[6, 6], shape=[30, 30]),
        x0=np.zeros(10),
        progress=False,
        **options,
    )


def digest(result):
    elites = result.elites
    every = (elites.cell, elites.solutions, elites.objective, elites.measures)
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in every)).hexdigest()


def kill_workers(cluster, iterations, killed):
    while len(killed) < KILLS:
        time.sleep(0.01)
        alive = [nanny.pid for nanny in cluster.workers.values() if nanny.pid not in (None, *killed)]
        if alive and len(iterations) >= 10 * (len(killed) + 1):
            os.kill(alive[0], signal.SIGKILL)
            killed.append(alive[0])


if __name__ == "__main__":  # worker processes import this file
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})  # never give a killed worker up
    iterations, killed = [], []
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs="CRITICAL") as cluster,
        Client(cluster) as client,
    ):
        threading.Thread(target=kill_workers, args=(cluster, iterations, killed), daemon=True).start()
        disturbed = search(iterations=ITERATIONS, where=client, until=iterations.append)  # None: go on

    serial = search(iterations=ITERATIONS)
    print(f"{len(killed)} workers killed, {serial.evaluations} evaluations, coverage {serial.coverage:.1f} %")
    print(f"serial {digest(serial)}")
    print(f"Dask   {digest(disturbed)}")
