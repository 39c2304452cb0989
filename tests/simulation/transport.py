"""The sandbox GitHub without sockets: an httpx transport over ``GitHub.handle``."""

import asyncio
from typing import Final

import httpx

from sandbox.github import GitHub
from sandbox.github.wire import Drop, Hang, Request, Respond

LATENCY_SECONDS: Final = 0.002
"""What a request takes: nothing happens at the same instant as what it was asked after."""


class SandboxTransport(httpx.AsyncBaseTransport):
    """Answers in the same process. A dropped connection, and a hang, are what they are."""

    def __init__(self, github: GitHub) -> None:
        self._github = github

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        await asyncio.sleep(LATENCY_SECONDS)
        outcome = self._github.handle(
            Request(
                method=request.method,
                path=request.url.raw_path.partition(b"?")[0].decode("ascii"),
                query=request.url.query.decode("ascii"),
                headers=dict(request.headers),
                body=body,
            )
        )
        while isinstance(outcome, Hang):
            await asyncio.sleep(outcome.seconds or 0)
            outcome = outcome.resume()
        if isinstance(outcome, Drop):
            raise httpx.RemoteProtocolError("the server closed the connection", request=request)
        assert isinstance(outcome, Respond)
        return httpx.Response(
            outcome.status, headers=dict(outcome.headers), content=outcome.body, request=request
        )
