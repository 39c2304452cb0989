"""What workers, the clock, the receiver and their servers do in a schedule."""

import asyncio
from datetime import timedelta
from random import Random

from tests.simulation.hands import ONWARDS, Cut, Hand, Where
from tests.simulation.scene import Scene
from tests.simulation.world import REPOSITORY_ID, World
from triage.identifiers import JobKey
from triage.marker import MarkerKey, MarkerKeys
from worker import windows
from worker.ports import Ports
from worker.stages.settling import RunReport

DAY = 86_400.0
PAUSES = (1.0, 6.0, 45.0, 125.0, 200.0, 320.0, 950.0)
"""In seconds: within a claim's margin and past it, within the lease and past it, past the lock
delay, a quarter of the absence window, past it."""

MOST_CALLS = 130


POINTS = (
    "before effects.claim",
    "after effects.claim",
    "before writer.create_comment",
    "after writer.create_comment",
    "before writer.add_labels",
    "after writer.add_labels",
    "before writer.create_issue",
    "after writer.create_issue",
    "before writer.edit_comment",
    "before effects.acknowledge",
    "after agent.decide",
    "before runs.settle",
)
"""Where it matters most."""


def somewhere(dice: Random, *, dies: bool = False) -> Where:
    """Any point of a run; often one where it matters."""
    if dice.random() < 0.5:
        return Where(MOST_CALLS * 2, dice.choice(POINTS), dies)
    return Where(dice.randrange(1, dice.choice((12, 40, MOST_CALLS))), dies=dies)


async def tick(on: Scene, dice: Random) -> str | None:
    """Time passes until something is due; it is done, unless a worker stops or dies over it."""
    told: list[str] = []
    for _ in range(dice.choice((1, 1, 2, 8))):
        pause = await _pause(on.w)
        if pause is None:
            break
        await asyncio.sleep(pause)
        taken = await on.take_due()
        if taken is None:
            return "the ledger is out of reach"
        told.append(f"after {pause:.0f} s {taken} due; {await work(on, dice)}")
    return " | ".join(told) or None


async def _pause(w: World) -> float | None:
    if w.server.down or not w.server.has_epoch:
        return 0.0
    return await w.next_due()


async def work(on: Scene, dice: Random) -> str:
    """Hands do what is in the queue; now and then one stops or dies over it."""
    told: list[str] = []
    fate = dice.random()
    if fate < 0.45 and on.w.queue and (hand := on.idle()) is not None:
        on.give_next(hand)
        hand.frozen = dice.random() < 0.7
        told.append(f"{hand.job[:40]}: {await on.move(hand, somewhere(dice, dies=fate < 0.15))}")
    told += await on.work()
    return "; ".join(told) or "nobody works"


async def window_passes(on: Scene, dice: Random) -> str | None:
    """The clock ticks for an absence window and a little, and all that is due is done."""
    until = on.books.now + on.w.timing.absence_window.total_seconds() * 1.2
    done = 0
    while on.books.now < until and (pause := await _pause(on.w)) is not None:
        await asyncio.sleep(max(pause, 1.0))
        if await on.take_due() is None:
            break
        done += len(await on.work())
    return f"{done} jobs" if done else None


async def cron(on: Scene, dice: Random) -> str | None:
    """Somebody's cron asks for the due window, or one by name."""
    hand = on.idle()
    if hand is None:
        return None
    key = dice.choice((None, None, f"{on.w.clock.now():%Y-%m-%d}"))

    async def ensure(ports: Ports) -> RunReport | None:
        return await windows.ensure_window(
            JobKey.DAILY, REPOSITORY_ID, ports, window=key, by="cron"
        )

    on.give(hand, "cron", ensure)
    return await _begin(on, hand, dice)


async def manual(on: Scene, dice: Random) -> str | None:
    """A person asks for the window, at a terminal."""
    return await _asks(on, dice, windows.Ask(by="hand"))


async def forced(on: Scene, dice: Random) -> str | None:
    """The same, forced."""
    name = f"f{len(on.deeds)}"
    on.books.lift()
    return await _asks(on, dice, windows.Ask(by="hand", forced=name, force=True))


async def _asks(on: Scene, dice: Random, ask: windows.Ask) -> str | None:
    hand = on.idle()
    if hand is None:
        return None
    on.give(hand, "by hand", lambda ports: on.by_hand(ports, ask))
    return await _begin(on, hand, dice)


async def _begin(on: Scene, hand: Hand, dice: Random) -> str:
    fate = dice.random()
    if fate < 0.4:
        return await on.move(hand)
    hand.frozen = dice.random() < 0.7
    return await on.move(hand, somewhere(dice, dies=fate < 0.55))


async def two_at_once(on: Scene, dice: Random) -> str | None:
    """A run by hand and what is in the queue, at the same time."""
    first = on.idle()
    if first is None:
        return None
    on.give(first, "by hand", lambda ports: on.by_hand(ports, windows.Ask(by="hand")))
    second = on.idle()
    if second is None or on.give_next(second) is None:
        return f"nobody else: {await on.move(first)}"
    on.books.alone = False
    first.let_go(somewhere(dice) if dice.random() < 0.3 else ONWARDS)
    second.let_go(somewhere(dice) if dice.random() < 0.3 else ONWARDS)
    await first.rest()
    await second.rest()
    on.books.alone = True
    return f"{first.name} by hand and {second.name}, {second.job[:40]}"


