"""Every cell of the table that says what an answer of GitHub means."""

from datetime import UTC, datetime, timedelta

import pytest

from worker.github.failures import (
    GONE,
    REFUSALS,
    VERDICTS,
    Verdict,
    classify,
    message_of,
)
from worker.ports import Gone, Refusal

NOW = datetime(2026, 9, 16, 1, 0, tzinfo=UTC)
SECONDARY = "You have exceeded a secondary rate limit. Please wait."

STATUSES = {
    **dict.fromkeys((200, 201, 204), Verdict.DONE),
    **dict.fromkeys((301, 302, 303, 307, 308), Verdict.MOVED),
    **dict.fromkeys((400, 405, 406, 409, 411, 413, 414, 415, 422, 431), Verdict.INVALID),
    401: Verdict.UNAUTHORISED,
    403: Verdict.FORBIDDEN,
    **dict.fromkeys((404, 451), Verdict.NOT_FOUND),
    410: Verdict.DELETED,
    429: Verdict.LIMITED,
    # Nothing can be said: the request may have been carried out.
    **dict.fromkeys((202, 206, 300, 304, 402, 408, 418, 425, 499), Verdict.BROKEN),
    **dict.fromkeys((500, 502, 503, 504, 520, 599), Verdict.BROKEN),
}


@pytest.mark.parametrize(("status", "verdict"), STATUSES.items())
def test_a_status_means(status: int, verdict: Verdict) -> None:
    """Without headers that tell more, the status alone decides."""
    assert classify(status, {}, "", NOW).verdict is verdict


def test_every_row_is_tested() -> None:
    """A row that is added to the table is added here."""
    assert set(VERDICTS) <= set(STATUSES)


@pytest.mark.parametrize("word", ["locked", "archived", "suspended", "secondary", "Not Found", ""])
def test_no_message_but_the_secondary_limit_changes_a_403(word: str) -> None:
    """Locked and archived are told apart by re-reading, never by GitHub's words."""
    assert classify(403, {}, f"This was {word}.", NOW).verdict is Verdict.FORBIDDEN


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "30"}, "", 30),
        ({"retry-after": "30", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, "", 30),
        ({"retry-after": "Wed, 16 Sep 2026 01:02:00 GMT"}, "", 120),
        ({"retry-after": "soon"}, "", 60),
        ({"retry-after": "99999999999"}, "", 3600),
        ({"retry-after": "0"}, "", 1),
        (
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW.timestamp() + 90:.0f}"},
            "",
            90,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW.timestamp() - 9:.0f}"}, "", 1),
        (
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW.timestamp() + 1e6:.0f}"},
            "",
            3600,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "never"}, "", 60),
        ({"x-ratelimit-remaining": "0"}, "", 60),
        ({}, SECONDARY, 60),
        ({"x-ratelimit-remaining": "41", "x-ratelimit-reset": "1"}, SECONDARY, 60),
        ({}, "You have triggered an abuse detection mechanism.", 60),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_says_when_to_come_back(
    status: int, headers: dict[str, str], message: str, seconds: int
) -> None:
    """retry-after first, else the reset where nothing remains, else a minute; an hour at most."""
    reading = classify(status, headers, message, NOW)
    assert reading.verdict is Verdict.LIMITED
    assert reading.retry_at == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize("status", sorted(set(STATUSES) - {403, 429}))
def test_limit_headers_change_nothing_else(status: int) -> None:
    """They are on every answer of GitHub."""
    headers = {"retry-after": "30", "x-ratelimit-remaining": "0"}
    reading = classify(status, headers, SECONDARY, NOW)
    assert (reading.verdict, reading.retry_at) == (STATUSES[status], None)


def test_what_a_write_is_told() -> None:
    """Each verdict is done, a refusal, or unknown."""
    assert {
        Verdict.MOVED: (Refusal.GONE, Gone.TRANSFERRED),
        Verdict.UNAUTHORISED: (Refusal.UNAUTHORISED, None),
        Verdict.LIMITED: (Refusal.LIMITED, None),
        Verdict.FORBIDDEN: (Refusal.FORBIDDEN, None),
        Verdict.NOT_FOUND: (Refusal.GONE, Gone.NOT_FOUND),
        Verdict.DELETED: (Refusal.GONE, Gone.DELETED),
        Verdict.INVALID: (Refusal.INVALID, None),
    } == REFUSALS
    assert set(REFUSALS) == set(Verdict) - {Verdict.DONE, Verdict.BROKEN}


def test_what_a_read_gives_as_a_value() -> None:
    """A thing that is gone is no failure of the read."""
    assert {
        Verdict.MOVED: Gone.TRANSFERRED,
        Verdict.NOT_FOUND: Gone.NOT_FOUND,
        Verdict.DELETED: Gone.DELETED,
    } == GONE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"message": "Not Found"}, "Not Found"),
        ({"message": None}, ""),
        ({"message": 5}, ""),
        ([], ""),
        (None, ""),
        ("text", ""),
    ],
)
def test_an_error_may_have_any_shape(content: object, message: str) -> None:
    """A proxy in between answers in its own way."""
    assert message_of(content) == message
