"""The web's server: a thread with an event loop of its own, on a free port of loopback.

It reads requests and writes answers on bare streams, since a server that knows HTTP would not send
what some of the answers are.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from sandbox.listening import listen
from sandbox.web.answers import Answer
from sandbox.web.control import PREFIX, control
from sandbox.web.site import Site

_MOST_HEAD_BYTES = 64 * 1024
_START_SECONDS = 10


class WebServer(Site):
    """`with WebServer() as web: web.put("/a", Page("hello"))`, then ask at ``web.url + "/a"``.

    ``tls`` makes it HTTPS.
    """

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__()
        self._socket = listen(host, port)
        self._tls = tls
        self.port: int = self._socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{shown}:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sandbox-web", daemon=True)

    def start(self) -> Self:
        """Serve in a thread."""
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            raise RuntimeError("the sandbox web did not start")
        return self

    def stop(self) -> None:
        """Let go of every request, hanging ones too."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._meet(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(
            accept, sock=self._socket, ssl=self._tls, limit=_MOST_HEAD_BYTES
        )
        self._started.set()
        await self._stopping.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request, one answer. What it sends it also gets through, unless the
        client goes."""
        try:
            answer = await self._heard(reader)
            if await _sent(answer.send(), reader, writer):
                writer.close()
                await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return
        finally:
            writer.transport.abort()

    async def _heard(self, reader: asyncio.StreamReader) -> Answer:
        """Raises ValueError for what is no request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.rstrip("\r\n").split("\r\n")
        method, target, _ = line.split(" ", 2)
        pairs = (field.split(":", 1) for field in fields)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        if target.startswith(PREFIX):
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            return control(self, method, target.removeprefix(PREFIX), body)
        return self.ask(method, target, headers)


async def _sent(
    pieces: AsyncIterator[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Did all of it go out? False where the client went before."""

    async def send() -> None:
        async for piece in pieces:
            writer.write(piece)
            await writer.drain()

    sending, leaving = asyncio.create_task(send()), asyncio.create_task(reader.read())
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return sending.done() and sending.exception() is None
    finally:
        for task in (sending, leaving):
            task.cancel()
        with contextlib.suppress(OSError):
            await asyncio.gather(sending, leaving, return_exceptions=True)
