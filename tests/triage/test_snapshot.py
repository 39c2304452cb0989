"""Which issues a run takes, which it leaves, and why."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import BOT, BOTS, NOON, PERSON, issue, snapshot
from triage.policy import Backlog
from triage.snapshot import Issue, Selection, frozen, select, without_bodies

LONG_AGO = NOON - timedelta(days=365)


def chosen(
    *listed: Issue,
    settled: Mapping[int, str] | None = None,
    backlog: Backlog = Backlog.LABELS,
    backlog_until: datetime = LONG_AGO,
    max_issues: int = 50,
    always: Iterable[int] = (),
) -> Selection:
    """What is taken of a listing, by a run that is not the first."""
    return select(
        listed,
        bot_ids=BOTS,
        settled=settled or {},
        backlog=backlog,
        backlog_until=backlog_until,
        max_issues=max_issues,
        always=frozenset(always),
    )


def numbers(selection: Selection) -> list[int]:
    """The issues taken."""
    return [item.number for item in selection.issues]


def test_open_issues_without_labels_are_taken() -> None:
    """As they were when they were read."""
    selection = chosen(issue(1), issue(2))
    assert selection == Selection(
        issues=(frozen(issue(1)), frozen(issue(2))), passed_over={}, left_over=0
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"labels": ("docs",)}, "labelled"),
        ({"locked": True}, "locked"),
        ({"labels": ("docs",), "locked": True}, "labelled"),
    ],
)
def test_what_is_left_out_is_counted_by_its_reason(changes: dict[str, Any], reason: str) -> None:
    """A person has decided, or nothing could be written."""
    selection = chosen(issue(1, **changes), issue(2))
    assert numbers(selection) == [2]
    assert selection.passed_over == {reason: 1}


@pytest.mark.parametrize(
    "changes", [{"is_pull_request": True}, {"author_id": BOT}, {"state": "closed"}]
)
def test_what_is_no_candidate_is_not_counted(changes: dict[str, Any]) -> None:
    """Pull requests, the bot's own issues and closed ones are not worth telling."""
    assert chosen(issue(1, **changes)) == Selection(issues=(), passed_over={}, left_over=0)


def test_what_was_decided_is_not_paid_for_again() -> None:
    """Until its title or body changes."""
    decided = {1001: issue(1).content_digest}
    assert chosen(issue(1), settled=decided).passed_over == {"decided": 1}
    assert numbers(chosen(issue(1, body="Now with a trace"), settled=decided)) == [1]
    assert numbers(chosen(issue(1, title="Now clear"), settled=decided)) == [1]
    assert chosen(issue(1, author="bob", url="elsewhere"), settled=decided).issues == ()
    assert numbers(chosen(issue(2), settled=decided)) == [2]


# --- The first run ------------------------------------------------------------------------------

OLD, FRESH = issue(1), issue(9)
FIRST_RUN = OLD.created_at


def test_the_backlog_gets_labels_only() -> None:
    """A first run that comments on what is there already would be noise."""
    selection = chosen(OLD, FRESH, backlog_until=FIRST_RUN)
    assert [item.labels_only for item in selection.issues] == [True, False]


def test_the_backlog_may_be_treated_as_anything_else() -> None:
    """``full``: comments too."""
    selection = chosen(OLD, FRESH, backlog_until=FIRST_RUN, backlog=Backlog.FULL)
    assert [item.labels_only for item in selection.issues] == [False, False]


def test_the_backlog_may_be_left_alone() -> None:
    """``skip``: it is counted."""
    selection = chosen(OLD, FRESH, backlog_until=FIRST_RUN, backlog=Backlog.SKIP)
    assert (numbers(selection), selection.passed_over) == ([9], {"backlog": 1})


# --- Limits and order ---------------------------------------------------------------------------


def test_the_oldest_are_taken_first_and_the_rest_is_counted() -> None:
    """The next window goes on with them."""
    selection = chosen(issue(3), issue(1), issue(2), max_issues=2)
    assert (numbers(selection), selection.left_over) == ([1, 2], 1)


def test_a_transferred_issue_is_as_old_as_it_is() -> None:
    """Its number is new, its date is not: it is taken first, and stands by its number."""
    moved = issue(30, created_at=LONG_AGO + timedelta(days=1))
    selection = chosen(issue(1), issue(2), moved, max_issues=2)
    assert (numbers(selection), selection.left_over) == ([1, 30], 1)


