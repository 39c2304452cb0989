"""What the resource watch reads and says, as values: documents, their entries, what changed.

Invariant: a document that could not be read changes nothing: the next window compares with the last
one that was.
"""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from triage.policy import ResourceKind


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Entry(_Frozen):
    """One entry of a feed or list of releases. ``key`` is what it is known by from one window to
    the next, ``digest`` is of all that it says; ``text`` is the beginning of it."""

    key: str
    title: str
    text: str
    digest: str


class WatchDocument(_Frozen):
    """A resource as it was found. ``address`` is where it really was, after redirects; ``status``
    is HTTP's, 0 where there was no answer; ``digest`` (SHA-256, hex) and ``bytes`` are of the
    content as fetched.

    ``entries`` are those of a feed or list of releases, ``text`` is that of a page, cut, or of
    what was to be a feed and could not be read as one: then ``problem`` says so. A ``problem``
    without digest: it was not fetched.
    """

    name: str
    kind: ResourceKind
    url: str
    address: str
    observed_at: datetime
    status: int
    digest: str = ""
    bytes: int = 0
    text: str = ""
    entries: tuple[Entry, ...] = ()
    problem: str = ""

    @property
    def was_read(self) -> bool:
        """There is content to compare."""
        return bool(self.digest)


class WatchInput(_Frozen):
    """The watch's part of a snapshot: what was fetched, in the policy's order, and what it is
    compared with. ``prior`` holds, of each resource, the last document that was read before."""

    documents: tuple[WatchDocument, ...]
    prior: tuple[WatchDocument, ...] = ()


KEPT_VERSION = 1
"""The form of ``Kept`` as JSON: raise it where an older one cannot be read any more."""


class Kept(_Frozen):
    """What the next watch compares with: of each resource the last document that was read."""

    documents: tuple[WatchDocument, ...]


class Change(StrEnum):
    """What became of a resource since it was read last."""

    FIRST = "first seen"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    UNREAD = "not read"


class Importance(StrEnum):
    """How much a change matters to somebody who depends on the resource."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Difference(_Frozen):
    """What changed in one resource, found by comparing. ``since`` is when the document was read
    that it is compared with. ``added``, ``removed`` and ``edited`` are of lists of entries,
    ``lines`` of texts: the changed ones, each behind ``+`` or ``-``."""

    name: str
    change: Change
    since: datetime | None = None
    added: tuple[Entry, ...] = ()
    removed: tuple[Entry, ...] = ()
    edited: tuple[Entry, ...] = ()
    lines: tuple[str, ...] = ()


class Told(_Frozen):
    """What the model says of a change; where it failed our checks, ``held`` is the reason and
    there are no words."""

    name: str
    summary: str = ""
    importance: Importance | None = None
    held: str = ""


class Watch(_Frozen):
    """The watch's part of a plan: of each resource what became of it, in the policy's order, and
    the model's words for those that changed. ``dropped`` counts what it said of the others."""

    changes: tuple[Difference, ...]
    told: tuple[Told, ...] = ()
    dropped: int = 0
