"""Offline and silent: searching, saving, loading, exporting and drawing open no connection."""

import json
import os
import subprocess
import sys

CHILD = """
import json, os, sys
from pathlib import Path
seen = []

def hook(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
                 "socket.gethostbyname", "socket.gethostbyaddr", "urllib.Request", "http.client.connect"):
        seen.append([event, repr(arguments)])

sys.addaudithook(hook)
from typer.testing import CliRunner
import dqd
from dqd.cli import app

out = Path(sys.argv[1])
small = ["--n", "8", "--resolution", "10", "--iterations", "20", "--quiet"]
for command in (
    ["demo", "--out", str(out / "demo"), "--iterations", "5"],
    ["run", "--domain", "arm", "--algorithm", "map-elites", *small, "--out", str(out / "run")],
    ["export", str(out / "run"), "--to", str(out / "elites.parquet")],
    ["export", str(out / "elites.parquet"), "--to", str(out / "elites.csv")],
):
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
archive = dqd.load(out / "elites.csv")
archive.to_pandas()
archive.plot(out / "map.png")
dqd.Archive.from_numpy(archive)
found = len(seen)
open_sockets = []
for name in os.listdir("/proc/self/fd"):
    try:
        if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
            open_sockets.append(name)
    except OSError:
        pass  # the listing itself
import socket
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1)
except OSError:
    pass
print(json.dumps({"seen": seen[:found], "sockets": open_sockets, "trap": len(seen) - found}))
"""


def test_a_run_and_its_files_open_no_connection(tmp_path):
    environment = {**os.environ, "DQD_NO_CACHE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["seen"] == []
    assert found["sockets"] == []
    assert found["trap"] > 0  # a connection would have been noticed
