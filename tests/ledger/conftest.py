"""A ledger on the real server and one in memory; also with bounds short enough to wait for.

One suite holds both to the same rules: whatever asks for ``place``, ``ledger`` or ``brief`` is run
twice. What only the real server has (its clients, its processes) is asked of ``client``.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis.asyncio

from ledger.connection import connect
from ledger.timing import LedgerTiming
from tests.ledger.places import AnyLedger, Memory, OwnValkey, Place, Valkey, brief_timing

LAPSE = 0.31
"""Seconds, a little more than a brief lease."""

LOCK_DELAY = 0.41
"""Seconds, a little more than the brief lock delay."""


@pytest.fixture
def timing() -> LedgerTiming:
    """The bounds of the program."""
    return LedgerTiming()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    """A client of an empty database."""
    async with connect(redis_url) as client:
        yield client


@pytest.fixture(params=["valkey", "memory"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Where the ledger is."""
    if request.param == "memory":
        yield Memory()
    else:
        async with connect(request.getfixturevalue("redis_url")) as client:
            yield Valkey(client)


@pytest.fixture(params=["valkey", "memory"])
async def own_place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """The same with a server of the test's own, which may be restarted."""
    if request.param == "memory":
        yield Memory()
    else:
        server = await OwnValkey(tmp_path).start()
        yield server
        await server.stop()


@pytest.fixture
async def ledger(place: Place, timing: LedgerTiming) -> AnyLedger:
    """A first ledger: its epoch stands, and nothing is quiet."""
    opened = place.open(timing)
    await opened.epochs.ensure(first=True)
    return opened


@pytest.fixture
async def brief(ledger: AnyLedger, place: Place, timing: LedgerTiming) -> AnyLedger:
    """The same ledger with leases that lapse soon."""
    return place.open(brief_timing(timing))
