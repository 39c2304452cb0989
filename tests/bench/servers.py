"""Processes that a measurement starts, and what the system says of them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench import UnmeasuredError

PATIENCE_SECONDS: Final = 30
"""For a process to say that it is ready, and for it to end."""

SECRET: Final = "a webhook's secret"  # of nothing
MARKER_KEYS: Final = "k1:" + "5a" * 32


@dataclass(frozen=True, slots=True)
class Running:
    """A process and where its output goes: a file, so that nobody has to read along."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def port(self) -> int:
        """Where it listens: the number that ends its first line. Raises UnmeasuredError where it
        ends before, or is silent."""
        self.says("\n")
        return int(self.log.read_text(errors="replace").splitlines()[0].rpartition(":")[2])

    def listens(self, port: int) -> None:
        """Wait until it takes connections there. Raises UnmeasuredError where it does not."""
        self._wait(lambda: _accepts(port))

    def says(self, word: str) -> None:
        """Wait until it has said it. Raises UnmeasuredError where it does not."""
        self._wait(lambda: word in self._said())

    def _wait(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not true():
            if self.process.poll() is not None or time.monotonic() > end:
                raise UnmeasuredError(f"{self.log.stem} did not come up: {self._said()[-2000:]}")
            time.sleep(0.02)

    def _said(self) -> str:
        return self.log.read_text(errors="replace")

    def cpu_seconds(self) -> float | None:
        """Processor time until now, its threads included; None where the system does not say."""
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return None
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port of loopback that nobody has: for who must be told one."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def started(
    name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str], at: Path
) -> Iterator[Running]:
    """A process in the folder ``at`` for as long as the block lasts; its output in ``folder``."""
    log = folder / f"{name}.log"
    given = {kept: os.environ[kept] for kept in ("PATH", "HOME", "LANG") if kept in os.environ}
    with (
        log.open("wb") as written,
        subprocess.Popen(
            command, cwd=at, env={**given, **environment}, stdout=written, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            yield Running(process, log)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def web(url: str, folder: Path) -> Iterator[Running]:
    """The receiver, on any port of loopback."""
    environment = {
        "REDIS_URL": url,
        "WEBHOOK_SECRET": SECRET,
        "MARKER_KEYS": MARKER_KEYS,
        "HOST": "127.0.0.1",
        "PORT": "0",
    }
    command = [sys.executable, "-m", "bot", "web"]
    with started("web", command, folder, environment, Path.cwd()) as running:
        yield running
