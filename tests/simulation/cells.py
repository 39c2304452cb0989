"""A cell of the crash matrix as a story: the fault strikes, the run is classified, the next action
is what the cell says, the next run ends it, and two more change nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from tests.simulation.invariants import check
from tests.simulation.matrix import Cell
from tests.simulation.reviews import review_file
from tests.simulation.strikes import Strike
from tests.simulation.ways import TRIAGE, Way
from tests.simulation.world import REPOSITORY, Faults, Killed, World, policy_file, world
from triage.classification import Facts, classify
from triage.contract import RunRecord, Status
from triage.identifiers import JobKey
from triage.plan import Plan
from triage.snapshot import Snapshot
from worker.ports import LeaseLost, LedgerUnavailableError
from worker.stages.settling import RunReport

WORDS = {
    Status.COMPLETED: "C",
    Status.NO_CHANGE: "NC",
    Status.FAILED_BEFORE_WRITE: "FB",
    Status.FAILED_AFTER_WRITE: "FA",
    Status.WAITING: "W",
    Status.NEEDS_REVIEW: "NR",
}
TRIES = 8
"""How often the run is asked for again until it must be over (I7)."""


@dataclass(frozen=True, slots=True)
class Left:
    """What the struck attempt left behind. ``report`` is None where its worker was lost."""

    report: RunReport | None
    run: RunRecord | None
    snapshot: Snapshot | None
    plan: Plan | None
    asked: int

    @property
    def lost(self) -> bool:
        """The worker told nobody how it ended."""
        return self.report is None


@asynccontextmanager
async def stage(way: Way, *, opened: timedelta = timedelta(0)) -> AsyncIterator[World]:
    """A world in which the job of this way has something to write; its issue was opened so long
    ago."""
    if way.job is JobKey.DAILY:
        async with world(["Bug: a"], policy=policy_file(), opened=opened) as w:
            yield w
        return
    async with world(["Bug: a"], policy=review_file(), job=way.job, opened=opened) as w:
        w.github.put_file(REPOSITORY, "a.py", "FAULT: it divides by zero\n")
        if way.edits:
            assert (await w.run()).status is Status.COMPLETED
            w.github.put_file(REPOSITORY, "b.py", "FAULT: it leaks a file\n")
            w.move(days=1)
        yield w


async def play(cell: Cell, way: Way = TRIAGE) -> None:
    """Tell the story of a cell. Raises AssertionError where anything is not as the cell says."""
    if cell.row == 0:
        await _enqueued(cell, way)
        return
    async with stage(way) as w:
        strike = Strike(cell, w, Faults(), nth=way.passing(cell.row), way=way)
        strike.arm()
        left = await _attempt(w, strike)
        assert strike.struck, f"{cell}: the fault never struck"
        await check(w)
        assert await _status(w, left) == (cell.status or "C"), f"{cell}: {left}"
        steps = _Steps(cell, w, left)
        await steps.follow()
        w.github.faults.clear()
        await _two_more(w)


async def _attempt(w: World, strike: Strike) -> Left:
    before = len(await w.runs())
    try:
        report = await w.run(faults=strike.faults)
    except (Killed, LeaseLost, LedgerUnavailableError):
        report = None
    await strike.over()
    runs = (await w.runs())[before:]
    run = runs[0] if runs else None
    key = run.inputs.dedupe_key if run is not None else ""
    return Left(
        report,
        run,
        await w.ledger.runs.snapshot(key),
        await w.ledger.runs.plan(key),
        w.agent.sessions_asked,
    )


async def _status(w: World, left: Left) -> str:
    """The status that the evidence left behind amounts to."""
    run = left.run
    if run is None:
        return WORDS[Status.FAILED_BEFORE_WRITE]
    if not left.lost:
        return WORDS[run.status]
    if run.status.final:
        return WORDS[run.status]
    planned = left.plan is not None and bool(run.effects)
    found = classify(Facts(effects=run.effects, now=w.clock.now(), planned=planned))
    # Its effects are all settled, and yet it is not over: the summary is still to come.
    return WORDS[Status.FAILED_AFTER_WRITE if found is Status.COMPLETED else found]


class _Steps:
    """The next action, letter by letter."""

    def __init__(self, cell: Cell, w: World, left: Left) -> None:
        self.cell = cell
        self.w = w
        self.left = left

    async def follow(self) -> None:
        """Take each step, then see the run completed."""
        for step in self.cell.steps:
            await getattr(self, f"_{step.replace('/', '_').lower()}")()

    async def _t(self) -> None:
        """A successor is refused while the lease lives, and admitted once it does not."""
        await self._refused_while_live()
        await self._lapse()

    async def _w(self) -> None:
        """The same, after the lock delay."""
        await self._refused_while_live()
        await self._lapse()
        refused = await self.w.run(owner="worker-2")
        assert (refused.outcome, refused.reason) == ("refused", "the lock delay is running")
        await asyncio.sleep(self.w.timing.lock_delay.total_seconds())

    async def _refused_while_live(self) -> None:
        run = self.left.run
        key = run.inputs.dedupe_key if run is not None else await self._key()
        if (await self.w.ledger.leases.view(key)).lease.live:
            assert (await self.w.run(owner="worker-2")).outcome == "refused"

    async def _lapse(self) -> None:
        lease = (await self.w.ledger.leases.view(await self._key())).lease
        if lease.live and lease.until is not None:
            await asyncio.sleep((lease.until - lease.now).total_seconds())

    async def _key(self) -> str:
        if self.left.run is not None:
            return self.left.run.inputs.dedupe_key
        return list(self.w.server.state.leases)[-1]

    async def _b(self) -> None:
        """No lease is held, and it comes back when told."""
        report = self.left.report
        assert report is not None
        assert report.until is not None, f"{self.cell}: no time to come back"
        view = (await self.w.ledger.leases.view(report.dedupe_key)).lease
        assert not view.live
        await asyncio.sleep(max(0.0, (report.until - self.w.clock.now()).total_seconds()))

    async def _n(self) -> None:
        """A new snapshot: none stands."""
        assert self.left.snapshot is None
        await self._completed()

    async def _m(self) -> None:
        """The model is asked again, on the same snapshot."""
        assert self.left.snapshot is not None
        assert self.left.plan is None, f"{self.cell}: {self.left.plan}"
        await self._completed(asked=1)
        run = (await self.w.runs())[-1]
        assert await self.w.ledger.runs.snapshot(run.inputs.dedupe_key) is not None

    async def _p(self) -> None:
        """The saved plan is gone on with: the model is not asked."""
        assert self.left.plan is not None
        await self._completed()

    async def _m_n(self) -> None:
        await (self._m() if self.left.snapshot is not None else self._n())

    async def _p_m(self) -> None:
        await (self._p() if self.left.plan is not None else self._m())

    async def _v(self) -> None:
        """What was sent is looked for: nothing is sent a second time that is there."""
        await self._p()

    _vl = _v

    async def _g(self) -> None:
        """The same attempt goes on to the end."""
        assert self.left.report is not None
        assert [item.ended for item in (await self.w.runs())[-1].attempts] == ["completed"]

    async def _d(self) -> None:
        """The second trigger was refused or reused while the first went on."""
        await self._g()

    async def _z(self) -> None:
        """Nothing is left to be done: another run reads, and writes nothing."""
        before = self.w.github.state()["repositories"]
        self.w.github.faults.clear()
        again = await self.w.run()
        assert (again.outcome, again.drift) == ("reused", ())
        assert self.w.github.state()["repositories"] == before

    async def _nw(self) -> None:
        """The next window takes what this one was not shown."""
        self.w.github.faults.clear()
        self.w.move(days=1)
        assert (await self.w.run()).status is Status.COMPLETED

    async def _completed(self, asked: int = 0) -> None:
        """The next runs end it, within a bounded number of asks."""
        for _ in range(TRIES):
            report = await self.w.run(owner="worker-2")
            await check(self.w)
            if report.status is Status.COMPLETED:
                break
            await asyncio.sleep(self.w.timing.absence_window.total_seconds() / 4)
        assert report.status is Status.COMPLETED, f"{self.cell}: I7: {report}"
        fresh = int(self.left.snapshot is None)
        assert self.w.agent.sessions_asked == self.left.asked + max(asked, fresh), self.cell


async def _two_more(w: World) -> None:
    """The invariants hold, and two more runs of the window change nothing."""
    await check(w)
    before = w.github.state()["repositories"]
    for _ in range(2):
        again = await w.run()
        assert (again.outcome, again.drift) == ("reused", ())
        await check(w)
    await w.settle()
    await check(w)
    assert w.github.state()["repositories"] == before


# Row 0: the trigger, before there is a run


async def _enqueued(cell: Cell, way: Way) -> None:
    """The trigger is on its way to the queue: the clock's, or a delivery that installs the App."""
    async with stage(way, opened=timedelta(days=1)) as w:
        await trigger(cell, w)
        reports = [*await w.work(), *await w.settle()]
        assert [item.outcome for item in reports if item.outcome != "reused"] == ["ran"], cell
        assert [run.status for run in await w.runs()] == [Status.COMPLETED], cell
        assert w.agent.sessions_asked == 1
        await _two_more(w)


