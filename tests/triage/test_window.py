"""Windows: each slot of a schedule once, in order, whatever the clocks of its zone do."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from triage.window import (
    WEEKDAYS,
    Every,
    Schedule,
    Window,
    due_window,
    missed_windows,
    next_window,
    window_named,
)

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
LORD_HOWE = "Australia/Lord_Howe"  # its clocks change by half an hour
TROLL = "Antarctica/Troll"  # by two hours


def schedule(
    every: Every, at: str = "09:00", zone: str = "UTC", weekday: str = "monday"
) -> Schedule:
    """A schedule in words."""
    return Schedule(every, time.fromisoformat(at), ZoneInfo(zone), WEEKDAYS.index(weekday))


def utc(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(plan: Schedule, now: datetime, count: int) -> list[Window]:
    """The next windows, each found from the one before."""
    windows: list[Window] = []
    for _ in range(count):
        windows.append(next_window(plan, now))
        now = windows[-1].due_at
    return windows


def shown(windows: Sequence[Window]) -> list[tuple[str, str]]:
    """Keys and due times, in UTC, to be read."""
    return [(window.key, f"{window.due_at:%m-%d %H:%M}") for window in windows]


# --- Keys ---------------------------------------------------------------------------------------


def test_a_day_is_named_in_the_repositorys_time_zone() -> None:
    """At 01:00 UTC it is 09:00 in Taipei: the window of that day falls due."""
    plan = schedule(Every.DAILY, "09:00", "Asia/Taipei")
    assert due_window(plan, utc("2026-09-16T00:59:59")).key == "2026-09-15"
    assert due_window(plan, utc("2026-09-16T01:00")) == Window(
        "2026-09-16", utc("2026-09-16T01:00")
    )


def test_a_key_comes_from_the_slot_not_from_the_moment() -> None:
    """Whenever in the day it is asked for, by whomever, it is the same window."""
    plan = schedule(Every.DAILY)
    asked = {due_window(plan, utc("2026-09-16T09:00") + timedelta(minutes=n)) for n in range(1440)}
    assert asked == {Window("2026-09-16", utc("2026-09-16T09:00"))}


def test_an_hour_is_named_by_its_local_hour() -> None:
    """Kathmandu is 5:45 ahead: at 08:45 UTC it is 14:30 there."""
    plan = schedule(Every.HOURLY, "00:30", "Asia/Kathmandu")
    assert due_window(plan, utc("2026-09-16T09:00")) == Window(
        "2026-09-16T14", utc("2026-09-16T08:45")
    )


def test_a_week_is_an_iso_week() -> None:
    """Its key holds for the whole week; the weekday says when it falls due."""
    plan = schedule(Every.WEEKLY, "09:00", "UTC", "wednesday")
    assert due_window(plan, utc("2026-09-16T09:00")).key == "2026-W38"
    assert due_window(plan, utc("2026-09-16T08:59")).key == "2026-W37"
    assert next_window(plan, utc("2026-09-16T09:00")) == Window("2026-W39", utc("2026-09-23T09:00"))


@pytest.mark.parametrize(
    ("weekday", "keys"),
    [
        ("thursday", ["2026-W52", "2026-W53", "2027-W01"]),  # the 31st is in the week 53 of 2026
        ("friday", ["2026-W52", "2026-W53", "2027-W01"]),  # and so is the 1st of January
        ("monday", ["2026-W52", "2026-W53", "2027-W01"]),
    ],
)
def test_the_year_of_a_week_is_that_of_its_thursday(weekday: str, keys: list[str]) -> None:
    """At the turn of the year the week's number and year stay together."""
    plan = schedule(Every.WEEKLY, "09:00", "UTC", weekday)
    windows = following(plan, utc("2026-12-20T12:00"), 3)
    assert [window.key for window in windows] == keys
    assert all(window_named(plan, window.key) == window for window in windows)


