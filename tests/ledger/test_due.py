"""What falls due: oldest first, kept until it is removed."""

import asyncio
from datetime import timedelta

from ledger.ledger import Ledger
from ledger.records import Due, DueKind
from tests.ledger.samples import NOON, RUN
from triage.identifiers import JobKey

MINUTE = timedelta(minutes=1)
ITEMS = [Due(DueKind.CONTINUE, RUN), Due.window(JobKey.DAILY, 7), Due(DueKind.SAMPLE, "a" * 64)]


async def test_what_is_due_is_taken_oldest_first_and_stays(ledger: Ledger) -> None:
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


async def test_added_again_it_is_moved(ledger: Ledger) -> None:
    """To earlier or to later."""
    for at in (NOON, NOON + MINUTE, NOON - MINUTE):
        await ledger.due.add(ITEMS[0], at)
        assert await ledger.due.upcoming() == [(ITEMS[0], at)]


async def test_two_clocks_take_nothing_twice(ledger: Ledger) -> None:
    """Twenty takers at once share what is due."""
    for number in range(100):
        await ledger.due.add(Due(DueKind.CONTINUE, f"run-{number}"), NOON)
    taken = await asyncio.gather(*(ledger.due.take(NOON, 5, MINUTE) for _ in range(20)))
    names = [item.name for batch in taken for item in batch]
    assert len(names) == len(set(names)) == 100
