"""What the boundary meets: a process killed or stopped, a server that goes, a late request.

What is only lost on the way is lost by the proxy, and needs nothing of this.
"""

import asyncio
import contextlib
import os
import signal
import time

from tests.processes.faults import Kind, Planned
from tests.processes.fleet import REPOSITORY
from tests.processes.nursery import Child
from tests.processes.orphans import horses_of
from tests.processes.stage import BOUNDS, Stage

PAUSE_SECONDS = 0.15

PATIENCE_SECONDS = 240.0
"""For each thing that is waited for: far more than it takes on a machine that is slow and busy."""

STOPPED_SECONDS = 1 + sum(
    float(BOUNDS[f"RETRIAGE_{name}_SECONDS"]) for name in ("LEASE", "LOCK_DELAY")
)
"""For how long at least a worker is stopped: past its lease and the lock delay."""


class Blow:
    """The fault of one round. ``struck`` is set once it has struck, ``stopped`` are those that wait
    for their SIGCONT."""

    def __init__(self, planned: Planned, on: Stage) -> None:
        self.struck = asyncio.Event()
        self.stopped: list[Child] = []
        self._planned = planned
        self._on = on
        self._at = 0.0

    @property
    def is_past(self) -> bool:
        """Whether the lease and the lock delay of what is stopped must be over."""
        return time.monotonic() - self._at > STOPPED_SECONDS

    async def strike(self) -> None:
        """The deed at the boundary."""
        self._at = time.monotonic()
        match self._planned.kind:
            case Kind.WORKER | Kind.HORSE | Kind.BOTH:
                self._kill()
            case Kind.SERVER | Kind.EMPTIED | Kind.SET_BACK:
                await self._on.keeper.crash(self._on.redis)
            case Kind.PROMOTED:
                await self._on.keeper.promote(self._on.redis)
            case Kind.STOPPED:
                self._halt()
            case Kind.LATE:
                self._halt()
                self.struck.set()
                await self._hold_back()
            case _:
                pass
        self.struck.set()

    def resume(self) -> None:
        """SIGCONT."""
        for worker in self.stopped:
            for horse in horses_of(worker.pid):
                _signal(horse, signal.SIGCONT)
            worker.kill(signal.SIGCONT)
        self.stopped.clear()

    def _kill(self) -> None:
        for worker in self._victims():
            horses = horses_of(worker.pid)
            if self._planned.kind is not Kind.HORSE:
                worker.kill()
            if self._planned.kind is not Kind.WORKER:
                for horse in horses:
                    _signal(horse, signal.SIGKILL)

    def _halt(self) -> None:
        """SIGSTOP: the worker first, so that it does not miss its work horse."""
        for worker in self._victims():
            worker.kill(signal.SIGSTOP)
            self.stopped.append(worker)
            for horse in horses_of(worker.pid):
                _signal(horse, signal.SIGSTOP)

    def _victims(self) -> list[Child]:
        """Who works at this moment."""
        return self._on.busy() or self._on.workers

    async def _hold_back(self) -> None:
        """Hold the request until another one like it has landed. Raises TimeoutError."""
        issues = f"/repos/{REPOSITORY}/issues"
        comments = f"{issues}/{self._planned.occurrence}/comments"
        path = comments if self._planned.boundary.name == "comment" else issues
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._is_posted(path):
            if time.monotonic() > until:
                raise TimeoutError(f"nothing was posted to {path}")
            await asyncio.sleep(PAUSE_SECONDS)

    def _is_posted(self, path: str) -> bool:
        posted = self._on.github.requests("POST", applied=True)
        return any(entry.canonical == path for entry in posted)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
