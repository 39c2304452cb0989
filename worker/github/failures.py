"""What an answer of GitHub, or the lack of one, means: one table for reader and writer.

Invariant: no row depends on the words of a message, the secondary limit apart, which GitHub tells
in no other way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from worker.ports import Gone, Refusal

LIMIT_WAIT_SECONDS = 60
"""How long to stay away where GitHub limits without saying until when."""

LONGEST_LIMIT_SECONDS = 3600
"""GitHub's windows are an hour: a later moment is a mistake, and would stop an installation."""


class Verdict(StrEnum):
    """What an answer says of the request, whichever it was."""

    DONE = "done"
    MOVED = "moved"
    UNAUTHORISED = "unauthorised"
    LIMITED = "limited"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    DELETED = "deleted"
    INVALID = "invalid"
    BROKEN = "broken"  # nothing can be said: it may have happened


VERDICTS: Mapping[int, Verdict] = {
    200: Verdict.DONE,
    201: Verdict.DONE,
    204: Verdict.DONE,
    301: Verdict.MOVED,
    302: Verdict.MOVED,
    303: Verdict.MOVED,
    307: Verdict.MOVED,
    308: Verdict.MOVED,
    400: Verdict.INVALID,
    401: Verdict.UNAUTHORISED,
    403: Verdict.FORBIDDEN,  # LIMITED where a limit shows
    404: Verdict.NOT_FOUND,
    405: Verdict.INVALID,
    406: Verdict.INVALID,
    409: Verdict.INVALID,
    410: Verdict.DELETED,
    411: Verdict.INVALID,
    413: Verdict.INVALID,
    414: Verdict.INVALID,
    415: Verdict.INVALID,
    422: Verdict.INVALID,
    429: Verdict.LIMITED,
    431: Verdict.INVALID,
    451: Verdict.NOT_FOUND,  # taken down: nobody may see it
}
"""Every other status, 408 and 5xx among them, is BROKEN: a gateway may answer so for a request
that GitHub carries out."""

REFUSALS: Mapping[Verdict, tuple[Refusal, Gone | None]] = {
    Verdict.MOVED: (Refusal.GONE, Gone.TRANSFERRED),
    Verdict.UNAUTHORISED: (Refusal.UNAUTHORISED, None),
    Verdict.LIMITED: (Refusal.LIMITED, None),
    Verdict.FORBIDDEN: (Refusal.FORBIDDEN, None),
    Verdict.NOT_FOUND: (Refusal.GONE, Gone.NOT_FOUND),
    Verdict.DELETED: (Refusal.GONE, Gone.DELETED),
    Verdict.INVALID: (Refusal.INVALID, None),
}
"""What a write is told; DONE and BROKEN are no refusals."""

GONE: Mapping[Verdict, Gone] = {
    Verdict.MOVED: Gone.TRANSFERRED,
    Verdict.NOT_FOUND: Gone.NOT_FOUND,
    Verdict.DELETED: Gone.DELETED,
}
"""What a read gives as a value."""


class NoAnswer(Exception):  # noqa: N818 - an outcome, told apart by its type
    """Time-out, dropped connection, unreadable answer: the request may have been carried out."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A classified answer. ``retry_at`` belongs to LIMITED; ``detail`` is for people."""

    verdict: Verdict
    detail: str
    retry_at: datetime | None = None


def classify(status: int, headers: Mapping[str, str], message: str, now: datetime) -> Reading:
    """Look the status up. ``headers`` has lower-case names; ``message`` is GitHub's own."""
    detail = f"{status} {message}".strip()[:300]
    verdict = VERDICTS.get(status, Verdict.BROKEN)
    if status == 403 and _is_limit(headers, message):
        verdict = Verdict.LIMITED
    if verdict is Verdict.LIMITED:
        return Reading(verdict, detail, _retry_at(headers, now))
    return Reading(verdict, detail)


def message_of(content: Any) -> str:
    """GitHub's message in an error's JSON; empty where there is none."""
    message = content.get("message") if isinstance(content, dict) else None
    return message if isinstance(message, str) else ""


def _is_limit(headers: Mapping[str, str], message: str) -> bool:
    if "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0":
        return True
    words = message.lower()
    return "secondary rate limit" in words or "abuse detection" in words


def _retry_at(headers: Mapping[str, str], now: datetime) -> datetime:
    asked = _after(headers.get("retry-after", ""), now)
    if asked is None and headers.get("x-ratelimit-remaining") == "0":
        asked = _moment(headers.get("x-ratelimit-reset", ""))
    if asked is None:
        asked = now + timedelta(seconds=LIMIT_WAIT_SECONDS)
    soonest, latest = now + timedelta(seconds=1), now + timedelta(seconds=LONGEST_LIMIT_SECONDS)
    return min(max(asked, soonest), latest)


def _after(text: str, now: datetime) -> datetime | None:
    if text.isascii() and text.isdigit():
        return now + timedelta(seconds=min(int(text[:9]), LONGEST_LIMIT_SECONDS))
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _moment(text: str) -> datetime | None:
    if not (text.isascii() and text.isdigit()) or len(text) > 11:
        return None
    return datetime.fromtimestamp(int(text), UTC)
