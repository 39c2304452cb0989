"""Where a ledger is: on the real server, or in memory. What can be asked of both, and befall both.

``place`` in ``conftest.py`` runs a test at each of them. On the real server time passes by itself;
in memory it is moved.
"""

import asyncio
import shutil
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis.asyncio

from ledger.codec import stamp, text
from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from tests.simulation.memory.ledger import MemoryLedger, MemoryServer, memory_ledger
from tests.simulation.memory.rows import Kept, State
from triage.identifiers import Family

AnyLedger = Ledger | MemoryLedger

_NEWEST = 50


class Place(ABC):
    """A server with nothing on it."""

    @abstractmethod
    def open(
        self, timing: LedgerTiming, *, monotonic: Callable[[], float] = time.monotonic
    ) -> AnyLedger:
        """The ledger there, with these bounds."""

    @abstractmethod
    async def now(self) -> datetime:
        """The server's time."""

    @abstractmethod
    async def pass_time(self, seconds: float) -> None:
        """So much time passes."""

    @abstractmethod
    async def everything(self) -> object:
        """All that stands there, as a value that compares."""

    @abstractmethod
    async def set_epoch(self, **fields: str | int) -> None:
        """Write fields of the epoch behind its back."""

    @abstractmethod
    async def forget_epoch(self) -> None:
        """Delete the epoch."""

    @abstractmethod
    async def lapse(self, dedupe_key: str, ago: timedelta) -> None:
        """A run's lease, if there is one, lapsed so long ago."""

    @abstractmethod
    async def life(self, key: str) -> timedelta | None:
        """How long a key still stands; None where it does not expire. KeyError: it is not there."""

    @abstractmethod
    async def indexes_of(self, dedupe_key: str) -> list[str]:
        """The indexes in which a run stands."""

    @abstractmethod
    async def newest_grants(self, installation: str) -> list[tuple[int, int]]:
        """When the last grants of an installation's budget were given, in microseconds, and which
        of that instant each is."""

    @abstractmethod
    async def wipe(self) -> None:
        """It comes back empty, as another server."""

    @abstractmethod
    async def restart(self, *, killed: bool = False, durable: bool = True) -> None:
        """It is started again. ``durable``: whether each write is on disk before it is acknowledged
        from then on. Ledgers must be opened anew."""

    @abstractmethod
    async def attach_replica(self) -> None:
        """A replica is attached, and has everything."""

    @abstractmethod
    async def promote(self) -> None:
        """The replica takes the server's place, as it is."""


