"""A server that does nothing with a delivery but answer it: how fast the load can be at all."""

import asyncio
import sys
from typing import Final

_ANSWER: Final = (
    b"HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\ncontent-type: application/json\r\n\r\n"
    b'{"outcome":"accepted"}'
)


class _Answering(asyncio.Protocol):
    """One connection. It reads what the load sends, and no other HTTP."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._got = b""

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, ended, body = self._got.partition(b"\r\n\r\n")
        if ended and len(body) >= int(head.partition(b"Content-Length: ")[2].partition(b"\r")[0]):
            self._got = b""
            self._transport.write(_ANSWER)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0)
    sys.stdout.write(f"127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
