"""One round: the window is triggered, a fault strikes, the fleet goes on, and all is checked.

An incident is allowed in one kind of round alone, ``request outlives all deadlines``: a create that
was sent is held back, by a network as it were, while its worker is stopped; once lease, lock delay
and absence window are over another worker has proved its absence and sent it once more; only when
that one has landed is the first let go. Then two are there, the bot removes its own later one, and
counts one incident. In every other kind the count must be 0.
"""

import asyncio
import contextlib
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.codec import texts
from ledger.connection import connect
from ledger.epoch import KEY as EPOCH
from ledger.records import DueKind
from tests.processes.blow import PATIENCE_SECONDS, PAUSE_SECONDS, Blow
from tests.processes.checks import DUPLICATE, Stood, violated
from tests.processes.faults import Kind, Meanwhile, Planned
from tests.processes.fleet import REPOSITORY
from tests.processes.nursery import Child, Nursery
from tests.processes.orphans import left_over
from tests.processes.proxies import Strike
from tests.processes.stage import TICK_SECONDS, UNREACHABLE, Stage, stage
from triage.contract import RunRecord, Status

QUIET_SECONDS = 0.5
"""For so long nothing must be under way: between a job's leaving the queue and its work horse it
cannot be seen."""

ORPHAN_PATIENCE_SECONDS = 30.0
"""Until the kernel has ended what belonged to a process that was killed."""

FAR_SECONDS = 6.0
"""What falls due later than this, a person does not wait for but asks by hand."""

MOST_ASKS = 6
"""By hand, in one round, before it is said that nothing goes on."""

ENDS = (0, 1, 3, 99, -signal.SIGTERM, -signal.SIGKILL)
"""How a process may end: by the codes that are documented, or as it was told to."""

SETTINGS = {
    Kind.EMPTIED: {"appendonly": "no"},
    Kind.SET_BACK: {"appendfsync": "everysec"},
}


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one. ``violations``: each invariant that did not hold, and what stood there;
    ``incidents``: duplicates that were counted; ``new_epoch``: the ledger has another one than in
    the beginning, ``quiet``: it began with one; ``said``: what the processes said, if that matters.
    """

    planned: Planned
    violations: tuple[str, ...]
    incidents: int
    orphans: int
    reviews: int
    attempts: int
    new_epoch: bool
    quiet: bool
    seconds: float
    said: str = ""


class Stuck(Exception):  # noqa: N818 - it says what did not come
    """Something did not come in time."""


async def play(planned: Planned, nursery: Nursery, *, keep_log: bool = False) -> Round:
    """Play it, in a folder of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="round-") as name:
        folder = Path(name)
        playing = _Playing(planned)
        try:
            await playing.play(folder, nursery)
        except Stuck as stuck:
            playing.violations.append(f"I7: {stuck}")
        sessions = {child.pid for child in playing.children}
        orphans = await asyncio.to_thread(
            left_over, sessions, str(folder), patience_seconds=ORPHAN_PATIENCE_SECONDS
        )
        playing.violations += [f"orphan: {process}" for process in orphans]
        runs = playing.runs
        return Round(
            planned=planned,
            violations=tuple(playing.violations),
            incidents=playing.incidents.get(DUPLICATE, 0),
            orphans=len(orphans),
            reviews=sum(run.status is Status.NEEDS_REVIEW for run in runs),
            attempts=sum(len(run.attempts) for run in runs),
            new_epoch=playing.after.get("id") != playing.before.get("id"),
            quiet=playing.after.get("quiet_until", "0") != "0",
            seconds=time.monotonic() - began,
            said=playing.said if keep_log or playing.violations else "",
        )


