"""The scene of a schedule: one world, its workers, and the books that are kept of it."""

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random

from bot.enqueue import AGAIN_TICKS
from ledger.records import LEDGER, Due, DueKind
from tests.simulation.books import Books
from tests.simulation.calls import Calls
from tests.simulation.hands import ONWARDS, Hand, Where, Work
from tests.simulation.memory.rows import State
from tests.simulation.violation import Violation
from tests.simulation.world import REPOSITORY, REPOSITORY_ID, SECOND, World, world
from triage.contract import Status
from triage.identifiers import JobKey
from worker import windows
from worker.pipeline import execute
from worker.ports import LedgerUnavailableError, Ports
from worker.recovery import remember_place
from worker.stages.settling import RunReport

HANDS = 3
TITLES = ("Bug: a", "Question: b")
LONG_AGO = SECOND * 100_000
AN_HOUR = 3600.0
OTHER = "acme/web"
LABELS = ("bug", "enhancement", "question")
AGAIN_IN = SECOND * 60 * AGAIN_TICKS
TICK_SECONDS = 60.0
"""How often the clock ticks at least."""

MOST_REFUSALS = 3
"""Of a person who asks for the window at the end: whoever finds the ledger lost is one."""

MOST_TICKS = 400
"""Within which the clock must have nothing left to do before long, once everything is let go."""


def policy(**settings: object) -> str:
    """A short policy file, with these settings, whose window fell due some hours ago."""
    job = {"schedule": {"every": "daily", "at": "06:00"}, "mode": "comment", **settings}
    job |= {"labels": dict.fromkeys(LABELS, "x"), "exclusive": [LABELS], "backlog": "full"}
    return json.dumps({"jobs": {"daily-issue-triage": job}})


@dataclass
class Scene:
    """What the deeds of a schedule act on. ``replicated``: the ledger has a replica; ``replicas``:
    what it was before the last deeds."""

    w: World
    books: Books
    hands: list[Hand]
    deeds: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    replicated: bool = False
    replicas: deque[State] = field(default_factory=partial(deque, maxlen=4))
    hired: int = 0

    # --- Workers --------------------------------------------------------------------------------

    def idle(self) -> Hand | None:
        """A hand that has nothing to do."""
        return next((hand for hand in self.hands if hand.idle), None)

    @property
    def busy(self) -> int:
        """How many hands have a job."""
        return sum(not hand.idle for hand in self.hands)

    def stopped(self, dice: Random) -> Hand | None:
        """One of the hands that stand at a call."""
        found = [hand for hand in self.hands if hand.stopped]
        return dice.choice(found) if found else None

    def give(self, hand: Hand, job: str, work: Work) -> None:
        """Give a hand a job. One that died is another process from now on."""
        if hand.died:
            self.hired += 1
            hand.name = f"worker-{self.hired}"
        hand.take(job, work, self.w.ports(hand.name, hand))

    def give_next(self, hand: Hand) -> str | None:
        """Give it what is first in the queue; its words."""
        if not self.w.queue:
            return None
        due = self.w.queue.pop(0)
        self.give(hand, str(due), lambda ports: self.w.act_on(due, ports))
        return str(due)

    async def move(self, hand: Hand, where: Where = ONWARDS) -> str:
        """Let it go so far; where it stands then, in words."""
        await hand.go(where)
        if hand.stopped:
            return f"{hand.name} stands {hand.point}"
        if hand.died:
            return f"{hand.name} dies {hand.point}"
        last = hand.reports[-1:]
        hand.reports.clear()
        words = [f"{r.outcome} {r.status or ''} {r.reason}".strip() for r in last]
        return f"{hand.name} is done" + "".join(f": {word}" for word in words)

    async def work(self) -> list[str]:
        """Idle hands do all that is in the queue, one after another."""
        told: list[str] = []
        while self.w.queue and (hand := self.idle()) is not None:
            job = self.give_next(hand)
            told.append(f"{_short(job)}: {await self.move(hand)}")
        return told

    async def by_hand(self, ports: Ports, ask: windows.Ask) -> RunReport | None:
        """A person at a terminal asks for the window."""
        if not await ports.ledger.repositories.bot_ids():
            await ports.ledger.repositories.add_bot_id(await ports.reader.bot_user_id())
        record = await windows.refreshed(await remember_place(self.w.place, ports), ports)
        if record.policy is None:
            return None
        slot = windows.slot_of(record.policy, None, ports.clock.now())
        inputs = await windows.inputs_of(record, JobKey.DAILY, slot, ask, ports)
        return await execute(inputs, ports, by_hand=True)

    # --- The clock and the receiver -------------------------------------------------------------

    async def take_due(self) -> int | None:
        """The clock puts what is due into the queue; None where the ledger is out of reach."""
        w = self.w
        try:
            if not w.server.has_epoch:
                w.queue.append(Due(DueKind.RECOVER, LEDGER))
            taken = await w.ledger.due.take(w.clock.now(), 100, AGAIN_IN)
            asks = w.ledger.deliveries.asks(taken)
            for due in taken:
                if due.kind is DueKind.ASK and due not in asks:
                    await w.ledger.due.remove(due)
                elif due not in w.queue:
                    w.queue.append(due)
        except LedgerUnavailableError:
            return None
        return len(taken)

    async def receive_all(self) -> int:
        """Every delivery that waits arrives. One that the receiver could not record is lost, as
        GitHub does not send it again by itself."""
        number = 0
        while (delivery := self.w.github.outbox.take()) is not None:
            number += 1
            try:
                self.books.received(delivery.guid, await self.w.receive(delivery))
            except LedgerUnavailableError:
                continue
        return number

    async def dismiss(self) -> None:
        """No worker is left behind."""
        for hand in self.hands:
            await hand.dismiss()

    # --- The end --------------------------------------------------------------------------------

    async def let_everything_go(self) -> None:
        """Nothing is out of reach any more, no view lags, whoever stood goes on, and what was under
        way lands; then the clock ticks until nothing falls due before long."""
        w = self.w
        w.server.down = False
        w.github.faults.clear()
        self.land_late()
        for hand in self.hands:
            hand.cut = None
            if hand.stopped:
                await hand.go()
        await self.until_nothing_is_due()

    def land_late(self) -> int:
        """Requests that outlived every deadline land."""
        before = self.books.live()
        number = self.w.github.land_late()
        self.books.late_landed(before)
        return number

    async def until_nothing_is_due(self) -> None:
        """The clock ticks, deliveries arrive, hands work. Raises Violation (I7)."""
        for _ in range(MOST_TICKS):
            await self.receive_all()
            await self.take_due()
            await self.work()
            if self.w.queue or len(self.w.github.outbox):
                continue
            pause = await self.w.next_due()
            if pause is None and self.w.server.has_epoch:
                return
            await asyncio.sleep(max(pause or 0.0, TICK_SECONDS))
        upcoming = [str(due) for due, _ in await self.w.ledger.due.upcoming()]
        raise Violation("I7", f"no end of what falls due: {upcoming}")

    async def end(self) -> None:
        """Everything ends, and then two more runs of the window change nothing."""
        books = self.books
        await self.let_everything_go()
        books.check_ended()
        by_hand = partial(self.by_hand, ask=windows.Ask(by="hand"))
        for _ in range(MOST_REFUSALS):
            report = await self._once_more(by_hand)
            if report is None or report.outcome != "refused":
                break
        books.check_ended()
        books.check_done()
        before = books.writes_applied()
        for again in (self._window, by_hand):
            await self._once_more(again)
            after = books.writes_applied()
            if after != before:
                raise Violation("P: again", f"{after - before} writes of a run that was done")
        books.check_ended()

    async def _once_more(self, work: Work) -> RunReport | None:
        """Somebody asks; what comes of it is waited for."""
        hand = self.idle()
        assert hand is not None
        hand.reports.clear()
        self.give(hand, "once more", work)
        await hand.go()
        last = hand.reports[-1] if hand.reports else None
        await self.until_nothing_is_due()
        return last

    async def _window(self, ports: Ports) -> RunReport | None:
        return await windows.ensure_window(JobKey.DAILY, REPOSITORY_ID, ports)


