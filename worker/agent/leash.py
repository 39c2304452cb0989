"""Holds the CLI: starts it through ``cli_wrapper``, and ends it for certain.

The pid alone would not do: it may be another's by the time it is used. The lock on the leash proves
that its process lives; the missing leash stops a process that has not got as far as taking it.
"""

import fcntl
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Final

from worker.agent import cli_wrapper

KILL_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.005


class Leash:
    """The hold on one CLI. ``folder`` is the session's own; ``launcher`` is what the SDK starts."""

    def __init__(self, folder: Path, cli: Path) -> None:
        self._path = folder / "leash"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self.launcher = folder / "cli"
        command = [
            *(sys.executable, "-I", "-S", cli_wrapper.__file__),
            *(str(cli), str(os.getpid()), str(self._path)),
        ]
        self.launcher.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        self.launcher.chmod(0o700)

    @property
    def alive(self) -> bool:
        """Whether anything of the CLI's process group lives."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return False

    @property
    def pid(self) -> int | None:
        """The leader of the CLI's process group, once it has taken the leash."""
        content = os.pread(self._file, 20, 0)
        return int(content) if content else None

    def kill(self) -> None:
        """End the process group, whatever state it is in; at most KILL_SECONDS, usually at once.

        Does not wait for anything but the kernel, so that no cancellation can come in between.
        """
        self._path.unlink(missing_ok=True)
        until = time.monotonic() + KILL_SECONDS
        while self.alive and time.monotonic() < until:
            if self.pid is not None:
                try:
                    os.killpg(self.pid, signal.SIGKILL)
                except ProcessLookupError:
                    return
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Let go of the file. After ``kill``."""
        os.close(self._file)
