"""TCP proxies between the processes and what they talk to: they see everything, and can strike.

A proxy understands just enough to cut the stream into requests and replies. Each request and reply
goes into a journal that all proxies of a round share, so that the order of a claim in the ledger
and of the write on GitHub can be checked from outside. A ``Strike`` names one instant: before a
request is passed on, or after its reply has come; what is done then, and whether the request or
reply is lost.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

Deed = Callable[[], Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK = 1 << 16
LONGEST_LINE = 1 << 20


@dataclass(slots=True)
class Noted:
    """One request in the journal, and the start of its reply once that has come."""

    way: str  # ledger, github or model
    text: str
    asked_at: int
    reply: str = ""
    answered_at: int | None = None


@dataclass(slots=True)
class Journal:
    """What passed. Requests and replies have one order: ``asked_at`` and ``answered_at`` count
    both."""

    notes: list[Noted] = field(default_factory=list)
    count: int = 0

    def asked(self, way: str, text: str) -> Noted:
        """A request is passed on."""
        self.count += 1
        noted = Noted(way, text, self.count)
        self.notes.append(noted)
        return noted

    def answered(self, noted: Noted, reply: str) -> None:
        """The reply to it has come from the server."""
        self.count += 1
        noted.reply, noted.answered_at = reply, self.count


@dataclass(slots=True)
class Strike:
    """One instant, and what happens then, once.

    ``where`` is searched for in the request's text, of the ``occurrence``-th that fits; ``after``:
    the server has done it and replied. ``lose``: the connection is cut instead of passing it on.
    """

    way: str
    where: str
    after: bool
    deed: Deed
    lose: bool = False
    occurrence: int = 1
    matched: int = 0
    struck: bool = False

    def meets(self, way: str, text: str) -> bool:
        """Count a request that fits; whether this is the one."""
        if self.struck or way != self.way or not re.search(self.where, text):
            return False
        self.matched += 1
        if self.matched < self.occurrence:
            return False
        self.struck = True
        return True


@dataclass(slots=True)
class Wire:
    """What the proxies of one round share."""

    journal: Journal = field(default_factory=Journal)
    strikes: list[Strike] = field(default_factory=list)
    deeds: list[asyncio.Future[None]] = field(default_factory=list)

    async def act(self, strike: Strike) -> None:
        """Do what happens then. It is done to its end, even where the connection that met it is cut
        meanwhile."""
        deed = asyncio.ensure_future(strike.deed())
        self.deeds.append(deed)
        await asyncio.shield(deed)

    def strike(self, way: str, text: str) -> Strike | None:
        """The strike that this request meets."""
        return next((each for each in self.strikes if each.meets(way, text)), None)


class Server(Protocol):
    """Where a proxy connects to."""

    async def __call__(self) -> Streams:
        """Raises OSError where nobody is there."""
        ...


class Proxy:
    """Listens on a port of loopback. ``shut`` refuses whoever comes, and cuts who is there."""

    def __init__(self, wire: Wire, server: Server) -> None:
        self.wire = wire
        self.port = 0
        self.shut = False
        self.server = server
        self._listening: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=CHUNK)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and cut every connection."""
        assert self._listening is not None
        self._listening.close()
        await self.cut()

    async def cut(self) -> None:
        """Cut every connection."""
        serving = self._serving - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            if self.shut:
                return
            from_server, upstream = await self.server()
            await self.relay((reader, writer), (from_server, upstream))
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # one side is gone, and so is the other
        finally:
            for each in (writer, upstream):
                if each is not None:
                    each.transport.abort()

    async def relay(self, client: Streams, server: Streams) -> None:
        """Pass on until one side ends, or something is lost."""
        raise NotImplementedError


class RedisProxy(Proxy):
    """Between a process and Redis. ``scripts`` names what is called by a hash."""

    def __init__(self, wire: Wire, server: Server, scripts: Mapping[str, str]) -> None:
        super().__init__(wire, server)
        self._scripts = {sha.encode(): name.encode() for sha, name in scripts.items()}

    async def relay(self, client: Streams, server: Streams) -> None:
        line = _Line()
        ways = (
            asyncio.ensure_future(self._requests(client[0], server[1], line)),
            asyncio.ensure_future(self._replies(server[0], client[1], line)),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: "_Line"
    ) -> None:
        while True:
            raw, words = await _command(reader)
            if words[0].upper() not in (b"EVALSHA", b"EVAL"):
                writer.write(raw)
                continue
            words[0] = self._scripts.get(words[1], words[1])
            text = b" ".join((words[0], *words[3:])).decode("utf-8", "replace")
            strike = self.wire.strike("ledger", text)
            if strike is not None and not strike.after:
                await self.wire.act(strike)
                if strike.lose:
                    return
            line.noted = self.wire.journal.asked("ledger", text)
            line.strike = strike if strike is not None and strike.after else None
            writer.write(raw)
            await writer.drain()

    async def _replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: "_Line"
    ) -> None:
        while reply := await reader.read(CHUNK):
            noted, strike = line.noted, line.strike
            line.noted = line.strike = None
            if noted is not None:
                self.wire.journal.answered(noted, reply[:200].decode("utf-8", "replace"))
            if strike is not None:
                await self.wire.act(strike)
                if strike.lose:
                    return
            writer.write(reply)
            await writer.drain()


