"""GitHub's limits: counted always, enforced only when the world switches them on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sandbox.github.clock import EPOCH
from sandbox.github.wire import ApiError

SECONDARY_DOCUMENTATION = (
    "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
)
PRIMARY_DOCUMENTATION = (
    "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"
    "#primary-rate-limit-for-authenticated-users"
)
CONTENT_METHODS = frozenset({"POST", "PATCH", "PUT"})


def secondary_limit(retry_after: int | None, status: int = 403) -> ApiError:
    """With `retry_after=None` it looks like any other 403 but for its message."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return ApiError(
        status,
        "You have exceeded a secondary rate limit and have been temporarily blocked from content "
        "creation. Please retry your request again later.",
        headers=headers,
        documentation=SECONDARY_DOCUMENTATION,
    )


def primary_limit(reset: int, who: str, limit: int = 5000) -> ApiError:
    return ApiError(
        403,
        f"API rate limit exceeded for {who}.",
        headers={
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": "0",
            "x-ratelimit-used": str(limit),
            "x-ratelimit-reset": str(reset),
            "x-ratelimit-resource": "core",
        },
        documentation=PRIMARY_DOCUMENTATION,
    )


@dataclass(slots=True)
class _Usage:
    window_start: datetime
    used: int = 0
    content: deque[datetime] = field(default_factory=deque)


class Limits:
    """`scale` 60 makes a minute pass in a second. Counts are per installation or user."""

    def __init__(self) -> None:
        self.content_on = False
        self.primary_on = False
        self.content_per_minute = 80
        self.content_per_hour = 500
        self.primary_per_hour = 5000
        self.scale = 1.0
        self.retry_after = True
        self._usage: dict[str, _Usage] = {}

    def switch_on(
        self,
        *,
        content: bool = True,
        primary: bool = True,
        scale: float = 1.0,
        retry_after: bool = True,
        content_per_minute: int = 80,
        content_per_hour: int = 500,
        primary_per_hour: int = 5000,
    ) -> None:
        self.content_on, self.primary_on = content, primary
        self.scale, self.retry_after = scale, retry_after
        self.content_per_minute = content_per_minute
        self.content_per_hour = content_per_hour
        self.primary_per_hour = primary_per_hour

    def switch_off(self) -> None:
        self.content_on = self.primary_on = False

    def admit(self, key: str, method: str, now: datetime, *, free: bool) -> None:
        """Counts this request; raises ApiError if a limit that is on forbids it.

        `free` requests (asking for a token or for the limits) count for nothing.
        """
        if free:
            return
        usage = self._usage_of(key, now)
        if self.primary_on and usage.used >= self.primary_per_hour:
            raise primary_limit(self._reset(usage), key, self.primary_per_hour)
        if method in CONTENT_METHODS:
            self._admit_content(usage, now)
        usage.used += 1

    def refund(self, key: str, now: datetime) -> None:
        """A 304 costs nothing."""
        usage = self._usage_of(key, now)
        usage.used = max(0, usage.used - 1)

    def headers(self, key: str, now: datetime) -> dict[str, str]:
        return {f"x-ratelimit-{name}": str(value) for name, value in self.told(key, now).items()}

    def told(self, key: str, now: datetime) -> dict[str, object]:
        """What `GET /rate_limit` says of `core`, and the headers."""
        usage = self._usage_of(key, now)
        return {
            "limit": self.primary_per_hour,
            "remaining": max(0, self.primary_per_hour - usage.used),
            "reset": self._reset(usage),
            "used": usage.used,
            "resource": "core",
        }

    def _admit_content(self, usage: _Usage, now: datetime) -> None:
        minute, hour = (timedelta(seconds=each / self.scale) for each in (60, 3600))
        content = usage.content
        while content and content[0] <= now - hour:
            content.popleft()
        if self.content_on:
            waits = []
            for span, most in ((minute, self.content_per_minute), (hour, self.content_per_hour)):
                within = [at for at in content if at > now - span]
                if len(within) >= most:
                    waits.append(within[-most] + span - now)
            if waits:
                seconds = max(1, -int(-max(waits).total_seconds() // 1))
                raise secondary_limit(seconds if self.retry_after else None)
        content.append(now)

    def _usage_of(self, key: str, now: datetime) -> _Usage:
        usage = self._usage.get(key)
        if usage is None:
            usage = self._usage[key] = _Usage(now)
        elif now - usage.window_start >= timedelta(seconds=3600 / self.scale):
            usage.window_start, usage.used = now, 0
        return usage

    def _reset(self, usage: _Usage) -> int:
        end = usage.window_start + timedelta(seconds=3600 / self.scale)
        return -int(-(end - EPOCH).total_seconds() // 1)
