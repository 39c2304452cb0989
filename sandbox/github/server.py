"""The sandbox GitHub over HTTP: uvicorn in a thread, or in the foreground of a process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, cast

import httpx
import uvicorn
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sandbox.github.control import PREFIX, control
from sandbox.github.core import GitHub
from sandbox.github.pages import page
from sandbox.github.sender import send_forever
from sandbox.github.wire import Drop, Hang, Outcome, Request, Respond
from sandbox.listening import listen

MOST_THREADS = 64
STEP_SECONDS = 0.01
CALL_TIMEOUT_SECONDS = 60.0

Client = tuple[str, int]


class GitHubServer:
    """`with GitHubServer(github, port=0) as server: server.url`."""

    def __init__(self, github: GitHub, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.github = github
        self._socket = listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        github.base_url = self.url
        site = _Site(github)
        self._site = site
        self._server = uvicorn.Server(
            uvicorn.Config(
                site,
                http=site.protocol(),
                lifespan="on",
                log_level="warning",
                timeout_graceful_shutdown=1,
                timeout_keep_alive=60,
            )
        )
        self._thread = threading.Thread(target=self.run, name="sandbox-github", daemon=True)

    def run(self) -> None:
        """Serves until stopped (or, in the main thread, until a signal)."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the sandbox GitHub did not start")
            time.sleep(STEP_SECONDS)

    def stop(self) -> None:
        self._site.stopping = True
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _Site:
    """The ASGI application. Requests are handled in threads: a fault's callback may block."""

    def __init__(self, github: GitHub) -> None:
        self.github = github
        self.stopping = False
        self._connections: dict[Client, asyncio.Transport] = {}
        self._gone: dict[Client, asyncio.Event] = {}
        self._threads = ThreadPoolExecutor(MOST_THREADS, "sandbox-github")

    def protocol(self) -> type[H11Protocol]:
        """uvicorn's protocol, which tells us its connections so that one can be dropped."""
        connections, gone = self._connections, self._gone

        class Droppable(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if self.client is not None:
                    connections[self.client] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                if self.client is not None:
                    connections.pop(self.client, None)
                super().connection_lost(exc)
                if self.client in gone:
                    gone.pop(self.client).set()

        return Droppable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        sender = asyncio.create_task(send_forever(self.github))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        sender.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sender
        self._threads.shutdown(wait=False, cancel_futures=True)
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = StarletteRequest(scope, receive)
        request = Request(
            method=asked.method,
            path=scope["raw_path"].split(b"?")[0].decode("latin-1"),
            query=scope["query_string"].decode("latin-1"),
            headers=dict(asked.headers),
            body=await asked.body(),
        )
        answer = await self._settle(await self._in_thread(request))
        if isinstance(answer, Drop):
            await self._drop(cast("Client", scope["client"]))
            return
        await Response(answer.body, answer.status, answer.headers)(scope, receive, send)

    async def _in_thread(self, request: Request) -> Outcome:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._handle, request)

    def _handle(self, request: Request) -> Outcome:
        if request.path.startswith(PREFIX):
            return control(self.github, request, _post)
        shown = page(self.github, request)
        return self.github.handle(request) if shown is None else shown

    async def _settle(self, outcome: Outcome) -> Respond | Drop:
        """Waits out hangs without keeping other requests waiting. A client that has gone
        meanwhile changes nothing: the late request still lands.
        """
        loop = asyncio.get_running_loop()
        while isinstance(outcome, Hang):
            end = None if outcome.seconds is None else loop.time() + outcome.seconds
            while not outcome.landed and (end is None or loop.time() < end):
                if self.stopping:
                    return Drop()
                await asyncio.sleep(STEP_SECONDS)
            outcome = await loop.run_in_executor(self._threads, outcome.resume)
        return outcome

    async def _drop(self, client: Client) -> None:
        transport = self._connections.get(client)
        if transport is None:
            return
        gone = self._gone[client] = asyncio.Event()
        transport.abort()
        await gone.wait()  # uvicorn must know before we return without an answer


def _post(address: str, body: bytes) -> None:
    """Tells a URL that a fault has struck, and waits for its answer."""
    httpx.post(
        address,
        content=body,
        headers={"content-type": "application/json"},
        timeout=CALL_TIMEOUT_SECONDS,
        trust_env=False,
    )
