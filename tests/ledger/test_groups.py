"""Groups: one call at a time, with all that has come meanwhile."""

import asyncio
from collections.abc import Sequence

import pytest

from ledger.groups import Groups


class Work:
    """Work that ends when it is let; it fails on a group that holds a negative number."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.may_end = asyncio.Event()

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.groups.append(list(items))
        await self.may_end.wait()
        if min(items) < 0:
            raise ValueError("a negative number")
        return [item * 10 for item in items]


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_comes_meanwhile_is_done_together() -> None:
    """One alone is done at once; the others wait for it, and each gets its own outcome."""
    work = Work()
    groups = Groups(work, most=3)
    joined = [asyncio.ensure_future(groups.join(1))]
    await settle()
    joined += [asyncio.ensure_future(groups.join(number)) for number in (2, 3, 4, 5)]
    await settle()
    assert work.groups == [[1]]
    work.may_end.set()
    assert await asyncio.gather(*joined) == [10, 20, 30, 40, 50]
    assert work.groups == [[1], [2, 3, 4], [5]]


async def test_several_groups_may_be_under_way() -> None:
    """As many as may be; who comes then waits for the first that ends."""
    work = Work()
    groups = Groups(work, most=64, at_once=2)
    joined = []
    for number in (1, 2, 3, 4):
        joined.append(asyncio.ensure_future(groups.join(number)))
        await settle()
    assert work.groups == [[1], [2]]
    work.may_end.set()
    assert await asyncio.gather(*joined) == [10, 20, 30, 40]
    assert work.groups == [[1], [2], [3, 4]]


async def test_who_comes_in_one_turn_of_the_loop_comes_along() -> None:
    """There is no first one that goes alone."""
    work = Work()
    work.may_end.set()
    groups = Groups(work, most=64)
    assert await asyncio.gather(*(groups.join(number) for number in range(8)))
    assert work.groups == [list(range(8))]


async def test_who_is_cancelled_harms_nobody() -> None:
    """Neither within the group under way, nor while it waits: then it is not done at all."""
    work = Work()
    groups = Groups(work, most=64)
    first = [asyncio.ensure_future(groups.join(number)) for number in (1, 2)]
    await settle()
    second = [asyncio.ensure_future(groups.join(number)) for number in (3, 4)]
    await settle()
    first[0].cancel()
    second[0].cancel()
    work.may_end.set()
    outcomes = await asyncio.gather(*first, *second, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        asyncio.CancelledError,
        int,
        asyncio.CancelledError,
        int,
    ]
    assert (outcomes[1], outcomes[3]) == (20, 40)
    assert work.groups == [[1, 2], [4]]


async def test_a_failure_is_of_its_group_alone() -> None:
    """Who waited meanwhile is done, and so is who comes later."""
    work = Work()
    groups = Groups(work, most=64)
    joined = [asyncio.ensure_future(groups.join(-1))]
    await settle()
    joined += [asyncio.ensure_future(groups.join(2))]
    await settle()
    work.may_end.set()
    with pytest.raises(ValueError, match="a negative number"):
        await joined[0]
    assert await joined[1] == 20
    assert await groups.join(3) == 30
    assert work.groups == [[-1], [2], [3]]


async def test_a_burst_takes_all_the_room_there_is() -> None:
    """More than one group's worth in one turn of the loop: as many groups begin as may."""
    work = Work()
    groups = Groups(work, most=2, at_once=3)
    joined = [asyncio.ensure_future(groups.join(number)) for number in range(1, 8)]
    await settle()
    assert work.groups == [[1, 2], [3, 4], [5, 6]]
    work.may_end.set()
    assert await asyncio.gather(*joined) == [10, 20, 30, 40, 50, 60, 70]
