"""How the model misbehaves, and whose turn it is to be misbehaved to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Misbehaviour(StrEnum):
    """One way in which a model, or the network before it, goes wrong."""

    NO_ANSWER = "no-structured-output"
    OUTSIDE_SCHEMA = "outside-schema"
    FORBIDDEN_LABEL = "label-not-allowed"
    UNKNOWN_ISSUE = "unknown-issue"
    MISSING_ISSUE = "missing-issue"
    ENDLESS_TOOLS = "endless-tools"
    EXPENSIVE = "expensive"
    HANG = "hang"
    HANG_WITH_PINGS = "hang-with-pings"
    STALL = "stall"
    CUT_STREAM = "cut-stream"
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    NOT_FOUND = "404"
    RATE_LIMITED = "429"
    SERVER_ERROR = "500"
    OVERLOADED = "529"
    LOW_CONFIDENCE = "low-confidence"
    MARKUP = "markup"
    TOO_LONG = "too-long"
    OBEDIENT = "obedient"
    USE = "use"
    FORGET = "forget"
    MISREMEMBER = "misremember"
    DROP_FINDING = "drop-finding"
    RENAME_FINDINGS = "rename-findings"


ERRORS: Mapping[Misbehaviour, tuple[int, str]] = {
    Misbehaviour.UNAUTHORIZED: (401, "authentication_error"),
    Misbehaviour.FORBIDDEN: (403, "permission_error"),
    Misbehaviour.NOT_FOUND: (404, "not_found_error"),
    Misbehaviour.RATE_LIMITED: (429, "rate_limit_error"),
    Misbehaviour.SERVER_ERROR: (500, "api_error"),
    Misbehaviour.OVERLOADED: (529, "overloaded_error"),
}
"""The status and the type of error that the API gives."""


@dataclass(slots=True)
class Order:
    """A misbehaviour with its extent.

    ``sessions`` and ``requests`` say how many more it meets; None means all. ``issues`` narrows
    those that change single decisions (low confidence, markup, length, an order obeyed) to these
    numbers. ``retry_after`` is the header of a 429, in seconds. ``calls`` are tools with their
    input, which a session calls one after the other before it answers.
    """

    kind: Misbehaviour
    sessions: int | None = None
    requests: int | None = None
    issues: frozenset[int] | None = None
    retry_after: int | None = None
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    seen: set[str] = field(default_factory=set)

    def takes(self, session: str) -> bool:
        """Whether a request of the session is met, which uses up one of what is left."""
        if self.requests == 0:
            return False
        if session not in self.seen and self.sessions is not None:
            if len(self.seen) >= self.sessions:
                return False
            self.seen.add(session)
        if self.requests is not None:
            self.requests -= 1
        return True

    def touches(self, number: int) -> bool:
        """Whether the decision about an issue is changed."""
        return self.issues is None or number in self.issues

    @property
    def spent(self) -> bool:
        """Whether it can meet no request any more."""
        return self.requests == 0

    def public(self) -> dict[str, object]:
        """The form of the control address."""
        return {
            "behaviour": self.kind.value,
            "sessions": None if self.sessions is None else self.sessions - len(self.seen),
            "requests": self.requests,
            "issues": None if self.issues is None else sorted(self.issues),
            "retry_after": self.retry_after,
            "calls": [{"tool": tool, "input": given} for tool, given in self.calls],
        }
