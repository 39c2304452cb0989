"""A temporary folder that goes with the demo, and with it every process that was named to it.

A janitor, a process of its own, waits for the end of a pipe. While the demo lives nothing comes;
when the demo is gone, however it went, the janitor ends what was started and removes the folder.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen

PREFIX = "retriage-demo-"

# Reads "+pid" and "-pid"; a "." says that there is nothing left to do.
_JANITOR = """
import os, shutil, signal, sys, time
started = set()
for line in sys.stdin:
    if line == ".\\n":
        sys.exit()
    pid = int(line)
    (started.add if pid > 0 else started.discard)(abs(pid))
for pid in started:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
for _ in range(50):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)
"""


class Folder:
    """``path`` is the demo's own, mode 0700. Processes that are tied end with the demo."""

    def __init__(self, path: Path, janitor: "Popen[str]") -> None:
        self.path = path
        self._janitor = janitor

    def tie(self, pid: int) -> None:
        """End this process when the demo is gone."""
        self._tell(f"{pid}\n")

    def untie(self, pid: int) -> None:
        """It has ended: its number may soon be another's."""
        self._tell(f"-{pid}\n")

    def remove(self) -> None:
        """Everything is over."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._tell(".\n")
        self._janitor.communicate()

    def _tell(self, line: str) -> None:
        if self._janitor.stdin is not None:
            with suppress(BrokenPipeError):  # somebody ended it: then the kernel alone is left
                self._janitor.stdin.write(line)
                self._janitor.stdin.flush()


@contextmanager
def temporary_folder() -> Iterator[Folder]:
    """A new one, for as long as the block lasts."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    janitor = Popen(
        [sys.executable, "-I", "-S", "-c", _JANITOR, str(path)],
        stdin=PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C is not for it
    )
    folder = Folder(path, janitor)
    try:
        yield folder
    finally:
        folder.remove()