async def trigger(cell: Cell, w: World) -> None:
    """The trigger is given, and this fault befalls it; what was asked for is queued or due."""
    guid = next(d.guid for d in w.github.webhooks.deliveries[::-1] if d.event == "issues")
    w.github.outbox.drain()
    await _TRIGGERS[cell.fault](w, guid)


async def _delivered(w: World, guid: str) -> None:
    """It is taken, unless it was before."""
    known = w.ledger.deliveries.accepted(guid)
    jobs = len(w.queue)
    assert await w.receive(w.github.webhooks.redeliver(guid)) is not known
    assert len(w.queue) == jobs + (not known), "P: a delivery that is known made a job"


async def _receiver_dies(w: World, guid: str) -> None:
    """Nothing was recorded, and GitHub had no answer: it is delivered again."""
    await _delivered(w, guid)


async def _clock_dies(w: World, _: str) -> None:
    """What it took and did not enqueue falls due again."""
    await w.install()
    assert await w.ledger.due.take(w.clock.now(), 100, w.timing.lock_delay)
    assert await w.tick() == []


async def _answer_is_lost(w: World, guid: str) -> None:
    """It was recorded; the delivery that comes again is a duplicate."""
    await _delivered(w, guid)
    await _delivered(w, guid)


async def _redis_is_down(w: World, guid: str) -> None:
    """Neither the receiver nor the clock can do anything, and both say so."""
    w.server.down = True
    for trigger in (w.receive(w.github.webhooks.redeliver(guid)), w.tick()):
        try:
            await trigger
        except LedgerUnavailableError:
            continue
        raise AssertionError("P: a trigger was taken while Redis was down")
    w.server.down = False
    await _delivered(w, guid)


async def _twice(w: World, guid: str) -> None:
    """A redelivery, another delivery that means the same, and the clock at once: one job each."""
    await _answer_is_lost(w, guid)
    await w.install()


_TRIGGERS = {
    "kill -9": _receiver_dies,
    "timeout": _clock_dies,
    "lost reply": _answer_is_lost,
    "Redis down": _redis_is_down,
    "duplicate trigger": _twice,
}
