"""Fixtures for tests against the real server."""

from collections.abc import Iterator

import pytest
import redis

from ledger.connection import connect_sync
from ledger.server import EmbeddedServer


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, as the program does."""
    return "asyncio"


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """One embedded server for the whole session."""
    with EmbeddedServer(tmp_path_factory.mktemp("data")) as server:
        yield server


@pytest.fixture
def redis_url(valkey: EmbeddedServer) -> str:
    """The address of an empty database."""
    client: redis.Redis
    with connect_sync(valkey.url) as client:
        client.flushall()
    return valkey.url
