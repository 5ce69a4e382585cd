"""Whether a run is running. Nothing is locked and nothing written: looking at a run never disturbs it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dqd.safe import load_json
from dqd.storage import record

PROC_LOCKS = Path("/proc/locks")
SILENT = 600.0  # seconds after which a run on another machine counts as ended


def is_running(folder: Path) -> bool:
    """Whether a process holds the run's lock; for one on another machine, whether it wrote lately."""
    lock = folder / record.LOCK
    try:
        holder = load_json(lock)
        if not isinstance(holder, dict):
            return False
        if holder.get("host") != socket.gethostname():
            return time.time() - changed(folder) < SILENT
        return _is_locked(lock) if PROC_LOCKS.is_file() else _is_alive(holder.get("pid"))
    except (OSError, ValueError):
        return False


def ended(config: Mapping[str, Any]) -> str:
    """How a run that is not running ended: finished, or stopped before its time."""
    summary = config.get("summary", {})
    done, planned = summary.get("iterations"), config.get("iterations")
    early = isinstance(done, int) and isinstance(planned, int) and done < planned
    return "stopped" if early and summary.get("stopped") != "until" else "finished"


def changed(path: Path) -> float:
    """When a run or file last changed, in seconds since 1970."""
    parts = [path, path / record.STEPS, path / record.VIEWS, path / record.CONFIG]
    return max((part.stat().st_mtime for part in parts if part.exists()), default=0.0)


def _is_locked(lock: Path) -> bool:
    """The kernel's list of locks names files by device and inode."""
    status = lock.stat()
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any(file in line.split() for line in PROC_LOCKS.read_text().splitlines())


def _is_alive(process: Any) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, TypeError, OverflowError):
        return False
    return True
