"""What falls due: oldest first, kept until it is removed."""

import asyncio
from datetime import timedelta

from ledger.records import Due, DueKind
from tests.ledger.places import AnyLedger
from tests.ledger.samples import NOON, RUN
from triage.identifiers import JobKey

MINUTE = timedelta(minutes=1)
ITEMS = [Due(DueKind.CONTINUE, RUN), Due.window(JobKey.DAILY, 7), Due(DueKind.SAMPLE, "a" * 64)]


async def test_what_is_due_is_taken_oldest_first_and_stays(ledger: AnyLedger) -> None:
    """Taken it is moved, so that a crash loses nothing; removed it is gone."""
    for number, item in enumerate(ITEMS):
        await ledger.due.add(item, NOON + number * MINUTE)
    assert await ledger.due.take(NOON - MINUTE, 10, MINUTE) == []
    assert await ledger.due.take(NOON + MINUTE, 10, 5 * MINUTE) == ITEMS[:2]
    assert await ledger.due.take(NOON + 2 * MINUTE, 10, 5 * MINUTE) == ITEMS[2:]
    assert await ledger.due.take(NOON + 6 * MINUTE, 1, 5 * MINUTE) in ([ITEMS[0]], [ITEMS[1]])
    await ledger.due.remove(ITEMS[0])
    left = [item for item, _ in await ledger.due.upcoming()]
    assert sorted(map(str, left)) == sorted(map(str, ITEMS[1:]))


async def test_added_again_it_is_moved(ledger: AnyLedger) -> None:
    """To earlier or to later."""
    for at in (NOON, NOON + MINUTE, NOON - MINUTE):
        await ledger.due.add(ITEMS[0], at)
        assert await ledger.due.upcoming() == [(ITEMS[0], at)]


async def test_two_clocks_take_nothing_twice(ledger: AnyLedger) -> None:
    """Twenty takers at once share what is due."""
    for number in range(100):
        await ledger.due.add(Due(DueKind.CONTINUE, f"run-{number}"), NOON)
    taken = await asyncio.gather(*(ledger.due.take(NOON, 5, MINUTE) for _ in range(20)))
    names = [item.name for batch in taken for item in batch]
    assert len(names) == len(set(names)) == 100


async def test_what_was_moved_meanwhile_is_not_removed(ledger: AnyLedger) -> None:
    """With the time at which it was seen, only that one is removed; without, whatever stands."""
    due = ITEMS[0]
    assert await ledger.due.when(due) is None
    await ledger.due.remove(due, NOON)
    await ledger.due.add(due, NOON + MINUTE)
    await ledger.due.remove(due, NOON)
    assert await ledger.due.when(due) == NOON + MINUTE
    await ledger.due.remove(due, NOON + MINUTE)
    assert await ledger.due.when(due) is None
    await ledger.due.add(due, NOON)
    await ledger.due.remove(due)
    assert await ledger.due.upcoming() == []


async def test_what_is_due_together_is_taken_by_name_and_not_more_than_asked(
    ledger: AnyLedger,
) -> None:
    """Each is moved to the same time after now; what is looked at is not moved."""
    for item in ITEMS:
        await ledger.due.add(item, NOON)
    by_name = sorted(ITEMS, key=str)
    assert await ledger.due.upcoming(2) == [(item, NOON) for item in by_name[:2]]
    assert await ledger.due.upcoming(0) == [(item, NOON) for item in by_name]
    assert await ledger.due.take(NOON, 0, MINUTE) == []
    assert await ledger.due.take(NOON + MINUTE, 2, MINUTE / 2) == by_name[:2]
    assert await ledger.due.upcoming() == [
        (by_name[2], NOON),
        *((item, NOON + 1.5 * MINUTE) for item in by_name[:2]),
    ]


async def test_times_are_whole_milliseconds(ledger: AnyLedger) -> None:
    """Rounded, in what falls due as in what is taken again."""
    sharp = NOON + timedelta(microseconds=1_600)
    await ledger.due.add(ITEMS[0], sharp)
    assert await ledger.due.when(ITEMS[0]) == NOON + timedelta(milliseconds=2)
    assert await ledger.due.take(sharp, 1, timedelta(microseconds=2_400)) == ITEMS[:1]
    assert await ledger.due.when(ITEMS[0]) == NOON + timedelta(milliseconds=4)