def test_an_issue_that_two_pages_show_is_taken_once() -> None:
    """A listing drifts while it is paged through: what was shown last is true."""
    selection = chosen(issue(1), issue(2), issue(1, title="Changed"))
    assert [(item.number, item.title) for item in selection.issues] == [
        (1, "Changed"),
        (2, "Title 2"),
    ]


# --- Commands and forced runs -------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [{"labels": ("bug",)}, {"state": "closed"}, {}],
    ids=["labelled", "closed", "decided"],
)
def test_a_command_takes_its_issue(changes: dict[str, Any]) -> None:
    """Whatever was decided, whatever its labels, and whether it is closed: somebody asks."""
    asked = issue(1, **changes)
    selection = chosen(asked, always=[1001], settled={1001: asked.content_digest})
    assert (numbers(selection), selection.passed_over) == ([1], {})


@pytest.mark.parametrize("backlog", Backlog)
def test_a_command_is_no_backlog(backlog: Backlog) -> None:
    """An old issue gets what a new one would."""
    selection = chosen(OLD, always=[OLD.id], backlog_until=FIRST_RUN, backlog=backlog)
    assert [item.labels_only for item in selection.issues] == [False]


def test_even_a_command_cannot_write_where_nobody_can() -> None:
    """A locked issue is passed over, and said so."""
    selection = chosen(issue(1, locked=True), always=[1001])
    assert (numbers(selection), selection.passed_over) == ([], {"locked": 1})


@pytest.mark.parametrize("changes", [{"is_pull_request": True}, {"author_id": BOT}])
def test_a_command_does_not_reach_pull_requests_or_the_bots_own(changes: dict[str, Any]) -> None:
    """They are never in a snapshot."""
    assert chosen(issue(1, **changes), always=[1001]).issues == ()


def test_a_forced_run_takes_its_issues_before_others() -> None:
    """The limit falls on those that nobody asked for."""
    selection = chosen(issue(1), issue(2), issue(9), always=[1009], max_issues=2)
    assert (numbers(selection), selection.left_over) == ([1, 9], 1)


# --- What holds of all of them ------------------------------------------------------------------

ISSUES = st.lists(
    st.builds(
        issue,
        st.integers(1, 12),
        labels=st.sampled_from([(), ("bug",)]),
        locked=st.booleans(),
        state=st.sampled_from(["open", "closed"]),
        author_id=st.sampled_from([BOT, PERSON]),
        is_pull_request=st.booleans(),
        created_at=st.integers(0, 5).map(lambda days: NOON + timedelta(days=days)),
    ),
    max_size=30,
)


@given(ISSUES, st.sets(st.integers(1001, 1012)), st.integers(1, 6), st.sampled_from(Backlog))
def test_every_candidate_is_taken_passed_over_or_left_over(
    listed: list[Issue], always: set[int], max_issues: int, backlog: Backlog
) -> None:
    """Each once; never the bot's, never a pull request, never more than the limit."""
    selection = chosen(
        *listed,
        always=always,
        max_issues=max_issues,
        backlog=backlog,
        backlog_until=NOON + timedelta(days=2),
    )
    last = {item.id: item for item in listed}
    candidates = [
        item
        for item in last.values()
        if item.author_id == PERSON
        and not item.is_pull_request
        and (item.state == "open" or item.id in always)
    ]
    counted = len(selection.issues) + sum(selection.passed_over.values()) + selection.left_over
    assert counted == len(candidates)
    assert len(selection.issues) <= max_issues
    assert numbers(selection) == sorted({item.number for item in selection.issues})
    assert {item.id for item in selection.issues} <= {item.id for item in candidates}
    assert not any(last[item.id].locked for item in selection.issues)


# --- What is kept -------------------------------------------------------------------------------


def test_a_digest_is_of_the_content_alone() -> None:
    """Labels, people and comments do not change what a decision is about."""
    assert issue(1).content_digest == issue(1, labels=("bug",), author="bob").content_digest
    assert (
        issue(1, title="a", body="b").content_digest != issue(1, title="b", body="a").content_digest
    )


def test_once_a_run_is_over_its_snapshot_keeps_digests_for_bodies() -> None:
    """What was decided about can still be proved; the text is not kept."""
    kept = without_bodies(snapshot(issue(1), issue(2)))
    assert [item.body for item in kept.issues] == ["", ""]
    assert [item.content_digest for item in kept.issues] == [
        issue(1).content_digest,
        issue(2).content_digest,
    ]
    assert [item.title for item in kept.issues] == ["Title 1", "Title 2"]
