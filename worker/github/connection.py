"""One HTTP connection to GitHub: each request goes out once, within a hard total time.

Invariant: no retry, no cache and no redirect here; a credential leaves for the API's origin alone.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Self

import httpx
from githubkit import GitHub
from githubkit.cache import MemCacheStrategy

from worker.github.failures import NoAnswer, Reading, classify, message_of
from worker.ports import Clock, Timing

DEFAULT_API_URL = "https://api.github.com"
API_VERSION = "2022-11-28"
CONNECT_SECONDS = 5.0
_SURROGATE = re.compile(rb"\\u[dD]|\xed[\xa0-\xbf]")
"""Half a pair, spelled or encoded; or a whole one."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class RequestKind(StrEnum):
    """What a request is for, as the metrics count it."""

    READ = "read"
    WRITE = "write"
    TOKEN = "token"  # noqa: S105 - a kind of request


@dataclass(frozen=True, slots=True)
class Answer:
    """GitHub's answer, classified. ``content`` is its JSON, None where there is none to be read.

    ``next_page`` and ``location`` are paths under the API's address; None where there is none, or
    where it leads elsewhere.
    """

    status: int
    reading: Reading
    content: Any = field(repr=False)
    next_page: str | None = None
    location: str | None = None


class Connection:
    """Sends requests. ``count`` hears of each one's kind, as it goes out.

    An async context manager; ``transport`` replaces the network, for a GitHub in the same process.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        timing: Timing,
        api_url: str = DEFAULT_API_URL,
        count: Callable[[RequestKind], None] = lambda _: None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._clock = clock
        self._count = count
        self._total_seconds = timing.request.total_seconds()
        self._base = httpx.URL(api_url.rstrip("/") + "/")
        self._stack = AsyncExitStack()
        self._client: httpx.AsyncClient | None = None
        self._github = GitHub(
            base_url=self._base,
            user_agent=user_agent(),
            follow_redirects=False,
            timeout=httpx.Timeout(
                self._total_seconds, connect=min(CONNECT_SECONDS, self._total_seconds)
            ),
            trust_env=self._base.host not in LOOPBACK,
            async_transport=transport,
            http_cache=False,
            cache_strategy=MemCacheStrategy(),  # signatures; the default is the process's
            auto_retry=False,
        )

    @property
    def github(self) -> GitHub[Any]:
        """githubkit's own object, for its signatures."""
        return self._github

    async def __aenter__(self) -> Self:
        self._client = await self._stack.enter_async_context(self._github.get_async_client())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client = None
        await self._stack.aclose()

    async def send_once(
        self,
        kind: RequestKind,
        method: str,
        path: str,
        *,
        authorization: str,
        query: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> Answer:
        """One request, whatever comes of it. Raises NoAnswer.

        ``path`` is relative to the API's address and already quoted.
        """
        if self._client is None:
            raise RuntimeError("the connection is not open")
        body = None if content is None else json.dumps(content).encode("ascii")
        headers = {"X-GitHub-Api-Version": API_VERSION}
        if authorization:
            headers["Authorization"] = authorization
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._count(kind)
        try:
            async with asyncio.timeout(self._total_seconds):
                response = await self._client.request(
                    method, path, params=query, content=body, headers=headers
                )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:  # TimeoutError is an OSError
            raise NoAnswer(f"no answer: {type(error).__name__}") from error
        return self._answer(response)

    def _answer(self, response: httpx.Response) -> Answer:
        content = _json(response)
        reading = classify(
            response.status_code, response.headers, message_of(content), self._clock.now()
        )
        return Answer(
            status=response.status_code,
            reading=reading,
            content=content,
            next_page=self._path(response.links.get("next", {}).get("url", "")),
            location=self._path(response.headers.get("location", "")),
        )

    def _path(self, url: str) -> str | None:
        """The path under the API's address, None where the URL is of another origin."""
        try:
            full = self._base.join(url) if url else None
        except httpx.InvalidURL:
            return None
        base = self._base.raw_path
        if full is None or _origin(full) != _origin(self._base):
            return None
        if not full.raw_path.startswith(base):
            return None
        return full.raw_path.removeprefix(base).decode("ascii")


def user_agent() -> str:
    """``retriage/<version>``."""
    try:
        return f"retriage/{version('retriage')}"
    except PackageNotFoundError:
        return "retriage/0"


def _json(response: httpx.Response) -> Any:
    try:
        content = response.json()
    except (ValueError, RecursionError):
        return None
    return _whole(content) if _SURROGATE.search(response.content) else content


def _whole(value: Any) -> Any:
    """Text that JSON may spell and nothing may store: half a surrogate pair becomes U+FFFD."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
        case _:
            return value


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    default = {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.host, url.port or default