class Valkey(Place):
    """An empty database of a server that many tests use. It is neither restarted nor replaced."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self.client = client

    def open(
        self, timing: LedgerTiming, *, monotonic: Callable[[], float] = time.monotonic
    ) -> Ledger:
        return open_ledger(self.client, timing, monotonic=monotonic)

    async def now(self) -> datetime:
        seconds, micros = await self.client.time()
        return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=micros)

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def everything(self) -> object:
        names = [name async for name in self.client.scan_iter(match="*")]
        return {name: await self._read(name) for name in names}

    async def _read(self, name: bytes) -> object:
        found: Any
        match text(await self.client.type(name)):
            case "hash":
                found = await self.client.hgetall(name)
            case "zset":
                found = await self.client.zrange(name, 0, -1, withscores=True)
            case "set":
                found = await self.client.smembers(name)
            case "list":
                found = await self.client.lrange(name, 0, -1)
            case _:
                found = await self.client.get(name)
        return found

    async def set_epoch(self, **fields: str | int) -> None:
        for name, value in fields.items():
            await self.client.hset("epoch", name, str(value))

    async def forget_epoch(self) -> None:
        await self.client.delete("epoch")

    async def lapse(self, dedupe_key: str, ago: timedelta) -> None:
        if await self.client.exists(f"lease:{dedupe_key}"):
            until = stamp(await self.now() - ago)
            await self.client.hset(f"lease:{dedupe_key}", "until", str(until))

    async def life(self, key: str) -> timedelta | None:
        left = await self.client.pttl(key)
        if left == -2:
            raise KeyError(key)
        return None if left == -1 else timedelta(milliseconds=left)

    async def indexes_of(self, dedupe_key: str) -> list[str]:
        names = [name async for name in self.client.scan_iter(match="runs:*")]
        found = [await self.client.zrange(name, 0, -1) for name in names]
        wanted = dedupe_key.encode()
        return [
            text(name)
            for name, members in zip(names, found, strict=True)
            if any(member == wanted or b'"%s"' % wanted in member for member in members)
        ]

    async def newest_grants(self, installation: str) -> list[tuple[int, int]]:
        found: Any = await self.client.zrevrange(f"budget:{installation}", 0, _NEWEST - 1)
        return [(int(grant), 0) for grant in found]

    async def wipe(self) -> None:
        raise NotImplementedError

    async def restart(self, *, killed: bool = False, durable: bool = True) -> None:
        raise NotImplementedError

    async def attach_replica(self) -> None:
        raise NotImplementedError

    async def promote(self) -> None:
        raise NotImplementedError


class OwnValkey(Valkey):
    """A server of the test's own, that can be stopped, emptied and replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()
        self._replica: tuple[EmbeddedServer, redis.asyncio.Redis] | None = None

    async def start(self) -> "OwnValkey":
        """Start it on its folder."""
        self._server = self._stack.enter_context(EmbeddedServer(self._folder))
        super().__init__(await self._stack.enter_async_context(connect(self._server.url)))
        return self

    async def stop(self) -> None:
        """Stop it, and its replica."""
        await self._stack.aclose()

    async def wipe(self) -> None:
        await self.stop()
        shutil.rmtree(self._folder / "ledger" / "appendonlydir")
        await self.start()

    async def restart(self, *, killed: bool = False, durable: bool = True) -> None:
        if killed:
            self._server.kill()
        await self.stop()
        await self.start()
        if not durable:
            await self.client.config_set("appendfsync", "everysec")

    async def attach_replica(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = self._stack.enter_context(EmbeddedServer(self._folder / "replica"))
        replica = await self._stack.enter_async_context(connect(server.url))
        await self.client.config_set("repl-diskless-sync-delay", "0")
        await self.client.config_set("port", str(port))
        await replica.replicaof("127.0.0.1", port)
        self._replica = server, replica
        assert await self.client.wait(1, 10_000) == 1

    def replica(self, timing: LedgerTiming) -> Ledger:
        """The ledger as its replica has it."""
        assert self._replica is not None
        return open_ledger(self._replica[1], timing)

    async def promote(self) -> None:
        assert self._replica is not None
        assert await self.client.wait(1, 10_000) == 1
        self._server, self.client = self._replica
        await self.client.replicaof("NO", "ONE")


class Memory(Place):
    """A server in memory, whose time is moved."""

    def __init__(self) -> None:
        self._time = datetime(2026, 3, 4, 12, 0, 0, 123_456, tzinfo=UTC)
        self.server = MemoryServer(lambda: self._time)

    def open(
        self, timing: LedgerTiming, *, monotonic: Callable[[], float] = time.monotonic
    ) -> MemoryLedger:
        return memory_ledger(self.server, timing, monotonic=monotonic)

    async def now(self) -> datetime:
        return self._time

    async def pass_time(self, seconds: float) -> None:
        self._time += timedelta(seconds=seconds)
        await asyncio.sleep(0)  # whoever waits beside gets a turn

    async def everything(self) -> object:
        return self.server.copy()

    async def set_epoch(self, **fields: str | int) -> None:
        assert self.server.epoch is not None
        self.server.state.epoch = replace_row(self.server.epoch, fields)

    async def forget_epoch(self) -> None:
        self.server.forget_epoch()

    async def lapse(self, dedupe_key: str, ago: timedelta) -> None:
        leases = self.server.state.leases
        if dedupe_key in leases:
            until = stamp(self._time - ago)
            leases[dedupe_key] = leases[dedupe_key]._replace(until=until)

    async def life(self, key: str) -> timedelta | None:
        expires = _expires(self.server.state, key)
        if expires is None:
            return None
        left = timedelta(milliseconds=expires - self.server.millis)
        if left < timedelta(0):
            raise KeyError(key)
        return left

    async def indexes_of(self, dedupe_key: str) -> list[str]:
        state = self.server.state
        expiring = ["runs:expiring"] if any(key == dedupe_key for key, _ in state.expiring) else []
        return [name for name, runs in state.indexes.items() if dedupe_key in runs] + expiring

    async def newest_grants(self, installation: str) -> list[tuple[int, int]]:
        counted: Counter[int] = Counter()
        grants = []
        for grant in self.server.state.grants[installation]:
            grants.append((grant, counted[grant]))
            counted[grant] += 1
        return grants[-_NEWEST:]

    async def wipe(self) -> None:
        self.server.wipe()

    async def restart(self, *, killed: bool = False, durable: bool = True) -> None:
        self.server.restart(durable=durable)

    async def attach_replica(self) -> None:
        self.server.attach_replica()

    async def promote(self) -> None:
        self.server.restore(self.server.copy())


def replace_row(row: Any, fields: dict[str, str | int]) -> Any:
    """A row with other values."""
    return row._replace(**fields)


def _expires(state: State, key: str) -> int | None:
    """When a key expires. KeyError: it is not there."""
    kind, _, name = key.partition(":")
    match kind:
        case "run":
            return state.runs[name].expires
        case "lease":
            return state.leases[name].expires
        case "decisions":
            repository, _, version = name.partition(":")
            return state.decisions[int(repository), version].expires
        case "review" | "watch":
            repository, _, recall = name.partition(":")
            of_family = int(repository), Family(kind)
            kept: Kept[Any] = (state.recalls if recall else state.reviews)[of_family]
            return kept.expires
        case "session":
            owner, _, session = name.partition(":")
            if owner == "staged":
                return state.copies[session].expires
            return state.sessions[int(owner[1:]), session].expires
        case _:
            tables: dict[str, dict[str, Kept[Any]]] = {
                "snapshot": state.snapshots,
                "plan": state.plans,
                "report": state.reports,
                "ask": state.asks,
            }
            return tables[kind][name].expires


def brief_timing(timing: LedgerTiming) -> LedgerTiming:
    """Bounds short enough to wait for."""
    return replace(
        timing,
        lease=timedelta(milliseconds=300),
        lock_delay=timedelta(milliseconds=400),
        absence_window=timedelta(milliseconds=200),
        request=timedelta(milliseconds=40),
        margin=timedelta(milliseconds=10),
    )
