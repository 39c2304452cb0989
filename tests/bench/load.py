"""The load: deliveries over connections that are kept, one under way on each; a process of its own.

``python -m tests.bench.load`` reads one JSON object from its input (``port``, ``connections``,
``first``, ``count``, ``secret``), makes the requests, sends them, and prints one with what came
back. It is one loop over sockets that do not block and does nothing else while the clock runs, so
that it is far faster than what it measures; both sides get the same bytes in the same way.
"""

import json
import selectors
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tests.bench.deliveries import requests

PATIENCE_SECONDS: Final = 30
"""For any answer at all; then the load gives up."""


class SilentServerError(Exception):
    """No answer came."""


@dataclass(slots=True, eq=False)
class _Connection:
    """One connection, and the request under way on it."""

    socket: socket.socket
    began: float = 0.0
    got: bytes = b""


@dataclass(slots=True)
class _Seen:
    """What came back: seconds and status of each request."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """One load, as the input says."""
    given = json.load(sys.stdin)
    print(json.dumps(load(**given)))  # noqa: T201 - the result


def load(*, port: int, connections: int, first: int, count: int, secret: str) -> dict[str, Any]:
    """Send ``count`` deliveries and time each; the clock starts when all connections stand."""
    waiting = iter(requests(first, count, secret))
    seen = _Seen()
    with selectors.DefaultSelector() as selector:
        opened = [_open(port) for _ in range(min(connections, count))]
        began = time.perf_counter()
        for connection in opened:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            _send(connection, next(waiting))
        while len(seen.seconds) < count:
            ready = selector.select(PATIENCE_SECONDS)
            if not ready:
                raise SilentServerError(f"nothing came for {PATIENCE_SECONDS} s")
            for key, _ in ready:
                _read(key.data, seen)
                if not key.data.began and (request := next(waiting, None)) is not None:
                    _send(key.data, request)
        took = time.perf_counter() - began
        for connection in opened:
            connection.socket.close()
    return {
        "seconds": took,
        "per_second": count / took,
        "statuses": dict(seen.statuses),
        "p50_ms": _percentile(seen.seconds, 50),
        "p99_ms": _percentile(seen.seconds, 99),
        "max_ms": max(seen.seconds) * 1000,
    }


def _open(port: int) -> _Connection:
    opened = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return _Connection(opened)


def _send(connection: _Connection, request: bytes) -> None:
    connection.began = time.perf_counter()
    connection.socket.sendall(request)  # a request is smaller than the kernel's buffer


def _read(connection: _Connection, seen: _Seen) -> None:
    """What has arrived; ``began`` is zero once the answer is whole."""
    arrived = connection.socket.recv(65536)
    if not arrived:
        raise SilentServerError("a connection was closed")
    connection.got += arrived
    if _is_whole(connection.got):
        seen.seconds.append(time.perf_counter() - connection.began)
        seen.statuses[connection.got[9:12].decode()] += 1
        connection.began, connection.got = 0.0, b""


def _is_whole(answer: bytes) -> bool:
    """Whether the answer's length, or its last chunk, is there."""
    head, ended, body = answer.partition(b"\r\n\r\n")
    if not ended:
        return False
    _, declared, rest = head.lower().partition(b"\r\ncontent-length:")
    if declared:
        return len(body) >= int(rest.partition(b"\r\n")[0])
    return body.endswith(b"0\r\n\r\n")


def _percentile(seconds: list[float], percent: int) -> float:
    """In milliseconds: so many of a hundred took no longer."""
    ordered = sorted(seconds)
    return ordered[-(-len(ordered) * percent // 100) - 1] * 1000


if __name__ == "__main__":
    main()