class _Playing:
    """A round under way."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.violations: list[str] = []
        self.children: list[Child] = []
        self.runs: list[RunRecord] = []
        self.incidents: dict[str, int] = {}
        self.before: Mapping[str, str] = {}
        self.after: Mapping[str, str] = {}
        self.said = ""
        self.blow: Blow | None = None
        self._is_quiet = False
        self._asks = 0

    async def play(self, folder: Path, nursery: Nursery) -> None:
        """Raises Stuck."""
        planned = self.planned
        async with stage(
            folder,
            nursery,
            issues=planned.issues,
            settings=SETTINGS.get(planned.kind, {}),
            replica=planned.kind is Kind.PROMOTED,
        ) as on:
            self.children = on.children
            try:
                self.before = await _epoch(on)
                await self._provoke(on)
                await self._go_on(on)
                await self._ask_again(on)
                await self._look(on)
            finally:
                self.said = on.said()
                await self._stop(on)
            for child in on.children:
                if child.code not in ENDS:
                    self.violations.append(f"process {child.pid} ended with {child.code}")

    # --- The fault ------------------------------------------------------------------------------

    async def _provoke(self, on: Stage) -> None:
        """Trigger the window, and let the fault strike."""
        planned = self.planned
        blow = self.blow = Blow(planned, on)
        if planned.cut_at is not None:
            cut = planned.cut_at
            on.wire.strikes.append(Strike(cut.way, cut.where, False, on.keeper.cut_replication))
        on.wire.strikes.append(
            Strike(
                planned.boundary.way,
                planned.boundary.where,
                planned.after,
                blow.strike,
                lose=planned.lost,
                occurrence=planned.occurrence,
            )
        )
        await on.work()
        if planned.meanwhile is Meanwhile.SECOND:
            await on.work()
        on.github.install("retriage", "acme", [REPOSITORY])
        await on.deliver()
        await self._until(on, blow.struck.is_set, f"the fault strikes: {planned}")
        await self._trigger(on)
        await self._mend(on, blow)

    async def _trigger(self, on: Stage) -> None:
        """Who else asks for the window at this moment. A server that is away makes it a 503."""
        match self.planned.meanwhile:
            case Meanwhile.CRON:
                await on.cron()
            case Meanwhile.REDELIVERY:
                await on.redeliver()
            case Meanwhile.HAND:
                await on.by_hand()
            case Meanwhile.NOBODY | Meanwhile.SECOND:
                pass

    async def _mend(self, on: Stage, blow: Blow) -> None:
        """Operations: the server is started again, and a worker for one that is gone or stands."""
        kind = self.planned.kind
        if kind in (Kind.SERVER, Kind.EMPTIED, Kind.SET_BACK):
            await on.keeper.come_back(
                on.redis, empty=kind is Kind.EMPTIED, lost_bytes=self.planned.lost_bytes
            )
        if kind.takes_a_worker:
            await on.work()
        if blow.stopped:

            def past() -> bool:
                return blow.is_past and any(_is_over(run) for run in self.runs)

            await self._until(on, past, "another worker ends what a stopped one holds")
            blow.resume()

    # --- After it -------------------------------------------------------------------------------

    async def _go_on(self, on: Stage) -> None:
        """The clock ticks until every run is over, and nothing is to come."""
        quiet_since: float | None = None

        def over() -> bool:
            nonlocal quiet_since
            if not self._is_quiet:
                quiet_since = None
                return False
            quiet_since = quiet_since or time.monotonic()
            return time.monotonic() - quiet_since > QUIET_SECONDS

        await self._until(on, over, "every run ends, and nothing is to come")

    async def _ask_again(self, on: Stage) -> None:
        """Twice more, by a scheduler and by a person: nothing changes on GitHub."""
        stood = on.github.state()["repositories"]
        await self._ring(on)
        await self._go_on(on)
        if on.github.state()["repositories"] != stood:
            self.violations.append("I1: the scheduler rang again, and something changed on GitHub")
        code = await self._by_hand(on)
        reviewed = any(run.status is Status.NEEDS_REVIEW for run in self.runs)
        if code != (3 if reviewed else 0):
            self.violations.append(f"`retriage run` at the end gave {code}")
        await self._go_on(on)
        if on.github.state()["repositories"] != stood:
            self.violations.append("I1: a person asked again, and something changed on GitHub")

    async def _by_hand(self, on: Stage) -> int | None:
        """``retriage run``, again where it is told to come back later; its exit code."""
        for _ in range(MOST_ASKS):
            code = await on.ended(await on.by_hand(), PATIENCE_SECONDS)
            if code != 99:
                break
            await self._go_on(on)
        return code

    async def _ring(self, on: Stage) -> None:
        """Until a job comes of it: the window's slot of this second may have had one."""
        for _ in range(MOST_ASKS):
            answer = await on.cron()
            if answer.get("enqueued"):
                return
            await asyncio.sleep(TICK_SECONDS)
        self.violations.append(f"/cron enqueued nothing: {answer}")

    async def _look(self, on: Stage) -> None:
        self.runs = await on.link.ledger.runs.listed(limit=100)
        self.after = await _epoch(on)
        counted = await on.link.ledger.counters.snapshot()
        self.incidents = dict(counted.incidents)
        stood = Stood(
            planned=self.planned,
            github=on.github,
            runs=self.runs,
            journal=on.wire.journal,
            incidents=self.incidents,
            before=self.before,
            after=self.after,
        )
        self.violations += violated(stood)

    async def _stop(self, on: Stage) -> None:
        """End what lives, politely. What does not end is left for the count of orphans."""
        if self.blow is not None:
            self.blow.resume()
        for child in on.children:
            child.kill(signal.SIGTERM)
        for child in on.children:
            await on.ended(child, PATIENCE_SECONDS / 4)

    async def _until(self, on: Stage, true: Callable[[], bool], what: str) -> None:
        """The clock ticks, and what it shows is looked at, until that is true. Raises Stuck."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            _look_at(on.wire.deeds)
            await on.tick()
            with contextlib.suppress(*UNREACHABLE):
                self._is_quiet = await self._quiet(on)
            if true():
                return
            await asyncio.sleep(PAUSE_SECONDS)
        raise Stuck(f"not within {PATIENCE_SECONDS:g} s: {what}")

    async def _quiet(self, on: Stage) -> bool:
        """Whether nothing is under way and nothing falls due before long."""
        ledger = on.link.ledger
        self.runs = await ledger.runs.listed(limit=100)
        upcoming = await ledger.due.upcoming(50)
        depth = await asyncio.to_thread(on.link.queue.depth)
        running = on.busy() or any(child.alive for child in on.children if child not in on.workers)
        now = time.time()
        soon = [at for due, at in upcoming if at.timestamp() - now < FAR_SECONDS]
        if depth or running or soon:
            return False
        pending = [due for due, _ in upcoming if due.kind is not DueKind.START]
        if not pending and self.runs and all(_is_over(run) for run in self.runs):
            return True
        await self._ask_by_hand(on)
        return False

    async def _ask_by_hand(self, on: Stage) -> None:
        """All wait for a moment that is minutes off: a person does not."""
        if self.blow is not None and self.blow.struck.is_set() and self._asks < MOST_ASKS:
            self._asks += 1
            await on.by_hand()


async def _epoch(on: Stage) -> dict[str, str]:
    """The epoch that stands, only looked at: to notice that it must change is for the workers."""
    async with connect(on.keeper.url) as client:
        found: Any = await client.hgetall(EPOCH)
        return texts(found)


def _look_at(deeds: Iterable[asyncio.Future[None]]) -> None:
    """Raise what went wrong with one that is done; Stuck where what it waited for did not come."""
    try:
        for deed in deeds:
            if deed.done():
                deed.result()
    except TimeoutError as error:
        raise Stuck(str(error)) from error


def _is_over(run: RunRecord) -> bool:
    return run.status.final or run.status is Status.NEEDS_REVIEW
