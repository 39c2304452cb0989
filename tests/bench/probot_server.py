"""The Probot server beside ours: installed by npm into a folder of its own, and started."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench import UnmeasuredError
from tests.bench.servers import SECRET, Running, free_port, started

_SOURCE: Final = Path(__file__).parent / "probot"
_FILES: Final = ("package.json", "package-lock.json", ".npmrc", "server.js")
_INSTALL: Final = "npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error"
_INSTALL_SECONDS: Final = 300


def installed() -> Path:
    """The folder with the server and its packages, installed once for each content of its files.

    Raises UnmeasuredError without node and npm, and where npm fails.
    """
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        raise UnmeasuredError(f"{' and '.join(missing)} not found: the Probot server needs them")
    target = folder()
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as made:
            _install(Path(made) / "new")
            (Path(made) / "new").rename(target)
    return target


def folder() -> Path:
    """Where it is, or will be."""
    content = b"".join((_SOURCE / name).read_bytes() for name in _FILES)
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retriage-bench"
    return root / f"probot-{hashlib.sha256(content).hexdigest()[:16]}"


def _install(target: Path) -> None:
    sys.stderr.write("bench: installing Probot and BullMQ\n")
    target.mkdir()
    for name in _FILES:
        shutil.copy(_SOURCE / name, target)
    try:
        ended = subprocess.run(
            _INSTALL.split(),
            cwd=target,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnmeasuredError(f"npm did not end within {_INSTALL_SECONDS} s") from None
    if ended.returncode:
        raise UnmeasuredError(f"npm ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")


def versions(at: Path) -> dict[str, str]:
    """What was installed, and what runs it."""
    asked = f"""
    const {{ version: probot }} = require("{at}/node_modules/probot/package.json");
    const {{ version: bullmq }} = require("{at}/node_modules/bullmq/package.json");
    console.log(JSON.stringify({{ probot, bullmq, node: process.version }}));
    """
    ended = subprocess.run(["node", "-e", asked], capture_output=True, text=True, check=True)
    told: dict[str, str] = json.loads(ended.stdout)
    return told


@contextmanager
def probot(
    at: Path, redis: Path, database: int, logs: Path, *, log_level: str
) -> Iterator[tuple[Running, int]]:
    """The server as in production, and its port. At ``info`` it writes a line for each request, at
    ``warn`` none."""
    port = free_port()
    environment = {
        "REDIS_SOCKET": str(redis),
        "REDIS_DATABASE": str(database),
        "WEBHOOK_SECRET": SECRET,
        "PORT": str(port),
        "LOG_LEVEL": log_level,
        "NODE_ENV": "production",
    }
    command = ["node", "server.js"]
    with started(f"probot-{log_level}", command, logs, environment, at) as running:
        running.listens(port)
        yield running, port
