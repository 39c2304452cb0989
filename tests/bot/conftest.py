"""One receiver for the tests of a module, over an empty database for each test."""

from collections.abc import AsyncIterator

import pytest

from ledger.server import EmbeddedServer
from tests.bot.receiver import Receiver, receiving


@pytest.fixture(scope="module")
async def listening(valkey: EmbeddedServer) -> AsyncIterator[Receiver]:
    """One that listens on loopback."""
    async with receiving(valkey.url) as receiver:
        yield receiver


@pytest.fixture
async def receiver(listening: Receiver, redis_url: str) -> Receiver:
    """The same, which knows nothing yet."""
    assert redis_url
    listening.anew()
    return listening
