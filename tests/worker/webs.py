"""A network for the fetcher: names that lead where a test says, to webs on loopback."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpcore

from worker.fetching import Bounds, HttpFetcher, SystemNetwork
from worker.ports import Fetched, NotFetched

NOW = datetime(2026, 9, 16, 1, 0, 4, tzinfo=UTC)
PUBLIC = "93.184.215.14"
"""Some public address. Nothing is sent there: ``Detour`` leads to loopback."""
QUICK = Bounds(
    total_seconds=5, robots_seconds=5, connect_seconds=2, idle_seconds=2, wire_bytes=200_000
)
"""Small enough to be reached soon, large enough for a busy machine."""


class Stopped:
    """A clock that stands."""

    def now(self) -> datetime:
        """The same moment."""
        return NOW

    def monotonic(self) -> float:
        """Never later."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """No time passes."""

    def token(self) -> str:
        """No chance."""
        return "0" * 32


@dataclass
class Detour:
    """``names``: what each question for a name is answered with, the last one for good.
    ``webs``: the port on loopback where an address's connections end. ``silent``: names about which
    no answer comes. It remembers what it was asked."""

    names: dict[str, list[list[str]]] = field(default_factory=dict)
    webs: dict[str, int] = field(default_factory=dict)
    resolved: list[str] = field(default_factory=list)
    silent: frozenset[str] = frozenset()
    connected: list[tuple[str, int]] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """What a test says."""
        self.resolved.append(host)
        if host in self.silent:
            await asyncio.Event().wait()
        turns = self.names.get(host)
        if turns is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return turns.pop(0) if len(turns) > 1 else turns[0]

    async def connect(
        self, address: str, port: int, *, seconds: float
    ) -> httpcore.AsyncNetworkStream:
        """To loopback, or to nobody."""
        self.connected.append((address, port))
        if address not in self.webs:
            raise httpcore.ConnectError("nobody is there")
        return await SystemNetwork().connect("127.0.0.1", self.webs[address], seconds=seconds)


def local(bounds: Bounds = QUICK) -> HttpFetcher:
    """A fetcher of a test: plain http to loopback too."""
    return HttpFetcher(Stopped(), bounds=bounds, allow_loopback_http=True)


def told(result: Fetched | NotFetched) -> str:
    """``reason: detail`` of what was not fetched."""
    assert isinstance(result, NotFetched), result
    assert "\n" not in result.detail
    return f"{result.reason}: {result.detail}"


def text(result: Fetched | NotFetched) -> str:
    """The text of what was fetched."""
    assert isinstance(result, Fetched), result
    return result.text
