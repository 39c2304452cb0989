"""One GET on a connection of its own: no cookie, no proxy, no redirect, no second try.

Invariant: a connection serves one request, so that each one's address is checked.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import cast

import httpcore
import httpx

from worker.fetching.bounds import Bounds, FetchFailed
from worker.fetching.network import CheckedBackend, Network
from worker.fetching.target import Target
from worker.ports import Obstacle

PRODUCT = "Retriage"
"""Our name in a robots.txt, and what our requests begin their user agent with."""
_ACCEPT = "text/html,application/xhtml+xml,application/xml,application/json,text/*;q=0.9,*/*;q=0.1"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer whose head has been read. ``chunks`` gives its body, as it comes, once."""

    status: int
    headers: httpx.Headers
    chunks: AsyncIterator[bytes]


class Wire:
    """``authorities``: certificates in PEM that are trusted instead of the public ones."""

    def __init__(self, network: Network, bounds: Bounds, authorities: str | None) -> None:
        self._network = network
        self._bounds = bounds
        self._authorities = authorities
        self._timeout = {
            "connect": bounds.connect_seconds,
            "read": bounds.idle_seconds,
            "write": bounds.idle_seconds,
        }

    @asynccontextmanager
    async def get(self, target: Target) -> AsyncIterator[Reply]:
        """The answer, for as long as the block lasts. Raises FetchFailed, in the block too."""
        backend = CheckedBackend(
            self._network,
            loopback=target.scheme == "http",
            most_bytes=self._bounds.wire_bytes,
        )
        origin = httpcore.Origin(
            target.scheme.encode("ascii"), target.host.encode("ascii"), target.port
        )
        connection = httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=_trust(self._authorities) if target.scheme == "https" else None,
            network_backend=backend,
        )
        try:
            response = await connection.handle_async_request(self._request(target))
            body = cast("AsyncGenerator[bytes, None]", response.aiter_stream())
            async with aclosing(body) as chunks:
                yield Reply(response.status, httpx.Headers(response.headers), chunks)
        except (httpcore.TimeoutException, httpcore.NetworkError) as error:
            raise _failed(error) from error
        except (
            httpcore.ProtocolError,
            UnicodeError,
            OSError,
        ) as error:  # of TLS: httpcore lets it by
            raise FetchFailed(
                Obstacle.CUT, "the answer ended early or is not HTTP", retryable=True
            ) from error
        finally:
            await connection.aclose()

    def _request(self, target: Target) -> httpcore.Request:
        return httpcore.Request(
            "GET",
            httpcore.URL(
                scheme=target.scheme, host=target.host, port=target.port, target=target.path
            ),
            headers={
                "Host": target.url.netloc.decode("ascii"),
                "User-Agent": user_agent(),
                "Accept": _ACCEPT,
                "Accept-Encoding": "gzip",
                "Connection": "close",
            },
            extensions={"timeout": self._timeout},
        )


@cache
def _trust(authorities: str | None) -> ssl.SSLContext:
    """Made once, when it is first needed: reading all public authorities takes some 20 ms."""
    if authorities is None:
        return httpx.create_ssl_context(trust_env=False)
    return ssl.create_default_context(cadata=authorities)


def user_agent() -> str:
    """``Retriage/<version>``: the product, and nothing of who runs it."""
    try:
        return f"{PRODUCT}/{version('retriage')}"
    except PackageNotFoundError:
        return PRODUCT


def _failed(error: httpcore.TimeoutException | httpcore.NetworkError) -> FetchFailed:
    cause = error.__cause__
    match error:
        case _ if isinstance(cause, ssl.SSLCertVerificationError):
            return FetchFailed(Obstacle.TLS, f"certificate refused: {cause.verify_message}")
        case _ if isinstance(cause, ssl.SSLError):
            return FetchFailed(Obstacle.TLS, f"no TLS: {cause.reason}", retryable=True)
        case httpcore.ConnectTimeout():
            return FetchFailed(Obstacle.CONNECT, "no connection in time", retryable=True)
        case httpcore.ConnectError():
            return FetchFailed(Obstacle.TLS, "the connection was cut in its TLS", retryable=True)
        case httpcore.TimeoutException():
            return FetchFailed(Obstacle.IDLE, "nothing came for too long", retryable=True)
        case _:
            return FetchFailed(Obstacle.CUT, "the connection was cut", retryable=True)
