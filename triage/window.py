"""Windows: the slot of a schedule that a trigger belongs to, in the repository's time zone.

Invariant: a window's key comes from the slot, never from the moment at which something started.
Local times are read with fold=0 (PEP 495): one that daylight saving repeats falls due at its first
occurrence, one that it skips as if the clock had not been changed yet. A slot that would then fall
due with the next one or after it is no window (the skipped hour of an hourly schedule): windows
fall due one at a time, in the order of their keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import dropwhile, islice, takewhile
from zoneinfo import ZoneInfo


class Every(StrEnum):
    """How often a job is due."""

    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job is due. ``at`` is local; hourly uses its minute alone, weekly its ``weekday``."""

    every: Every
    at: time
    zone: ZoneInfo
    weekday: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """A slot: its key and the instant (UTC) at which it falls due."""

    key: str
    due_at: datetime


def due_window(schedule: Schedule, now: datetime) -> Window:
    """The newest window that is due at ``now`` (aware)."""
    return next(window for window in _backwards(schedule, now) if window.due_at <= now)


def next_window(schedule: Schedule, now: datetime) -> Window:
    """The first window that falls due after ``now`` (aware)."""
    *_, first = takewhile(lambda window: window.due_at > now, _backwards(schedule, now))
    return first


def missed_windows(schedule: Schedule, last: str, now: datetime, *, most: int = 31) -> list[str]:
    """Keys of the windows after ``last`` and before the due one, oldest first; where there are
    more than ``most``, the newest of them. None where ``last`` is of another kind of schedule."""
    try:
        since = window_named(schedule, last).due_at
    except ValueError:
        return []
    due = dropwhile(lambda window: window.due_at > now, _backwards(schedule, now))
    newer = takewhile(lambda window: window.due_at > since, due)
    return [window.key for window in islice(newer, 1, most + 1)][::-1]


def window_named(schedule: Schedule, key: str) -> Window:
    """The window with this key. Raises ValueError where the schedule has none so named."""
    try:
        near = _backwards(schedule, _instant(_parse(schedule, key), schedule.zone))
        around = list(takewhile(lambda window: window.key >= key, near))
    except (ValueError, OverflowError) as error:  # no date, or one at an end of the calendar
        raise ValueError(
            f"{key!r} is no window of this schedule ({schedule.every}); one looks like "
            f"{_key(schedule, datetime(2026, 9, 16, 14))}"
        ) from error
    if not around or around[-1].key != key:
        raise ValueError(f"the schedule has no window {key!r}")
    return around[-1]


def local_time(moment: datetime, timezone: str) -> str:
    """A moment as people of the repository read it: ``2026-09-16 09:00 Asia/Taipei``."""
    return f"{moment.astimezone(ZoneInfo(timezone)):%Y-%m-%d %H:%M} {timezone}"


def _backwards(schedule: Schedule, now: datetime) -> Iterator[Window]:
    """Windows around and before ``now``, newest first."""
    later: datetime | None = None
    for local in _slots(schedule, now.astimezone(schedule.zone)):
        due_at = _instant(local, schedule.zone)
        if later is None or due_at < later:
            later = due_at
            yield Window(_key(schedule, local), due_at)


def _slots(schedule: Schedule, local: datetime) -> Iterator[datetime]:
    """Wall-clock times, newest first, for about ten years. They start as far ahead of ``local`` as
    a change of the clock reaches, so that its whole gap is seen."""
    if schedule.every is Every.HOURLY:
        start = local.replace(tzinfo=None, minute=schedule.at.minute, second=0, microsecond=0)
        for hours in range(-3, 24 * 366 * 10):
            yield start - timedelta(hours=hours)
        return
    day = local.date()
    step = 1
    if schedule.every is Every.WEEKLY:
        day -= timedelta(days=(day.weekday() - schedule.weekday) % 7)
        step = 7
    for count in range(-2, 366 * 10):
        yield datetime.combine(day - timedelta(days=count * step), schedule.at)


def _key(schedule: Schedule, local: datetime) -> str:
    match schedule.every:
        case Every.HOURLY:
            return local.strftime("%Y-%m-%dT%H")
        case Every.DAILY:
            return local.date().isoformat()
        case Every.WEEKLY:
            year, week, _ = local.isocalendar()
            return f"{year}-W{week:02}"


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC)


def _parse(schedule: Schedule, key: str) -> datetime:
    """A wall-clock time inside or near the window that the key names."""
    match schedule.every:
        case Every.HOURLY:
            return datetime.strptime(key, "%Y-%m-%dT%H")  # noqa: DTZ007 - a wall-clock time
        case Every.DAILY:
            return datetime.combine(date.fromisoformat(key), schedule.at)
        case Every.WEEKLY:
            year, _, week = key.partition("-W")
            day = date.fromisocalendar(int(year), int(week), schedule.weekday + 1)
            return datetime.combine(day, schedule.at)
