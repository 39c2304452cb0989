"""The program's own processes: started as they are elsewhere, and gone when the demo is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cli.demo.folder import Folder

WARM_SECONDS = 1.2
"""For a process to finish what it is at; RQ takes a second signal only after one second."""

COLD_SECONDS = 3.0

# Becomes the command. 1 is PR_SET_PDEATHSIG, which outlives the exec; the demo may be gone already.
_TIED = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class Process:
    """One ``retriage …``, with its output in files.

    It leads a session of its own: Ctrl-C is for the demo, and whatever it starts can be told by
    the session. On Linux the kernel ends it with the demo, elsewhere the folder's janitor.
    """

    def __init__(
        self, name: str, arguments: Sequence[str], env: Mapping[str, str], folder: Folder
    ) -> None:
        self.name = name
        self.out = folder.path / "logs" / f"{name}.out"
        self.log = folder.path / "logs" / f"{name}.log"
        self._folder = folder
        command = [sys.executable, "-P", "-m", "cli", *arguments]
        tied = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *command]
        with self.out.open("wb") as out, self.log.open("wb") as log:
            self._process = subprocess.Popen(
                tied,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )
        folder.tie(self.pid)

    @property
    def pid(self) -> int:
        """Its id, which is its session's too."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """How it ended, None while it runs."""
        code = self._process.poll()
        if code is not None:
            self._folder.untie(self.pid)
        return code

    def lines(self, *words: str) -> list[str]:
        """What it said so far: the lines that hold all these words."""
        files = (self.out, self.log)
        texts = (each.read_text(encoding="utf-8", errors="replace") for each in files)
        lines = (line for text in texts for line in text.splitlines())
        return [line for line in lines if all(word in line for word in words)]

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._process.kill()
        self._process.wait()
        self._folder.untie(self.pid)


def stop(processes: Iterable[Process]) -> None:
    """End them all: first kindly, then at once."""
    left = list(processes)
    for number, seconds in (
        (signal.SIGTERM, WARM_SECONDS),
        (signal.SIGTERM, COLD_SECONDS),
        (signal.SIGKILL, COLD_SECONDS),
    ):
        for process in left:
            process.signal(number)
        end = time.monotonic() + seconds
        while left and time.monotonic() < end:
            left = [process for process in left if process.code is None]
            time.sleep(0.02)


def environment(settings: Mapping[str, str], ours: Iterable[str]) -> dict[str, str]:
    """This process's environment, without any of the names that are ``ours``, and the settings.

    The program is found where it was found this time, whatever folder the demo is run in.
    """
    names = {name.upper() for name in ours}
    kept = {name: value for name, value in os.environ.items() if name.upper() not in names}
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": path, **settings}
