"""The server: a thread with an event loop of its own, on a free port of loopback."""

import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import uvicorn

from sandbox.listening import listen
from sandbox.model.app import model_app
from sandbox.model.behaviour import Misbehaviour, Order
from sandbox.model.record import RequestRecord
from sandbox.model.state import ModelState

STOP_SECONDS = 1


class ModelServer:
    """A Messages API at ``url``, up between ``start`` and ``stop`` or within ``with``."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self.state = ModelState()
        self._address = (host, port)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.url = ""

    def start(self) -> Self:
        """Listen and return: from here on connections are taken."""
        listener = listen(*self._address)
        host, port = listener.getsockname()[:2]
        self.url = f"http://{host}:{port}"
        config = uvicorn.Config(
            model_app(self.state),
            log_config=None,
            log_level="critical",
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="sandbox-model", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Let go of every request, hanging ones too."""
        self.state.closing = True
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def misbehave(
        self,
        kind: Misbehaviour,
        *,
        sessions: int | None = None,
        requests: int | None = None,
        issues: Iterable[int] | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Go wrong for so many more sessions or requests; without a number, until the reset."""
        numbers = None if issues is None else frozenset(issues)
        self.state.add(Order(kind, sessions, requests, numbers, retry_after))

    def use(self, *calls: tuple[str, Mapping[str, Any]], sessions: int | None = None) -> None:
        """Call these tools, each with its input, before the answer; what came back is in the last
        request's ``calls``."""
        self.state.add(Order(Misbehaviour.USE, sessions, calls=calls))

    def reset(self) -> None:
        """Behave again, and forget what was asked."""
        self.state.reset()

    @property
    def requests(self) -> tuple[RequestRecord, ...]:
        """Every request since the reset, oldest first."""
        return self.state.requests()

    @property
    def counts(self) -> dict[str, int]:
        """``sessions``, ``requests``, ``bytes_in``, ``bytes_out`` of the requests for messages."""
        return self.state.counts()
