"""Reads one document: its URL checked, its robots.txt asked, its redirects followed, all bounded.

Invariant: each hop of a redirect is checked like the first: its URL, its robots.txt, its addresses.

Invariant: nothing is asked for twice; what fails is for a later window.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from worker.fetching.bounds import Bounds, FetchFailed
from worker.fetching.content import decoded, media_type, read_body, read_start
from worker.fetching.network import Network, SystemNetwork
from worker.fetching.robots import Robots
from worker.fetching.target import Target
from worker.fetching.wire import PRODUCT, Reply, Wire
from worker.ports import Clock, Fetched, NotFetched, Obstacle

T = TypeVar("T")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = 200
_OUT_OF_REACH = frozenset({Obstacle.ADDRESS, Obstacle.RESOLVE, Obstacle.CONNECT, Obstacle.TLS})
"""What keeps us from the origin itself: no fault of its robots.txt."""
_COME_BACK = frozenset({408, 425, 429})


class HttpFetcher:
    """``worker.ports.Fetcher`` over HTTPS. Make one for each run: it remembers each robots.txt.

    ``allow_loopback_http``, for tests: plain http too, to loopback on any port and nothing else.
    ``authorities``: certificates in PEM that are trusted instead of the public ones.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        network: Network | None = None,
        bounds: Bounds | None = None,
        allow_loopback_http: bool = False,
        authorities: str | None = None,
    ) -> None:
        self._clock = clock
        self._bounds = bounds or Bounds()
        self._allow_http = allow_loopback_http
        self._wire = Wire(network or SystemNetwork(), self._bounds, authorities)
        self._robots: dict[str, Robots | FetchFailed] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def fetch(self, url: str) -> Fetched | NotFetched:
        """Read what is there now."""
        trail = [url]
        try:
            async with asyncio.timeout(self._bounds.total_seconds):
                target = Target.parse(url, allow_http=self._allow_http)
                return await self._follow(
                    target,
                    trail,
                    before=self._ask_robots,
                    take=lambda reply: self._document(url, trail[-1], reply),
                )
        except FetchFailed as failed:
            problem = failed
        except TimeoutError:
            problem = FetchFailed(
                Obstacle.TIME, f"not done in {self._bounds.total_seconds:g} s", retryable=True
            )
        return NotFetched(
            url=url,
            address=trail[-1],
            observed_at=self._clock.now(),
            reason=problem.reason,
            detail=problem.detail,
            retryable=problem.retryable,
        )

    async def _follow(
        self,
        target: Target,
        trail: list[str],
        *,
        before: Callable[[Target], Awaitable[None]],
        take: Callable[[Reply], Awaitable[T]],
    ) -> T:
        """What the last one of a chain of redirects gives; ``trail`` grows by each address."""
        for _ in range(self._bounds.redirects + 1):
            trail.append(str(target))
            await before(target)
            async with self._wire.get(target) as reply:
                if reply.status not in _REDIRECTS:
                    return await take(reply)
            target = target.redirected(reply.headers.get("location", ""))
        raise FetchFailed(Obstacle.REDIRECT, f"more than {self._bounds.redirects} redirects")

    async def _document(self, url: str, address: str, reply: Reply) -> Fetched:
        if reply.status != _OK:
            raise FetchFailed(
                Obstacle.STATUS,
                str(reply.status),
                retryable=reply.status in _COME_BACK or reply.status >= 500,
            )
        kind, charset = media_type(reply)
        content = await read_body(reply, self._bounds.text_bytes)
        return Fetched(
            url=url,
            address=address,
            observed_at=self._clock.now(),
            status=reply.status,
            media_type=kind,
            text=decoded(content, charset),
            digest=hashlib.sha256(content).hexdigest(),
            bytes=len(content),
        )

    async def _ask_robots(self, target: Target) -> None:
        """Raises FetchFailed where the site forbids it, does not say, or is out of reach."""
        robots = await self._robots_of(target)
        if isinstance(robots, FetchFailed):
            raise FetchFailed(robots.reason, robots.detail, retryable=robots.retryable)
        if not robots.allows(target.path):
            raise FetchFailed(Obstacle.ROBOTS, "forbidden by robots.txt")

    async def _robots_of(self, target: Target) -> Robots | FetchFailed:
        """Asked once: whoever breaks off the question leaves a robots.txt that was not read."""
        origin = target.origin
        async with self._asking[origin]:
            if origin not in self._robots:
                self._robots[origin] = _unread("not done in time")
                self._robots[origin] = await self._read_robots(target.robots())
        return self._robots[origin]

    async def _read_robots(self, target: Target) -> Robots | FetchFailed:
        trail: list[str] = []
        try:
            async with asyncio.timeout(self._bounds.robots_seconds):
                return await self._follow(target, trail, before=_nothing, take=self._rules)
        except FetchFailed as failed:
            of_the_origin = len(trail) == 1 and failed.reason in _OUT_OF_REACH
            return failed if of_the_origin else _unread(f"{failed.reason}, {failed.detail}")
        except TimeoutError:
            return _unread(f"not done in {self._bounds.robots_seconds:g} s")

    async def _rules(self, reply: Reply) -> Robots:
        """RFC 9309, 2.3.1: with a 4xx everything is allowed, with a 5xx nothing."""
        if reply.status == _OK:
            content = await read_start(reply, self._bounds.robots_bytes)
            return Robots.parse(content.decode("utf-8", errors="replace"), PRODUCT)
        if 400 <= reply.status < 500:
            return Robots()
        raise FetchFailed(Obstacle.STATUS, str(reply.status))


def _unread(why: str) -> FetchFailed:
    return FetchFailed(Obstacle.ROBOTS, f"robots.txt could not be read: {why}", retryable=True)


async def _nothing(_: Target) -> None:
    """Nobody is asked whether a robots.txt may be read."""
