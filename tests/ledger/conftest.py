"""A ledger on the real server, with bounds short enough to wait for."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import redis.asyncio

from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.timing import LedgerTiming

TIMING = LedgerTiming(
    lease=timedelta(milliseconds=250),
    lock_delay=timedelta(milliseconds=150),
    absence_window=timedelta(milliseconds=400),
    request=timedelta(milliseconds=50),
    margin=timedelta(milliseconds=20),
    write_interval=timedelta(0),
)


@pytest.fixture
def timing() -> LedgerTiming:
    """Bounds of a fraction of a second."""
    return TIMING


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    """A client of an empty database."""
    async with connect(redis_url) as client:
        yield client


@pytest.fixture
async def ledger(client: redis.asyncio.Redis, timing: LedgerTiming) -> Ledger:
    """A first ledger: its epoch stands, and nothing is quiet."""
    opened = open_ledger(client, timing)
    await opened.epochs.ensure(first=True)
    return opened
