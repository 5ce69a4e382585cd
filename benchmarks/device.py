"""What a result was measured on: the machine and the source, in words that mean something elsewhere."""

import datetime
import hashlib
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


def source_digest() -> str:
    """Names the source of dqd. Two figures with different digests come from different programs."""
    root = Path(__file__).parent.parent / "src" / "dqd"
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
