"""The machine a result was measured on, in words that mean something elsewhere. Standard library only."""

import datetime
import os
import platform
from pathlib import Path


def describe_device() -> dict:
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load_at_start": os.getloadavg()[0],  # above about 0.2 somebody else was using the machine
    }


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
