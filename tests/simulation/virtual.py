"""Time that passes only while everybody waits: a schedule of days is told in milliseconds.

The loop never sleeps: where nobody has anything to do now, its time jumps to whatever comes next.
So a story is the same each time, however busy the machine is.
"""

import asyncio
import itertools
import selectors
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 4, 12, tzinfo=UTC)
"""When every story begins."""


class StandstillError(Exception):
    """Everybody waits for something that nobody will do."""


class _Jumping(selectors.DefaultSelector):
    """Instead of waiting it says how long it would have waited."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now; nothing is waited for."""
        if timeout is None:
            raise StandstillError("nothing is due, and nobody has anything to do")
        if timeout > 0:
            self._jump(timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps. For one process: whoever waits for a socket is not waited
    for."""

    def __init__(self) -> None:
        self._elapsed = 0.0
        super().__init__(_Jumping(self.jump))

    def jump(self, seconds: float) -> None:
        """Let time pass at once, whoever would have had something to do meanwhile."""
        self._elapsed += seconds

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._elapsed


class VirtualClock:
    """The workers' clock port over the running loop's time, or as much ahead of it as it is
    moved."""

    def __init__(self) -> None:
        self._tokens = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.ahead = timedelta(0)

    def world_now(self) -> datetime:
        """The time that GitHub and the ledger's server go by: every story begins at START."""
        return START + timedelta(seconds=self._loop.time() - self._began)

    def now(self) -> datetime:
        """The wall-clock time of the workers."""
        return self.world_now() + self.ahead

    def monotonic(self) -> float:
        """Seconds."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait: the loop jumps there."""
        await asyncio.sleep(seconds)

    def token(self) -> str:
        """Words that are never given twice in a story."""
        return f"{next(self._tokens):032x}"
