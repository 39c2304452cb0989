"""What the demo sees: runs in the ledger, requests and writes in GitHub's log, copies in its state.

Nothing here trusts what the program says of itself but the status of its runs.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from cli.demo.stage import BOT, Stage
from cli.terminal import clean
from ledger.ledger import Ledger
from sandbox.github.requests import Logged
from sandbox.github.seen import SeenComment, SeenIssue
from triage.contract import RunRecord, Status

T = TypeVar("T")

PATIENCE_SECONDS = 45.0
"""For what should come within a few: the machine may be busy."""

SHORTEST_PAUSE_SECONDS = 0.03
LONGEST_PAUSE_SECONDS = 0.5

_LAST_LINES = 6
_MARKED = re.compile(r"^<!-- retriage .*\beffect=([0-9a-f]{64})\b.* -->")


class StepError(Exception):
    """A step did not show what it should. ``step`` is its name, once that is known."""

    step = ""


def wanted(holds: object, why: str) -> None:
    """Raises StepError, with what was seen instead, unless it holds."""
    if not holds:
        raise StepError(why)


@dataclass(frozen=True, slots=True)
class Watch:
    """The eyes on a stage."""

    stage: Stage
    ledger: Ledger

    async def until(
        self,
        look: Callable[[], Awaitable[T | None]],
        what: str,
        *,
        seconds: float = PATIENCE_SECONDS,
    ) -> T:
        """Look until there is something. Raises StepError when a process ends or time is over."""
        end, pause = time.monotonic() + seconds, SHORTEST_PAUSE_SECONDS
        while (found := await look()) is None:
            dead = self.stage.dead()
            if dead is not None:
                raise StepError(f"the {dead.name} ended with {dead.code}: {_end_of(dead.lines())}")
            if time.monotonic() >= end:
                raise StepError(f"{what} did not come within {seconds:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 1.1, LONGEST_PAUSE_SECONDS)
        return found

    async def told(self, process: str, *words: str, seconds: float = PATIENCE_SECONDS) -> str:
        """The first log line with these words, of a process whose name starts so."""

        async def look() -> str | None:
            logs = (each.lines(*words) for each in self.stage.named(process))
            return next((line for lines in logs for line in lines), None)

        return await self.until(look, f"{' '.join(words)} in a log of {process}", seconds=seconds)

    async def run(self, repository: str, window: str = "") -> RunRecord | None:
        """The newest run of a repository, whose window starts so."""
        runs = await self.ledger.runs.listed(repository=repository)
        return next((run for run in runs if run.key.window.startswith(window)), None)

    async def settled(
        self, repository: str, window: str = "", *, seconds: float = PATIENCE_SECONDS
    ) -> RunRecord:
        """The same, once no worker is at it."""

        async def look() -> RunRecord | None:
            run = await self.run(repository, window)
            busy = run is None or run.status in (Status.QUEUED, Status.RUNNING, Status.WAITING)
            return None if busy else run

        return await self.until(look, f"the end of a run of {repository}", seconds=seconds)

    async def incidents(self) -> int:
        """As the ledger counted them."""
        return sum((await self.ledger.counters.snapshot()).incidents.values())

    def mark(self) -> int:
        """The number of the last request so far."""
        log = self.stage.github.requests()
        return log[-1].n if log else 0

    def requests(
        self, repository: str = "", *, after: int = 0, until: int | None = None
    ) -> list[Logged]:
        """GitHub's log: of one repository, or all. Whatever reached it, applied or not."""
        place = f"/repos/{repository}/"
        return [
            each
            for each in self.stage.github.requests()
            if each.n > after
            and (until is None or each.n <= until)
            and (not repository or f"{each.canonical}/".startswith(place))
        ]

    def comments(self, repository: str, issue: int) -> list[SeenComment]:
        """The bot's live comments on an issue."""
        return [c for c in self.stage.github.comments(repository, issue) if c.author == BOT]

    def duplicates(self) -> int:
        """Live comments and issues, beyond the first, whose first line names one effect key."""
        github = self.stage.github
        keys = Counter[str]()
        for name in [each.full_name for each in github.repositories.values()]:
            for issue in github.issues(name):
                texts: list[SeenIssue | SeenComment] = [issue]
                for text in [*texts, *github.comments(name, issue.number)]:
                    marker = _MARKED.match(text.body)
                    wanted(marker or text.author != BOT, f"{name}: the bot wrote without a marker")
                    keys.update([marker[1]] if marker else [])
        return sum(number - 1 for number in keys.values())


def writes(requests: Sequence[Logged]) -> int:
    """How many of them changed something in a repository."""
    return sum(
        each.method != "GET" and each.applied and each.canonical.startswith("/repos/")
        for each in requests
    )


def now() -> datetime:
    """The wall-clock time, UTC."""
    return datetime.now(UTC)


def _end_of(lines: Sequence[str]) -> str:
    return " / ".join(clean(line) for line in lines[-_LAST_LINES:]) or "it said nothing"
