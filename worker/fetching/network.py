"""Resolves, checks and connects, in this order and for each connection anew.

Invariant: the address that is connected to is one that was checked, never a name. So a name that
changes between the check and the connection changes nothing (DNS rebinding). TLS and Host keep the
name.

Invariant: where one address of a name is not public, none of them is connected to.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import httpcore

from worker.fetching.addresses import LOOPBACK, is_address, special
from worker.fetching.bounds import FetchFailed
from worker.ports import Obstacle

MOST_ADDRESSES = 4
"""So many addresses of one name are tried; they share the time to connect."""


class Network(Protocol):
    """The machine's resolver and sockets."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a name, best first. Raises OSError."""

    async def connect(
        self, address: str, port: int, *, seconds: float
    ) -> httpcore.AsyncNetworkStream:
        """A connection to an address. Raises what httpcore raises."""


class SystemNetwork:
    """``Network`` of this machine, without its proxies."""

    def __init__(self) -> None:
        self._sockets = httpcore.AnyIOBackend()

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """By ``getaddrinfo``, in a thread."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(each[4][0]) for each in found))

    async def connect(
        self, address: str, port: int, *, seconds: float
    ) -> httpcore.AsyncNetworkStream:
        """By TCP."""
        return await self._sockets.connect_tcp(address, port, timeout=seconds)


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """What one connection of httpcore is made with. ``loopback``: to loopback and nothing else.

    Raises FetchFailed for a name or an address; what comes in is counted up to ``most_bytes``.
    """

    def __init__(self, network: Network, *, loopback: bool, most_bytes: int) -> None:
        self._network = network
        self._loopback = loopback
        self._most_bytes = most_bytes

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,  # noqa: ARG002 - never asked for
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """A stream to the first of the name's addresses that answers."""
        addresses = (await self._checked(host, port, timeout))[:MOST_ADDRESSES]
        seconds = (timeout or 0.0) / len(addresses)
        problem: Exception | None = None
        for address in addresses:
            try:
                stream = await self._network.connect(address, port, seconds=seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
            else:
                return BoundedStream(stream, self._most_bytes)
        raise FetchFailed(Obstacle.CONNECT, "no connection", retryable=True) from problem

    async def _checked(self, host: str, port: int, seconds: float | None) -> Sequence[str]:
        literal = is_address(host)
        addresses = [host] if literal else await self._resolved(host, port, seconds)
        for address in addresses:
            kind = special(address)
            if self._loopback and kind != LOOPBACK:
                kind = "http, but not loopback"
            elif self._loopback:
                kind = None
            if kind is not None:
                leads = address if literal else f"{host} leads to {address}"
                raise FetchFailed(Obstacle.ADDRESS, f"{leads}: {kind}")
        return addresses

    async def _resolved(self, host: str, port: int, seconds: float | None) -> Sequence[str]:
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._network.resolve(host, port)
        except (OSError, UnicodeError) as error:  # TimeoutError is an OSError
            unknown = isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN
            raise FetchFailed(
                Obstacle.RESOLVE, f"{host} has no address", retryable=not unknown
            ) from error
        if not addresses:
            raise FetchFailed(Obstacle.RESOLVE, f"{host} has no address")
        return addresses


class BoundedStream(httpcore.AsyncNetworkStream):
    """A stream that ends with FetchFailed once more than ``most_bytes`` have been read of it."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, most_bytes: int) -> None:
        self._stream = stream
        self._most = self._left = most_bytes

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> bytes:
        """What came next."""
        data = await self._stream.read(max_bytes, timeout)
        self._left -= len(data)
        if self._left < 0:
            raise FetchFailed(Obstacle.SIZE, f"more than {self._most} bytes")
        return data

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Send."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        """The same, encrypted: from here on what is decrypted is counted."""
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return BoundedStream(stream, self._most)

    def get_extra_info(self, info: str) -> Any:
        """What the stream knows of itself."""
        return self._stream.get_extra_info(info)