@dataclass(slots=True)
class _Line:
    """A connection of Redis: what its next reply belongs to."""

    noted: Noted | None = None
    strike: Strike | None = None


class HttpProxy(Proxy):
    """Between a process and an HTTP server, named by ``way``.

    A request that was passed on reaches the server though its client be gone, as a request that is
    under way does.
    """

    def __init__(self, wire: Wire, server: Server, way: str) -> None:
        super().__init__(wire, server)
        self._way = way

    async def relay(self, client: Streams, server: Streams) -> None:
        while True:
            head = await client[0].readuntil(b"\r\n\r\n")
            body = b"".join([piece async for piece in _body(client[0], head, is_reply=False)])
            method, path = head.split(b" ", 2)[:2]
            text = b" ".join((method, path, body)).decode("utf-8", "replace")
            strike = self.wire.strike(self._way, text)
            if strike is not None and not strike.after:
                await self.wire.act(strike)
                if strike.lose:
                    return
            noted = self.wire.journal.asked(self._way, text)
            server[1].write(head + body)
            await server[1].drain()
            after = strike if strike is not None and strike.after else None
            if await self._reply(client[1], server[0], noted, after):
                return

    async def _reply(
        self,
        writer: asyncio.StreamWriter,
        reader: asyncio.StreamReader,
        noted: Noted,
        strike: Strike | None,
    ) -> bool:
        """Whether it was lost."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.wire.journal.answered(noted, head.split(b"\r\n", 1)[0].decode("ascii", "replace"))
        if strike is not None:
            head += b"".join([piece async for piece in _body(reader, head, is_reply=True)])
            await self.wire.act(strike)
            if strike.lose:
                return True
            writer.write(head)
        else:
            writer.write(head)
            async for piece in _body(reader, head, is_reply=True):
                writer.write(piece)
                await writer.drain()
        await writer.drain()
        return False


async def _command(reader: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    """The next command of a Redis client, as it came and as its words. Raises EOFError."""
    raw = first = await reader.readuntil(b"\r\n")
    words: list[bytes] = []
    for _ in range(int(first[1:])):
        length = await reader.readuntil(b"\r\n")
        word = await reader.readexactly(int(length[1:]) + 2)
        raw += length + word
        words.append(word[:-2])
    return raw, words


async def _body(
    reader: asyncio.StreamReader, head: bytes, *, is_reply: bool
) -> AsyncIterator[bytes]:
    """The pieces of a body, as they come."""
    headers = head.lower()
    length = re.search(rb"\r\ncontent-length: *(\d+)", headers)
    if re.search(rb"\r\ntransfer-encoding: *chunked", headers):
        more = True
        while more:
            size = await reader.readuntil(b"\r\n")
            more = int(size.split(b";")[0], 16) > 0
            yield size + await reader.readexactly(int(size.split(b";")[0], 16) + 2)
    elif length is not None:
        yield await reader.readexactly(int(length[1]))
    elif is_reply and not re.match(rb"http/1.1 (1\d\d|204|304)", headers):
        while piece := await reader.read(CHUNK):
            yield piece


def tcp(host: str, port: int) -> Server:
    """A server on a port."""

    async def open_it() -> Streams:
        return await asyncio.open_connection(host, port, limit=LONGEST_LINE)

    return open_it


def unix(path: str) -> Server:
    """A server on a socket."""

    async def open_it() -> Streams:
        return await asyncio.open_unix_connection(path, limit=LONGEST_LINE)

    return open_it


@contextlib.asynccontextmanager
async def listening(*proxies: Proxy) -> AsyncIterator[None]:
    """The proxies listen, until the block ends."""
    for proxy in proxies:
        await proxy.start()
    try:
        yield
    finally:
        for proxy in proxies:
            await proxy.stop()
