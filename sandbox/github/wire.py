"""What goes in and what comes out of the sandbox GitHub: plain values, no sockets.

The server and an in-memory client both speak these; what an outcome *means* on the wire
(closing a connection, waiting) is theirs to carry out.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

DOCUMENTATION = "https://docs.github.com/rest"

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `path` is still percent-encoded; `query` may be a raw string."""

    method: str
    path: str
    query: Mapping[str, str] | str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def parameters(self) -> dict[str, str]:
        if isinstance(self.query, str):
            return dict(parse_qsl(self.query, keep_blank_values=True)) if self.query else {}
        return dict(self.query)

    def header(self, name: str) -> str:
        """The header's value, whatever its case; empty if it is missing. `name` is lower case."""
        value = self.headers.get(name)
        if value is not None:
            return value
        return next((text for key, text in self.headers.items() if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer so. Header names are lower case."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> object:
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection without an answer."""


class Hang:
    """Wait `seconds` (None: until released), then go on with `resume()`.

    `resume` runs once, whoever calls it: the adapter after the wait, or the world, which can let
    a late request land whose client has long gone.
    """

    __slots__ = ("_lock", "_outcome", "_then", "seconds")

    def __init__(self, seconds: float | None, then: Callable[[], Outcome]) -> None:
        self.seconds = seconds
        self._then = then
        self._outcome: Outcome | None = None
        self._lock = threading.RLock()

    @property
    def landed(self) -> bool:
        return self._outcome is not None

    def resume(self) -> Outcome:
        with self._lock:
            if self._outcome is None:
                self._outcome = self._then()
            return self._outcome


Outcome = Respond | Drop | Hang


def settle(outcome: Outcome) -> Respond | Drop:
    """The end of an outcome for a caller that never waits: every hang is resumed at once."""
    while isinstance(outcome, Hang):
        outcome = outcome.resume()
    return outcome


def respond_json(status: int, content: object, headers: Mapping[str, str] | None = None) -> Respond:
    body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode(
        errors="surrogatepass"
    )
    return Respond(
        status, {"content-type": "application/json; charset=utf-8", **(headers or {})}, body
    )


class ApiError(Exception):
    """An answer that ends the handling of a request: an error in GitHub's words, or a redirect."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: list[Json] | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, object] | None = None,
        documentation: str = DOCUMENTATION,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})
        self.documentation = documentation

    def answer(self) -> Respond:
        content: Json = {"message": self.message}
        if self.errors is not None:
            content["errors"] = self.errors
        content.update(self.extra)
        content["documentation_url"] = self.documentation
        content["status"] = str(self.status)
        return respond_json(self.status, content, self.headers)


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def invalid(resource: str, field_name: str, code: str, message: str | None = None) -> ApiError:
    """422 in GitHub's shape: which field of which resource, and what is wrong with it."""
    error: Json = {"resource": resource, "field": field_name, "code": code}
    if message is not None:
        error["message"] = message
    return ApiError(422, "Validation Failed", errors=[error])
