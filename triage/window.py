"""Windows: the slot of a schedule that a trigger belongs to, in the repository's time zone.

Invariant: a window's key comes from the slot, never from the moment at which something started.
A local time that daylight saving skips falls due at the first instant after the gap; one that it
repeats falls due at its first occurrence (PEP 495, fold=0): each window once, none lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
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
    later: Window | None = None
    for window in _backwards(schedule, now):
        if window.due_at <= now:
            break
        later = window
    if later is None:
        raise ValueError("no window follows: the schedule has no slot within its step")
    return later


def missed_windows(schedule: Schedule, last: str, now: datetime, *, most: int = 31) -> list[str]:
    """Keys of the windows after ``last`` and before the due one, oldest first, at most ``most``."""
    keys: list[str] = []
    for window in _backwards(schedule, now):
        if window.due_at > now:
            continue
        if window.key <= last or len(keys) > most:
            break
        keys.append(window.key)
    return keys[1:][::-1]


def window_named(schedule: Schedule, key: str) -> Window:
    """The window with this key. Raises ValueError where the schedule has none so named."""
    try:
        around = _parse(schedule, key)
    except ValueError as error:
        raise ValueError(
            f"{key!r} is no window of this schedule ({schedule.every}); one looks like "
            f"{_key(schedule, datetime(2026, 9, 16, 14))}"
        ) from error
    for window in _backwards(schedule, around):
        if window.key == key:
            return window
        if window.key < key:
            break
    raise ValueError(f"the schedule has no window {key!r}")


def _backwards(schedule: Schedule, now: datetime) -> Iterator[Window]:
    """Windows around and before ``now``, newest first, each key once."""
    seen: str | None = None
    for local in _slots(schedule, now.astimezone(schedule.zone)):
        key = _key(schedule, local)
        if key != seen:
            seen = key
            yield Window(key, _instant(local, schedule.zone))


def _slots(schedule: Schedule, local: datetime) -> Iterator[datetime]:
    """Local wall-clock slots, newest first, from one step after ``local``, for about ten years."""
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
    """The UTC instant of a wall-clock time; in a gap, the first instant after it."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    back = instant.astimezone(zone).replace(tzinfo=None)
    if back == local:
        return instant
    offset_before = local.replace(tzinfo=zone, fold=0).utcoffset() or timedelta()
    offset_after = local.replace(tzinfo=zone, fold=1).utcoffset() or timedelta()
    return _gap_end(local, zone, max(offset_before, offset_after), min(offset_before, offset_after))


def _gap_end(local: datetime, zone: ZoneInfo, late: timedelta, early: timedelta) -> datetime:
    """Search the transition between the two readings of a skipped local time, to the second."""
    low = local.replace(tzinfo=UTC) - late
    high = local.replace(tzinfo=UTC) - early
    before = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def _parse(schedule: Schedule, key: str) -> datetime:
    """An instant inside or near the window that the key names."""
    match schedule.every:
        case Every.HOURLY:
            local = datetime.strptime(key, "%Y-%m-%dT%H")  # noqa: DTZ007 - a local wall-clock time
        case Every.DAILY:
            local = datetime.combine(date.fromisoformat(key), schedule.at)
        case Every.WEEKLY:
            year, _, week = key.partition("-W")
            day = date.fromisocalendar(int(year), int(week), schedule.weekday + 1)
            local = datetime.combine(day, schedule.at)
    return _instant(local, schedule.zone)
