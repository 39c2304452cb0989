"""The sandbox's time: a given clock plus an offset that the world can move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def real_now() -> datetime:
    return datetime.now(UTC)


class Clock:
    """Never runs backwards within one world, so that histories stay in order."""

    def __init__(self, now: Callable[[], datetime] = real_now) -> None:
        self.base = now
        self.offset = timedelta()
        self._latest = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        moment = self.base() + self.offset
        if moment < self._latest:
            return self._latest
        self._latest = moment
        return moment

    def move(self, seconds: float) -> datetime:
        """Forwards only: what was seen cannot be unseen."""
        if seconds < 0:
            raise ValueError("the clock only moves forwards")
        self.offset += timedelta(seconds=seconds)
        return self.now()


def stamp(moment: datetime) -> str:
    """GitHub's form: UTC, whole seconds. Sorts like the moments do."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return (
        f"{utc.year:04}-{utc.month:02}-{utc.day:02}T{utc.hour:02}:{utc.minute:02}:{utc.second:02}Z"
    )


def parse_stamp(text: str) -> datetime:
    """Reads ISO 8601 with or without a zone (then UTC). Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
