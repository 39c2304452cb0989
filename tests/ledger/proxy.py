"""A proxy on a TCP port in front of a server's socket, which can swallow a reply."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class Proxy:
    """Passes bytes on. ``swallow``: the next request reaches the server, its reply nobody."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self.swallow = False
        self.swallowed = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, until it or the server goes, or a reply was swallowed."""
        upstream, to_server = await asyncio.open_unix_connection(self._target)
        try:
            while request := await reader.read(1 << 20):
                to_server.write(request)
                reply = await upstream.read(1 << 20)
                if self.swallow:
                    self.swallow = False
                    self.swallowed += 1
                    return
                writer.write(reply)
        except ConnectionError:
            return
        finally:
            to_server.close()
            writer.close()


@asynccontextmanager
async def proxied(target: Path) -> AsyncIterator[Proxy]:
    """A proxy in front of this socket."""
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy.url = f"redis://{host}:{port}/0"
    async with server:
        yield proxy
