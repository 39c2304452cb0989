"""A ledger on the real server; also with bounds short enough to wait for."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import redis.asyncio

from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.timing import LedgerTiming

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


@pytest.fixture
async def ledger(client: redis.asyncio.Redis, timing: LedgerTiming) -> Ledger:
    """A first ledger: its epoch stands, and nothing is quiet."""
    opened = open_ledger(client, timing)
    await opened.epochs.ensure(first=True)
    return opened


@pytest.fixture
async def brief(ledger: Ledger, client: redis.asyncio.Redis) -> Ledger:
    """The same ledger with leases that lapse soon."""
    return open_ledger(
        client,
        LedgerTiming(
            lease=timedelta(milliseconds=300),
            lock_delay=timedelta(milliseconds=400),
            absence_window=timedelta(milliseconds=200),
            request=timedelta(milliseconds=40),
            margin=timedelta(milliseconds=10),
        ),
    )