# --- Daylight saving ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "at", "due"),
    [
        # the day before, the day of the change, the day after
        (BERLIN, "02:30", ["03-28 01:30", "03-29 01:30", "03-30 00:30"]),
        (NEW_YORK, "02:30", ["03-07 07:30", "03-08 07:30", "03-09 06:30"]),
        (LORD_HOWE, "02:15", ["10-02 15:45", "10-03 15:45", "10-04 15:15"]),
    ],
)
def test_a_time_that_is_skipped_falls_due_as_if_the_clock_had_not_changed(
    zone: str, at: str, due: list[str]
) -> None:
    """On that one day it is shown an hour (half an hour) later on the wall; the day is not lost."""
    start = utc(f"2026-{due[0].replace(' ', 'T')}") - timedelta(minutes=1)
    windows = following(schedule(Every.DAILY, at, zone), start, 3)
    assert [when for _, when in shown(windows)] == due
    days = [datetime.fromisoformat(window.key) for window in windows]
    assert [later - earlier for earlier, later in pairwise(days)] == [timedelta(days=1)] * 2


@pytest.mark.parametrize(
    ("zone", "at", "due"),
    [
        (BERLIN, "02:30", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
        (NEW_YORK, "01:30", ["10-31 05:30", "11-01 05:30", "11-02 06:30"]),
        (LORD_HOWE, "01:45", ["04-03 14:45", "04-04 14:45", "04-05 15:15"]),
    ],
)
def test_a_time_that_comes_twice_falls_due_the_first_time(
    zone: str, at: str, due: list[str]
) -> None:
    """The second occurrence is in the same window: it starts nothing."""
    plan = schedule(Every.DAILY, at, zone)
    start = utc(f"2026-{due[0].replace(' ', 'T')}") - timedelta(minutes=1)
    windows = following(plan, start, 3)
    assert [when for _, when in shown(windows)] == due
    second = windows[1].due_at + timedelta(hours=1)
    assert due_window(plan, second) == windows[1]


def test_an_hour_that_is_skipped_has_no_window() -> None:
    """In an hourly schedule it would fall due together with the next one."""
    windows = following(schedule(Every.HOURLY, "00:00", BERLIN), utc("2026-03-28T23:30"), 3)
    assert shown(windows) == [
        ("2026-03-29T01", "03-29 00:00"),
        ("2026-03-29T03", "03-29 01:00"),
        ("2026-03-29T04", "03-29 02:00"),
    ]


def test_two_hours_that_are_skipped_have_no_window() -> None:
    """Where the clock jumps by two, neither has."""
    windows = following(schedule(Every.HOURLY, "00:30", TROLL), utc("2026-03-28T23:45"), 3)
    assert shown(windows) == [
        ("2026-03-29T00", "03-29 00:30"),
        ("2026-03-29T03", "03-29 01:30"),
        ("2026-03-29T04", "03-29 02:30"),
    ]


def test_an_hour_that_comes_twice_is_one_window() -> None:
    """Two hours pass until the next key."""
    windows = following(schedule(Every.HOURLY, "00:00", BERLIN), utc("2026-10-24T23:30"), 3)
    assert shown(windows) == [
        ("2026-10-25T02", "10-25 00:00"),
        ("2026-10-25T03", "10-25 02:00"),
        ("2026-10-25T04", "10-25 03:00"),
    ]


def test_a_day_that_a_zone_left_out_has_no_window() -> None:
    """Samoa had no 30 December 2011."""
    windows = following(schedule(Every.DAILY, "09:00", "Pacific/Apia"), utc("2011-12-28T00:00"), 4)
    assert [window.key for window in windows] == [
        "2011-12-28",
        "2011-12-29",
        "2011-12-31",
        "2012-01-01",
    ]


# --- What holds of all of them ------------------------------------------------------------------

ZONES = [
    "UTC",
    BERLIN,
    NEW_YORK,
    LORD_HOWE,
    TROLL,
    "Asia/Kathmandu",
    "Asia/Taipei",
    "Asia/Beirut",  # changes at midnight
    "Africa/Casablanca",  # goes back for Ramadan
    "America/St_Johns",
    "Pacific/Chatham",  # 12:45 ahead
    "Pacific/Kiritimati",
    "Pacific/Niue",
]
SCHEDULES = st.builds(
    Schedule,
    every=st.sampled_from(Every),
    at=st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    weekday=st.integers(0, 6),
)
MOMENTS = st.timedeltas(timedelta(0), timedelta(days=8000)).map(utc("2015-01-01").__add__)


@given(SCHEDULES, MOMENTS)
@example(schedule(Every.HOURLY, "00:00", BERLIN), utc("2026-03-29T00:30"))
@example(schedule(Every.HOURLY, "00:00", TROLL), utc("2026-03-29T00:30"))
@example(schedule(Every.HOURLY, "00:45", LORD_HOWE), utc("2026-10-03T15:10"))
def test_the_due_window_is_due_and_the_next_one_is_not(plan: Schedule, now: datetime) -> None:
    """There is always one of each, and nothing between them."""
    due, following_one = due_window(plan, now), next_window(plan, now)
    assert due.due_at <= now < following_one.due_at
    assert due.key < following_one.key
    assert due_window(plan, following_one.due_at - timedelta(microseconds=1)) == due
    assert due_window(plan, following_one.due_at) == following_one
    assert next_window(plan, due.due_at) == following_one


@given(SCHEDULES, MOMENTS)
@example(schedule(Every.HOURLY, "00:00", BERLIN), utc("2026-03-28T12:00"))
@example(schedule(Every.HOURLY, "00:30", TROLL), utc("2026-03-28T12:00"))
@example(schedule(Every.DAILY, "00:00", "Asia/Beirut"), utc("2026-03-25T12:00"))
def test_windows_fall_due_in_the_order_of_their_keys(plan: Schedule, now: datetime) -> None:
    """Each key once, each later than the one before, and each is found by its name."""
    windows = following(plan, now, 30)
    assert all(
        earlier.key < later.key and earlier.due_at < later.due_at
        for earlier, later in pairwise(windows)
    )
    assert [window_named(plan, window.key) for window in windows] == windows


# --- Names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", Every)
@pytest.mark.parametrize(
    "key",
    [
        "",
        "today",
        "2026-13-01",
        "2026-02-30",
        "2026-9-16",
        "20260916",
        "2026-09-16T9",
        "2026-09-16T24",
        "2026-W00",
        "2026-W54",
        "2026-W9",
        "2026-W+38",
        "2026-W38-3",
        "2026-W٣٨",
        "2026-09-16\n",
        "comment-7",
        "0000-00-00",
        "9999-12-31",
        "9999-12-31T23",
        "9999-W52",
    ],
)
def test_what_names_no_window_is_said_to(every: Every, key: str) -> None:
    """The text of a person, a URL or a file: an error in words, whatever it is."""
    with pytest.raises(ValueError, match="window") as caught:
        window_named(schedule(every), key)
    assert repr(key) in str(caught.value)


@pytest.mark.parametrize(
    ("every", "example_key"),
    [
        (Every.HOURLY, "2026-09-16T14"),
        (Every.DAILY, "2026-09-16"),
        (Every.WEEKLY, "2026-W38"),
    ],
)
def test_the_error_shows_what_a_name_looks_like(every: Every, example_key: str) -> None:
    """The example is one that works."""
    with pytest.raises(ValueError, match=f"one looks like {example_key}"):
        window_named(schedule(every), "today")
    assert window_named(schedule(every), example_key).key == example_key


def test_an_hour_that_was_skipped_cannot_be_named() -> None:
    """It has no window."""
    with pytest.raises(ValueError, match="the schedule has no window '2026-03-29T02'"):
        window_named(schedule(Every.HOURLY, "00:00", BERLIN), "2026-03-29T02")


# --- Missed windows -----------------------------------------------------------------------------

DAILY = schedule(Every.DAILY)
NOON = utc("2026-09-16T12:00")


def test_nothing_is_missed_from_one_window_to_the_next() -> None:
    """Nor within one."""
    assert missed_windows(DAILY, "2026-09-15", NOON) == []
    assert missed_windows(DAILY, "2026-09-16", NOON) == []
    assert missed_windows(DAILY, "2026-09-20", NOON) == []


def test_after_an_outage_the_newest_window_is_due_and_the_others_are_missed() -> None:
    """They are named, oldest first, and not made up for."""
    assert due_window(DAILY, NOON).key == "2026-09-16"
    assert missed_windows(DAILY, "2026-09-12", NOON) == ["2026-09-13", "2026-09-14", "2026-09-15"]


def test_of_a_long_outage_the_newest_are_named() -> None:
    """A summary is no place for a year of dates."""
    missed = missed_windows(DAILY, "2020-01-01", NOON)
    assert (len(missed), missed[0], missed[-1]) == (31, "2026-08-16", "2026-09-15")
    assert missed_windows(DAILY, "2020-01-01", NOON, most=2) == ["2026-09-14", "2026-09-15"]


def test_missed_hours_and_weeks() -> None:
    """The same for each kind of schedule."""
    hourly, weekly = schedule(Every.HOURLY, "00:00"), schedule(Every.WEEKLY)
    assert missed_windows(hourly, "2026-09-16T09", NOON) == ["2026-09-16T10", "2026-09-16T11"]
    assert missed_windows(weekly, "2026-W35", NOON) == ["2026-W36", "2026-W37"]


@pytest.mark.parametrize(
    ("every", "last"),
    [
        (Every.DAILY, "2026-W30"),
        (Every.DAILY, "2026-09-01T08"),
        (Every.WEEKLY, "2026-08-01"),
        (Every.HOURLY, "2026-09-01"),
        (Every.DAILY, ""),
    ],
)
def test_a_schedule_of_another_kind_missed_nothing(every: Every, last: str) -> None:
    """The policy was changed: the old keys do not compare with the new ones."""
    assert missed_windows(schedule(every), last, NOON) == []


def test_an_hour_that_was_skipped_was_not_missed() -> None:
    """There was nothing to start."""
    plan = schedule(Every.HOURLY, "00:00", BERLIN)
    assert missed_windows(plan, "2026-03-29T01", utc("2026-03-29T02:30")) == ["2026-03-29T03"]


@given(SCHEDULES, MOMENTS, st.integers(0, 40))
def test_missed_are_exactly_those_in_between(plan: Schedule, now: datetime, count: int) -> None:
    """Whatever the schedule: those after the last one started, up to the one that is due."""
    windows = [due_window(plan, now), *following(plan, now, count)]
    keys = [window.key for window in windows]
    assert missed_windows(plan, keys[0], windows[-1].due_at, most=100) == keys[1:-1]


# --- Cost ---------------------------------------------------------------------------------------


class CountingZone(ZoneInfo):
    """A zone that counts how often it is asked."""

    asked = 0

    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        CountingZone.asked += 1
        return super().utcoffset(dt)

    def fromutc(self, dt: datetime, /) -> datetime:
        CountingZone.asked += 1
        return super().fromutc(dt)


@pytest.mark.parametrize("every", Every)
def test_finding_a_window_asks_the_zone_a_few_times(every: Every) -> None:
    """The clock asks for each repository at each tick: no walk over thousands of slots."""
    zone: tzinfo = CountingZone.no_cache(NEW_YORK)
    assert isinstance(zone, ZoneInfo)
    plan = Schedule(every, time(9, 30), zone)
    CountingZone.asked = 0
    due_window(plan, NOON)
    next_window(plan, NOON)
    window_named(plan, due_window(plan, NOON).key)
    assert 0 < CountingZone.asked < 60