Deed = Callable[[Scene, Random], Awaitable[str | None]]


def _short(job: str | None) -> str:
    kind, _, name = (job or "").partition(" ")
    return f"{kind} {name[-28:]}"


@asynccontextmanager
async def scene(dice: Random) -> AsyncIterator[Scene]:
    """A world with one or two issues, installed, and idle hands."""
    titles = TITLES[: dice.choice((1, 1, 2))]
    async with world(titles, policy=policy(), opened=LONG_AGO) as w:
        w.agent.fickle = True
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.add_repository(OTHER)
        books = Books(w, labels=set(LABELS), allowed=set(LABELS))
        calls = Calls(books)
        hands = [Hand(name=f"worker-{n}", sees=calls) for n in range(1, HANDS + 1)]
        made = Scene(w, books, hands, hired=HANDS, replicated=dice.random() < 0.6)
        if made.replicated:
            w.server.replicas = 1
            await w.ledger.epochs.ensure(first=True)
        await asyncio.sleep(AN_HOUR)
        await w.install()
        try:
            yield made
        finally:
            await made.dismiss()


LOSSES = frozenset({"wipe the ledger", "fail over"})


async def perform(on: Scene, name: str, deed: Deed, dice: Random) -> bool:
    """Do one deed, write it down, and check. False where it is not possible now. Raises Violation
    with the deeds so far."""
    on.deeds.append(name)
    before = on.books.state.copy()
    try:
        told = await deed(on, dice)
        if told is None:
            on.deeds.pop()
            return False
        on.deeds[-1] = f"{name}: {told}"
        if name not in LOSSES:
            on.replicas.append(before)
        on.counts[name] += 1
        on.books.check()
    except BaseException as error:
        raise told_of(error, on.deeds) from error
    return True


async def bring_to_an_end(on: Scene) -> None:
    """The last deed of every schedule. Raises Violation with the deeds so far."""
    on.deeds.append("everything is let go")
    try:
        await on.end()
    except BaseException as error:
        raise told_of(error, on.deeds) from error


def told_of(error: BaseException, deeds: list[str]) -> BaseException:
    """A Violation with what led to it; what a worker must not raise is one too."""
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return error
    if not isinstance(error, Violation):
        invariant = "I7" if str(error).startswith("I7") else "P: error"
        error = Violation(invariant, f"{type(error).__name__}: {error}")
    error.deeds = tuple(deeds)
    return error


def reviewed(on: Scene) -> bool:
    """Whether a run waits for a person."""
    return Status.NEEDS_REVIEW in on.books.runs.values()
