"""What the watch needs of the web: one document at an address, read once."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Obstacle(StrEnum):
    """Why a document was not fetched. Stable words: they stand in snapshots and reports."""

    URL = "url"
    """The URL itself is refused: its form, scheme, port, user or a name that is an odd number."""
    ADDRESS = "address"
    """The name leads to an address that is not public."""
    ROBOTS = "robots"
    """The site's robots.txt forbids it, or could not be read."""
    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    """The server could not prove that it is who the name says."""
    TIME = "time"
    """The whole time was up."""
    IDLE = "idle"
    """Nothing came for too long."""
    CUT = "cut"
    """The answer ended early or was not HTTP."""
    SIZE = "size"
    REDIRECT = "redirect"
    """Too many, or one that leads where nothing is fetched from."""
    STATUS = "status"
    """Any status but 200; the detail begins with it."""
    MEDIA_TYPE = "media-type"
    ENCODING = "encoding"
    """Compressed in a way that was not asked for, or broken."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document. ``address`` is where it was after redirects, ``observed_at`` when it was there.

    ``media_type`` is lower case, without parameters. ``digest`` (SHA-256, hex) and ``bytes`` (how
    many) are of the content after decompression, before it became ``text``.
    """

    url: str
    address: str
    observed_at: datetime
    status: int
    media_type: str
    text: str
    digest: str
    bytes: int


@dataclass(frozen=True, slots=True)
class NotFetched:
    """No document. ``address`` is the last one that was tried, ``detail`` one line for people.

    ``retryable``: a later window may well have it. Nothing is tried again before.
    """

    url: str
    address: str
    observed_at: datetime
    reason: Obstacle
    detail: str
    retryable: bool


class Fetcher(Protocol):
    """The web, one GET at a time."""

    async def fetch(self, url: str) -> Fetched | NotFetched:
        """Read what is there now. Raises nothing for what the other side does."""
