"""The sandbox GitHub without sockets: an httpx transport over ``GitHub.handle``."""

import asyncio

import httpx

from sandbox.github import GitHub
from sandbox.github.wire import Drop, Hang, Request, Respond


class SandboxTransport(httpx.AsyncBaseTransport):
    """Answers in the same process. A dropped connection, and a hang, are what they are."""

    def __init__(self, github: GitHub) -> None:
        self._github = github

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        outcome = self._github.handle(
            Request(
                method=request.method,
                path=request.url.raw_path.partition(b"?")[0].decode("ascii"),
                query=request.url.query.decode("ascii"),
                headers=dict(request.headers),
                body=await request.aread(),
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
