"""Arrivals: a group is accepted in one round trip, each delivery with its jobs or not at all."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import redis.asyncio

from ledger.arrivals import Arrival, Arrivals, AskedJob, JobPattern, Standing
from ledger.codec import text
from ledger.connection import connect
from ledger.errors import LedgerUnavailableError
from ledger.records import Due
from tests.ledger.proxy import proxied

NOON = datetime(2026, 9, 16, 12, tzinfo=UTC)
PATTERN = JobPattern(
    [
        ("SADD", "queues", "q"),
        ("HSET", "job:some-id", "data", b"\xff some data", "tries", 3, "name", "some-id"),
        ("RPUSH", "q", "some-id"),
    ],
    "some-id",
    b"\xff some data",
)
NEW, KNOWN, MISREAD = Standing.NEW, Standing.KNOWN, Standing.MISREAD
NOBODY: frozenset[int] = frozenset()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    """A client of an empty database."""
    async with connect(redis_url) as client:
        yield client


def arrival(
    guid: str, meaning: str = "", jobs: int = 1, bot_ids: frozenset[int] = NOBODY
) -> Arrival:
    """One that asks for so many things."""
    asked = tuple(
        AskedJob(Due.ask(guid, index), f'{{"é": "{guid}"}}', f"{guid}-{index}", b"\x00\xfe")
        for index in range(jobs)
    )
    return Arrival(guid, meaning, bot_ids, asked, NOON)


async def queued(client: redis.asyncio.Redis) -> list[str]:
    """The ids in the queue."""
    return [text(id_) for id_ in await client.lrange("q", 0, -1)]


async def test_each_is_the_pattern_with_its_own_id_and_data(client: redis.asyncio.Redis) -> None:
    """As the pattern's commands have it; and what is asked for is due until it is done."""
    assert await Arrivals(client).accept(
        [arrival("d-1", "m"), arrival("d-2", jobs=2)], PATTERN
    ) == [
        NEW,
        NEW,
    ]
    assert await queued(client) == ["d-1-0", "d-2-0", "d-2-1"]
    assert await client.hgetall("job:d-2-1") == {
        b"data": b"\x00\xfe",
        b"tries": b"3",
        b"name": b"d-2-1",
    }
    assert await client.smembers("queues") == {b"q"}
    assert json.loads(text(await client.get("ask:d-1:0"))) == {"é": "d-1"}
    assert await client.ttl("ask:d-1:0") == 86_400
    due = [(b"ask d-1:0", NOON), (b"ask d-2:0", NOON), (b"ask d-2:1", NOON)]
    assert await client.zrange("window:due", 0, -1, withscores=True) == [
        (name, at.timestamp() * 1000) for name, at in due
    ]
    kept = [await client.ttl(key) for key in await client.keys("delivery:*")]
    kept += [await client.ttl(key) for key in await client.keys("meaning:*")]
    assert kept == [2_592_000] * 3


async def test_what_was_accepted_is_known(client: redis.asyncio.Redis) -> None:
    """By its id or by its meaning, in an earlier group or in the same; no meaning is like none."""
    arrivals = Arrivals(client)
    first = [arrival("d-1", "m"), arrival("d-1"), arrival("d-2", "m"), arrival("d-3")]
    assert await arrivals.accept(first, PATTERN) == [NEW, KNOWN, KNOWN, NEW]
    again = [arrival("d-3"), arrival("d-4", "m"), arrival("d-5")]
    assert await arrivals.accept(again, PATTERN) == [KNOWN, KNOWN, NEW]
    assert await queued(client) == ["d-1-0", "d-3-0", "d-5-0"]


async def test_what_asks_for_nothing_leaves_nothing(client: redis.asyncio.Redis) -> None:
    """It is read under the right user ids, and that is all."""
    assert await Arrivals(client).accept([arrival("d-1", "m", jobs=0)], PATTERN) == [NEW]
    assert await client.dbsize() == 0


async def test_a_group_that_was_misread_leaves_nothing(client: redis.asyncio.Redis) -> None:
    """The bot has another user id: all are read again. Who already knew is not held up later."""
    arrivals = Arrivals(client)
    await client.sadd("bot:ids", 9000)
    assert await arrivals.accept([arrival("d-1"), arrival("d-2")], PATTERN) == [MISREAD, MISREAD]
    assert await client.dbsize() == 1
    assert arrivals.bot_ids == {9000}
    knowing = frozenset({9000})
    group = [arrival("d-1"), arrival("d-2", bot_ids=knowing), arrival("d-3", bot_ids=knowing)]
    assert await arrivals.accept(group, PATTERN) == [MISREAD, NEW, NEW]
    assert await queued(client) == ["d-2-0", "d-3-0"]
    await client.srem("bot:ids", 9000)
    assert await arrivals.accept([arrival("d-4", bot_ids=knowing)], PATTERN) == [MISREAD]
    assert arrivals.bot_ids == NOBODY


async def test_many_at_once_make_one_job(redis_url: str) -> None:
    """Groups of several processes, which mean the same."""
    async with connect(redis_url) as one, connect(redis_url) as other:
        sides = [Arrivals(one), Arrivals(other)]
        groups = [[arrival(f"d-{number}", "m"), arrival("d-0", "m")] for number in range(16)]
        found = await asyncio.gather(
            *(sides[number % 2].accept(group, PATTERN) for number, group in enumerate(groups))
        )
        assert sum(standings.count(NEW) for standings in found) == 1
        assert len(await queued(one)) == 1


async def test_a_group_whose_reply_is_lost_may_be_delivered_again(
    redis_url: str, client: redis.asyncio.Redis
) -> None:
    """It is unavailable, though it was accepted; the same again is known, and makes no job."""
    socket = Path(unquote(urlsplit(redis_url).path))
    async with proxied(socket) as proxy, connect(proxy.url) as lossy:
        arrivals = Arrivals(lossy)
        assert await arrivals.accept([arrival("d-0")], PATTERN) == [NEW]
        group = [arrival("d-1"), arrival("d-2")]
        proxy.swallow = True
        with pytest.raises(LedgerUnavailableError):
            await arrivals.accept(group, PATTERN)
        assert await arrivals.accept(group, PATTERN) == [KNOWN, KNOWN]
    assert await queued(client) == ["d-0-0", "d-1-0", "d-2-0"]


def test_a_pattern_without_its_data_is_none() -> None:
    """The queue's library writes jobs in another form: nobody could read ours."""
    with pytest.raises(ValueError, match="another form"):
        JobPattern([("HSET", "job:some-id", "data", b"else")], "some-id", b"data")
