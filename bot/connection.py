"""One connection of a client: uvicorn's, with bounds on the head of a request, and a lane for
deliveries.

A head that does not come would be waited for for ever, and as many silent connections as are
allowed would keep everybody out; one without an end would be kept in memory.

The lane: a delivery as GitHub sends it, a POST with a length, goes from the parser to
``Webhooks.take`` and back in one write, past ASGI, which would cost more than all that is done with
it. httptools reads every request; the lane only takes what it has read. All other requests go to
the application.
"""

import asyncio
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from bot.app import FAILED, WEBHOOKS, Receiver
from bot.webhook import BODY_TIMEOUT_SECONDS, HEADERS, Answer

HEAD_SECONDS: Final = 10
"""For the head of a request to come."""
KEEP_ALIVE_SECONDS: Final = 5
"""A connection on which nothing is asked is closed after as long."""
MOST_HEAD_BYTES: Final = 32 * 1024
LANE_BODY_BYTES: Final = 256 * 1024
"""A larger delivery goes to the application."""

_PATH: Final = WEBHOOKS.encode()
_UNUSUAL: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"connection"})
_READ: Final = tuple((name.encode(), name) for name in HEADERS)


class Connection(HttpToolsProtocol):
    """Closed where the head of a request does not come in time, or is too long."""

    head_seconds: float = HEAD_SECONDS
    body_seconds: float = BODY_TIMEOUT_SECONDS

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._webhooks = self.app.webhooks if isinstance(self.app, Receiver) else None
        self._late: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._is_in_head = False
        self._delivery: dict[str, str] | None = None
        """The headers of the delivery in the lane, until it is answered."""
        self._body = b""
        self._is_in_body = False
        """The body of the delivery in the lane is not all there."""
        self._is_ending = False
        """The next answer is the last on this connection."""
        self._is_deaf = False
        """What else comes is not read."""

    # asyncio narrows the transport of a stream, and so does uvicorn.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._close_after(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if self._is_in_head else 0
        if self._head_bytes > MOST_HEAD_BYTES:
            self.transport.close()
        elif self._late is None and not self._is_asked():
            self._close_after(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._is_in_body and self._webhooks is not None and self._delivery is not None:
            self._webhooks.cut_off(self._delivery)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self._delivery is not None:
            self._is_ending = True
        else:
            super().shutdown()

    # --- What the parser reads ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._delivery is not None:
            # Who does not wait for an answer is left after it, and asks the rest again.
            self._is_ending = self._is_deaf = True
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._is_deaf:
            return
        self._stop_waiting()
        self._delivery = self._for_the_lane()
        if self._delivery is None:
            super().on_headers_complete()
        else:
            self._is_in_body = True
            self._late = self.loop.call_later(self.body_seconds, self._too_slow)

    def on_body(self, body: bytes) -> None:
        if self._is_deaf:
            return
        if self._delivery is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        if self._is_deaf:
            return
        if self._delivery is None or self._webhooks is None:
            super().on_message_complete()
            return
        self._stop_waiting()
        self._is_in_body = False
        body, self._body = self._body, b""
        answer = self._webhooks.take(self._delivery, body)
        # uvicorn only waits for its tasks, and cancels them: a future will do.
        self.tasks.add(answer)  # type: ignore[arg-type]
        answer.add_done_callback(self._taken)

    # --- The lane -------------------------------------------------------------------------------

    def _is_asked(self) -> bool:
        """Whether a request is under way: its head is there, and its answer not yet sent."""
        answered = getattr(self.cycle, "response_complete", True)  # there is none at first
        return not answered or self._delivery is not None

    def _for_the_lane(self) -> dict[str, str] | None:
        """The headers that are read, by their names; None for what goes to the application."""
        if self._webhooks is None or self.url != _PATH or self.parser.get_method() != b"POST":
            return None
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"")
        usual = len(headers) == len(self.headers) and _UNUSUAL.isdisjoint(headers)
        usual = usual and self.parser.get_http_version() == "1.1"
        small = length.isdigit() and len(length) < 7 and int(length) <= LANE_BODY_BYTES
        limit = self.limit_concurrency
        crowded = limit is not None and max(len(self.connections), len(self.tasks)) >= limit
        free = not self._is_asked() and not self.flow.write_paused and not crowded
        if not (usual and small and free):
            return None
        return {name: headers.get(raw, b"").decode("latin-1") for raw, name in _READ}

    def _taken(self, answer: "asyncio.Future[Answer]") -> None:
        self.tasks.discard(answer)
        if answer.cancelled():
            self.transport.close()
            return
        error = answer.exception()
        if error is not None:
            self.logger.error("Exception in a delivery\n", exc_info=error)
        self._answer(Answer(500, FAILED) if error is not None else answer.result())

    def _too_slow(self) -> None:
        self._is_ending = self._is_deaf = True
        self._is_in_body = False
        if self._webhooks is not None and self._delivery is not None:
            self._answer(self._webhooks.too_slow(self._delivery))

    def _answer(self, answer: Answer) -> None:
        self._delivery = None
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        headers = tuple(self.server_state.default_headers)
        self.transport.write(_written(answer.status, answer.body, headers, self._is_ending))
        if self._is_ending:
            self.transport.close()
        else:
            self._close_after(KEEP_ALIVE_SECONDS)

    def _close_after(self, seconds: float) -> None:
        self._late = self.loop.call_later(seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


@lru_cache(maxsize=64)
def _written(
    status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...], is_ending: bool
) -> bytes:
    """A whole answer: the same for all that are accepted in one second."""
    lines = [
        b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode()),
        *(b"%b: %b" % header for header in headers),
        b"content-length: %d" % len(body),
        b"content-type: application/json",
        *([b"connection: close"] if is_ending else []),
    ]
    return b"\r\n".join([*lines, b"", body])
