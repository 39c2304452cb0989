"""The server of a round: killed, emptied, set back, or replaced by its replica, behind one proxy.

Whatever it becomes, the processes know one address. While it is away the proxy refuses them, and a
server is reached only once it has the settings of the round: as one that is started with them.
"""

import shutil
import socket
from asyncio import to_thread
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from ledger.connection import connect
from ledger.server import EmbeddedServer
from tests.processes.proxies import Proxy, unix

REPLICA_TRIES = 60
"""Each a second long: the client's own time-out is shorter than a first copy may take."""

PORT_TRIES = 5


class Keeper:
    """A real server on a folder. ``settings`` are changed before anybody can reach it."""

    def __init__(self, folder: Path, settings: Mapping[str, str], *, replica: bool = False) -> None:
        self._folder = folder
        self._settings = dict(settings)
        self._with_replica = replica
        self._server = EmbeddedServer(folder / "data")
        self._replica: EmbeddedServer | None = None

    async def __aenter__(self) -> Self:
        await to_thread(self._server.__enter__)
        await self._set()
        if self._with_replica:
            self._replica = EmbeddedServer(self._folder / "other")
            await to_thread(self._replica.__enter__)
            await self._follow(self._replica)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in (self._server, self._replica):
            if server is not None:
                await to_thread(server.__exit__, None, None, None)

    @property
    def url(self) -> str:
        """The server's own address, past the proxy."""
        return self._server.url

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return unquote(urlsplit(self._server.url).path)

    async def crash(self, proxy: Proxy) -> None:
        """SIGKILL; whoever is connected is cut off."""
        proxy.shut = True
        await to_thread(self._server.kill)
        await proxy.cut()

    async def come_back(self, proxy: Proxy, *, empty: bool = False, lost_bytes: int = 0) -> None:
        """Start on the same folder: as it was left, ``empty``, or without the last bytes of its
        AOF."""
        await to_thread(self._server.__exit__, None, None, None)
        files = self._folder / "data" / "ledger" / "appendonlydir"
        if empty:
            shutil.rmtree(files)
        if lost_bytes:
            _cut_off(files, lost_bytes)
        self._server = EmbeddedServer(self._folder / "data")
        await to_thread(self._server.__enter__)
        await self._set()
        proxy.shut = False

    async def cut_replication(self) -> None:
        """The replica gets nothing more: it stands by itself from now on."""
        assert self._replica is not None
        async with connect(self._replica.url) as client:
            await client.replicaof("NO", "ONE")

    async def promote(self, proxy: Proxy) -> None:
        """The server is killed, and the replica that was cut off takes its place."""
        assert self._replica is not None
        await self.crash(proxy)
        self._server, self._replica = self._replica, self._server
        proxy.server = unix(self.socket)
        proxy.shut = False

    async def _set(self) -> None:
        async with connect(self._server.url) as client:
            for name, value in self._settings.items():
                await client.config_set(name, value)

    async def _follow(self, replica: EmbeddedServer) -> None:
        """Have the replica follow the server, until it has everything."""
        async with connect(self._server.url) as primary, connect(replica.url) as other:
            await primary.config_set("repl-diskless-sync-delay", "0")
            port = await _given_a_port(primary)
            await other.replicaof("127.0.0.1", port)
            for _ in range(REPLICA_TRIES):
                if await primary.wait(1, 1000):
                    return
        raise TimeoutError("the replica did not come up")


async def _given_a_port(server: Redis) -> int:
    """Have it listen on a port, another one where somebody was faster."""
    for _ in range(PORT_TRIES):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        with suppress(ResponseError):
            await server.config_set("port", str(port))
            return port
    raise OSError("no port is free")


def _cut_off(files: Path, size: int) -> None:
    """What a machine that loses power loses of a file that was not flushed."""
    newest = max(files.glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
    with newest.open("r+b") as file:
        file.truncate(max(0, newest.stat().st_size - size))