async def step(on: Scene, dice: Random) -> str | None:
    """A worker that stood goes on for some calls."""
    hand = on.stopped(dice)
    return None if hand is None else await on.move(hand, somewhere(dice))


async def finish(on: Scene, dice: Random) -> str | None:
    """A worker that stood goes on to the end."""
    hand = on.stopped(dice)
    return None if hand is None else await on.move(hand)


async def kill(on: Scene, dice: Random) -> str | None:
    """A worker that stood is gone."""
    hand = on.stopped(dice)
    if hand is None:
        return None
    await hand.kill()
    return f"{hand.name} {hand.point}"


async def expire(on: Scene, dice: Random) -> str | None:
    """A worker stands still until its lease is over, with the lock delay or without."""
    hand = on.stopped(dice)
    if hand is None:
        return None
    hand.frozen = True
    timing = on.w.timing
    span = timing.lease + dice.choice((timedelta(0), timing.lock_delay)) + timedelta(seconds=1)
    await asyncio.sleep(span.total_seconds())
    return f"{hand.name} stands still for {span.total_seconds():.0f} s"


async def wait(on: Scene, dice: Random) -> str | None:
    """Time passes."""
    pause = dice.choice(PAUSES)
    await asyncio.sleep(pause)
    return f"{pause:.0f} s"


async def a_day(on: Scene, dice: Random) -> str | None:
    """A day passes."""
    await asyncio.sleep(DAY)
    return f"it is {on.w.clock.now():%Y-%m-%d}"


async def jump(on: Scene, dice: Random) -> str | None:
    """The workers' clock is set forward or back."""
    minutes = dice.choice((-7, -2, 1, 4, 9))
    on.w.clock.ahead += timedelta(minutes=minutes)
    on.books.early += abs(minutes) * 60
    return f"by {minutes} minutes"


async def cut(on: Scene, dice: Random) -> str | None:
    """A worker does not reach the ledger for some calls, or does not hear of it."""
    hand = on.stopped(dice) or on.idle()
    if hand is None:
        return None
    hand.cut = Cut(calls=dice.choice((1, 1, 2, 3, 6)), lost=dice.random() < 0.5)
    return f"{hand.name} for {hand.cut.calls} calls, {'after' if hand.cut.lost else 'before'} them"


# --- Deliveries -----------------------------------------------------------------------------------


async def deliver(on: Scene, dice: Random) -> str | None:
    """Webhooks arrive, and are worked on."""
    if not len(on.w.github.outbox):
        return None
    number = await on.receive_all()
    return f"{number} arrive; {await work(on, dice)}"


async def redeliver(on: Scene, dice: Random) -> str | None:
    """Somebody has GitHub send a delivery again."""
    known = on.w.github.webhooks.deliveries
    if not known:
        return None
    delivery = dice.choice(known[-12:])
    on.w.github.webhooks.redeliver(delivery.guid)
    number = await on.receive_all()
    return f"{delivery.event} {delivery.action}, {number} arrive; {await work(on, dice)}"


async def lose_deliveries(on: Scene, dice: Random) -> str | None:
    """Webhooks do not arrive."""
    lost = on.w.github.outbox.drain()
    return f"{len(lost)}" if lost else None


# --- The ledger's server --------------------------------------------------------------------------


async def restart(on: Scene, dice: Random) -> str | None:
    """A durable server starts again: nothing is lost. One that ever had a replica may have lost
    something, for all that the program can tell."""
    on.books.suspected |= on.replicated
    on.w.server.restart()
    on.w.server.down = False
    return "nothing is lost"


async def down(on: Scene, dice: Random) -> str | None:
    """The server is away, until it is back."""
    on.w.server.down = not on.w.server.down
    return "away" if on.w.server.down else "back"


async def wipe(on: Scene, dice: Random) -> str | None:
    """The server comes back empty."""
    await on.w.lose_ledger()
    on.w.server.down = False
    on.replicas.clear()
    on.books.ledger_lost(on.busy, all_gone=True)
    return "empty"


async def fail_over(on: Scene, dice: Random) -> str | None:
    """A replica is promoted: the writes of the last deeds, which it did not have, are lost."""
    if not on.replicated or not on.replicas:
        return None
    back = dice.randrange(1, len(on.replicas) + 1)
    on.w.server.restore(on.replicas[-back])
    on.w.server.down = False
    on.replicas.clear()
    on.books.ledger_lost(on.busy, all_gone=False)
    return f"it lacks the writes of {back} deeds"


async def rotate_keys(on: Scene, dice: Random) -> str | None:
    """A new marker key signs; the old ones go on verifying."""
    number = len(on.w.keys.keys) + 1
    new = MarkerKey(f"k{number}", f"{number:016d}".encode())
    on.w.keys = MarkerKeys((new, *on.w.keys.keys))
    return new.kid
