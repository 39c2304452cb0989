"""What an address answers with. Each answer is written byte by byte: some are not HTTP at all."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

CHUNK_BYTES = 64 * 1024


class Answer:
    """Something to send. The connection is closed after it."""

    def send(self) -> AsyncIterator[bytes]:
        """The pieces, each sent as it comes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Page(Answer):
    """A document. ``zipped``: compressed, as it says, whatever the client accepts."""

    body: str | bytes = ""
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    zipped: bool = False

    async def send(self) -> AsyncIterator[bytes]:
        """Head and body."""
        body = self.body.encode() if isinstance(self.body, str) else self.body
        headers = {"Content-Type": self.media_type} if self.media_type else {}
        if self.zipped:
            body = gzip.compress(body, mtime=0)
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(body))
        yield _head(self.status, {**headers, **self.headers})
        yield body


@dataclass(frozen=True)
class Redirect(Answer):
    """Elsewhere. ``to`` is sent as it stands."""

    to: str | None
    status: int = 302

    async def send(self) -> AsyncIterator[bytes]:
        """A head without a body."""
        location = {} if self.to is None else {"Location": self.to}
        yield _head(self.status, {**location, "Content-Length": "0"})


@dataclass(frozen=True)
class Hang(Answer):
    """Nothing, for as long as the client waits."""

    async def send(self) -> AsyncIterator[bytes]:
        """Never."""
        await asyncio.Event().wait()
        yield b""


@dataclass(frozen=True)
class Drip(Answer):
    """A page without end, one byte at a time; or its head. Each comes after ``pause_seconds``."""

    pause_seconds: float = 0.01
    head: bool = False

    async def send(self) -> AsyncIterator[bytes]:
        """Letter by letter."""
        yield b"HTTP/1.1 200 OK\r\nX-Drip: " if self.head else _head(200, _HTML)
        while True:
            await asyncio.sleep(self.pause_seconds)
            yield b"."


@dataclass(frozen=True)
class Endless(Answer):
    """As fast as the client reads: a body, a head, or 103s before the answer that never comes."""

    what: str = "body"

    async def send(self) -> AsyncIterator[bytes]:
        """For ever."""
        pieces = {
            "body": (_head(200, _HTML), b"x" * CHUNK_BYTES),
            "head": (b"HTTP/1.1 200 OK\r\nX-Head: ", b"x" * CHUNK_BYTES),
            "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" * 100),
        }
        first, again = pieces[self.what]
        yield first
        while True:
            yield again


@dataclass(frozen=True)
class Bomb(Answer):
    """So many bytes of zeros, ``layers`` times compressed. One layer makes a thousandth of them."""

    inflated_bytes: int = 1 << 30
    layers: int = 1
    media_type: str = "text/html"

    async def send(self) -> AsyncIterator[bytes]:
        """Small on the wire."""
        encodings = ", ".join(["gzip"] * self.layers)
        yield _head(200, {"Content-Type": self.media_type, "Content-Encoding": encodings})
        zippers = [zlib.compressobj(9, zlib.DEFLATED, 31) for _ in range(self.layers)]
        for _ in range(self.inflated_bytes // CHUNK_BYTES):
            await asyncio.sleep(0)  # others are served meanwhile
            piece = bytes(CHUNK_BYTES)
            for zipper in zippers:
                piece = zipper.compress(piece)
            yield piece
        rest = b""
        for zipper in zippers:
            rest = zipper.compress(rest) + zipper.flush()
        yield rest


@dataclass(frozen=True)
class WrongLength(Answer):
    """A page that says it is ``off`` bytes longer than it is; shorter where negative."""

    off: int
    body: str = "<p>Hello</p>"

    async def send(self) -> AsyncIterator[bytes]:
        """As said."""
        yield _head(200, {**_HTML, "Content-Length": str(len(self.body) + self.off)})
        yield self.body.encode()


@dataclass(frozen=True)
class Cut(Answer):
    """A chunked page that is cut off: after its head, or after ``body``."""

    body: str = ""
    zipped: bool = False

    async def send(self) -> AsyncIterator[bytes]:
        """Part of it. Zipped ones end properly as HTTP, but not as gzip."""
        encoding = {"Content-Encoding": "gzip"} if self.zipped else {}
        yield _head(200, {**_HTML, **encoding, "Transfer-Encoding": "chunked"})
        body = gzip.compress(self.body.encode())[:-12] if self.zipped else self.body.encode()
        if body:
            yield f"{len(body):x}\r\n".encode() + body + b"\r\n"
        if self.zipped:
            yield b"0\r\n\r\n"


@dataclass(frozen=True)
class Headless(Answer):
    """These bytes and no others."""

    data: bytes = b""

    async def send(self) -> AsyncIterator[bytes]:
        """As they are."""
        yield self.data


_HTML = {"Content-Type": "text/html; charset=utf-8"}


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    """``headers`` in Latin-1, as they are: a name or value may be nonsense."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode("latin-1")
