"""The reader and the writer of one process, over one connection."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from worker.github.auth import AppCredentials, Authority, TokenCredentials
from worker.github.connection import DEFAULT_API_URL, Connection, RequestKind
from worker.github.reader import RestReader
from worker.github.reads import Reads
from worker.github.writer import RestWriter
from worker.ports import Clock, Timing


@dataclass(frozen=True, slots=True)
class GitHubSession:
    """What asks GitHub, and what writes there."""

    reader: RestReader
    writer: RestWriter


@asynccontextmanager
async def open_github(
    credentials: AppCredentials | TokenCredentials,
    *,
    clock: Clock,
    timing: Timing,
    api_url: str = DEFAULT_API_URL,
    bot_id: int | None = None,
    may_write: bool = True,
    count: Callable[[RequestKind], None] = lambda _: None,
) -> AsyncIterator[GitHubSession]:
    """Open a connection and close it. It belongs to the event loop in which it was opened.

    ``bot_id`` is the account that a token is said to belong to; ``count`` hears of each request.
    """
    async with Connection(clock=clock, timing=timing, api_url=api_url, count=count) as connection:
        authority = Authority(credentials, connection, clock)
        reader = RestReader(Reads(connection, authority, clock), authority, bot_id=bot_id)
        yield GitHubSession(reader, RestWriter(connection, authority, clock, may_write=may_write))
