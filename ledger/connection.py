"""Connections to Redis that send every command once.

Invariant: no client retries anything. A client that repeats a command whose reply was lost runs it
twice; a caller that must know asks again with the same operation or token.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import redis.asyncio
import redis.backoff
import redis.exceptions
import redis.retry
from redis.asyncio.retry import Retry as AsyncRetry

from ledger.errors import LedgerUnavailableError

TIMEOUT = timedelta(seconds=5)
"""For connecting and for each reply."""

MOST_CONNECTIONS = 64
"""Of one client; the next command waits for a free one, at most TIMEOUT."""

_UNAVAILABLE = (
    redis.exceptions.ConnectionError,  # refused, dropped, loading, authentication
    redis.exceptions.TimeoutError,
    redis.exceptions.ReadOnlyError,  # a replica
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.MasterDownError,
    redis.exceptions.InvalidResponse,  # something else answers there
    OSError,
)
_DATABASE = re.compile(r"/?[0-9]*")
_UNAVAILABLE_WORDS = ("MISCONF", "NOREPLICAS", "UNBLOCKED", "BUSY", "CLUSTERDOWN")


def address_problem(url: str) -> str | None:
    """What is wrong with the address of a Redis, after its name; None where nothing is."""
    if not url.startswith(("redis://", "rediss://", "unix://")):
        return "must start with redis://, rediss:// or unix://"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        return "has a port that is no number up to 65535"
    if parts.scheme != "unix" and not _DATABASE.fullmatch(parts.path):
        return "has a database that is no number"  # which the client would take for 0
    try:
        # redis-py's own method has no types.
        connect(url).connection_pool.make_connection()  # type: ignore[no-untyped-call]
    except (TypeError, ValueError, AttributeError, redis.exceptions.RedisError):
        return "has an option that the client does not know"
    return None


def connect(url: str, *, timeout: timedelta = TIMEOUT) -> redis.asyncio.Redis:
    """An asyncio client of ``redis://``, ``rediss://`` or ``unix://``. Nothing is connected yet."""
    seconds = timeout.total_seconds()
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        url,
        max_connections=MOST_CONNECTIONS,
        timeout=seconds,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=AsyncRetry(redis.backoff.NoBackoff(), 0),
        retry_on_error=[],
        decode_responses=False,
    )
    return redis.asyncio.Redis.from_pool(pool)


def connect_sync(url: str, *, timeout: timedelta = TIMEOUT) -> redis.Redis:
    """The same for code that is not async: what receives webhooks and feeds the queue."""
    seconds = timeout.total_seconds()
    return redis.Redis.from_url(
        url,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        retry_on_error=[],
        decode_responses=False,
    )


@contextmanager
def answered() -> Iterator[None]:
    """Whatever keeps Redis from answering becomes LedgerUnavailableError."""
    try:
        yield
    except _UNAVAILABLE as error:
        raise LedgerUnavailableError(str(error) or type(error).__name__) from error
    except redis.exceptions.ResponseError as error:
        if str(error).startswith(_UNAVAILABLE_WORDS):
            raise LedgerUnavailableError(str(error)) from error
        raise
