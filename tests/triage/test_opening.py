"""How a review starts, and why it starts cold."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.triage.reviews import FILES, SESSION, known, prior
from triage.findings import ColdFor, Opening, Remembered, Start
from triage.opening import Past, opening_of
from triage.policy import ReviewPolicy
from triage.tree import tree_of

NOW = datetime(2026, 9, 17, 2, 0, tzinfo=UTC)
YESTERDAY = NOW - timedelta(days=1)


def past(last: Remembered | None = None, **changes: Any) -> Past:
    """A last review whose session began yesterday."""
    held = {"prior": last or prior(known()), "session_id": SESSION, "session_since": YESTERDAY}
    return Past(**{**held, **changes})


def opening(before: Past, tree: dict[str, str] = FILES, **settings: Any) -> Opening:
    """How a review of these files starts."""
    return opening_of(ReviewPolicy.model_validate(settings), before, tree_of(tree), NOW)


@pytest.mark.parametrize(
    ("settings", "before", "start", "why"),
    [
        ({}, past(), Start.RESUMED, None),
        ({}, Past(), Start.COLD, ColdFor.FIRST),
        ({}, past(session_id=None), Start.COLD, ColdFor.NO_SESSION),
        ({}, past(session_id=None, cleared="session-lost"), Start.COLD, ColdFor.CLEARED),
        ({}, past(prior(known(), broken=True)), Start.COLD, ColdFor.BROKEN),
        ({}, past(prior(known(), broken=True), session_id=None), Start.COLD, ColdFor.BROKEN),
        ({}, past(session_since=NOW - timedelta(days=6)), Start.RESUMED, None),
        ({}, past(session_since=NOW - timedelta(days=7)), Start.COLD, ColdFor.DUE),
        (
            {"reset": {"every": "monthly"}},
            past(session_since=NOW - timedelta(days=29)),
            Start.RESUMED,
            None,
        ),
        (
            {"reset": {"every": "monthly"}},
            past(session_since=NOW - timedelta(days=30)),
            Start.COLD,
            ColdFor.DUE,
        ),
        (
            {"reset": {"every": "never"}},
            past(session_since=NOW - timedelta(days=999)),
            Start.RESUMED,
            None,
        ),
        ({}, past(session_since=None), Start.RESUMED, None),
        ({}, past(prior(known(), recall=0.49)), Start.COLD, ColdFor.RECALL),
        ({}, past(prior(known(), recall=0.5)), Start.RESUMED, None),
        ({"reset": {"recall": 0}}, past(prior(known(), recall=0)), Start.RESUMED, None),
        ({"memory": "fresh"}, past(), Start.COLD, ColdFor.FRESH),
        ({"memory": "fresh"}, Past(), Start.COLD, ColdFor.FRESH),
        ({"memory": "findings"}, Past(), Start.COLD, ColdFor.FIRST),
        ({"memory": "findings"}, past(), Start.FINDINGS, None),
        (
            {"memory": "findings"},
            past(prior(known(), broken=True), session_id=None, cleared="x"),
            Start.FINDINGS,
            None,
        ),
    ],
)
def test_how_a_review_starts(
    settings: dict[str, Any], before: Past, start: Start, why: ColdFor | None
) -> None:
    """Every reason for a cold start, and its edge."""
    found = opening(before, **settings)
    assert (found.start, found.why) == (start, why)


@pytest.mark.parametrize(
    ("files", "threshold", "start"),
    [
        ({**FILES, "src/new.py": "1"}, 0.5, Start.RESUMED),
        ({**FILES, "a": "1", "b": "1", "c": "1"}, 0.5, Start.COLD),
        ({"src/app.py": "d1", "src/db.py": "x", "README.md": "x"}, 0.5, Start.COLD),
        ({"src/app.py": "d1", "src/db.py": "x", "README.md": "x"}, 0.7, Start.RESUMED),
        ({"other": "1"}, 1, Start.COLD),
    ],
)
def test_a_large_change_of_the_tree(files: dict[str, str], threshold: float, start: Start) -> None:
    """Measured against the tree that the session began with."""
    assert opening(past(), files, reset={"changed": threshold}).start is start


def test_small_changes_add_up() -> None:
    """Each night changed little, but the session began with another tree."""
    last = prior(known(), began=tree_of({"old/a.py": "1", "old/b.py": "1"}))
    found = opening(past(last))
    assert found.why is ColdFor.CHANGED
    assert found.detail == "100% of the files changed since it began"


def test_a_week_is_counted_by_the_calendar() -> None:
    """A window that starts some minutes earlier than a week ago is due; zones are the policy's."""
    early = NOW - timedelta(days=7) + timedelta(minutes=20)
    assert opening(past(session_since=early)).why is ColdFor.DUE
    evening = datetime(2026, 9, 10, 20, 0, tzinfo=UTC)
    assert opening(past(session_since=evening)).why is ColdFor.DUE
    assert opening(past(session_since=evening), schedule={"timezone": "Asia/Taipei"}).why is None


def test_the_reason_is_told_in_words() -> None:
    """For the page and the log."""
    assert opening(past(session_since=NOW - timedelta(days=8))).detail == (
        "the session is 8 days old"
    )
    assert opening(past(prior(known(), recall=0.25))).detail == "it recalled 25% of the findings"
    lost = past(session_id=None, cleared="session-lost")
    assert opening(lost).detail == "session-lost"
