"""What an answer shows of the review before it: the log's line, and what breaks the link."""

from typing import Any

import pytest

from tests.triage.reviews import (
    COLD,
    RESUMED,
    SESSION,
    follow_up,
    known,
    prior,
    reviewed,
    taken,
    told,
)
from triage.findings import FindingState, Opening, Start
from triage.review import given_again, to_recall

UNSEEN = FindingState.UNSEEN


@pytest.mark.parametrize(
    ("changes", "session", "line", "broken"),
    [
        ({}, SESSION, "same_session=true prior_review_id_echoed=true recalled_findings=2/2", ()),
        (
            {"previous_finding_ids": ["p"]},
            SESSION,
            "same_session=true prior_review_id_echoed=true recalled_findings=1/2",
            (),
        ),
        (
            {"previous_review_id": "review-0"},
            SESSION,
            "same_session=true prior_review_id_echoed=false recalled_findings=2/2",
            ("it names another review before it",),
        ),
        (
            {},
            "another",
            "same_session=false prior_review_id_echoed=true recalled_findings=2/2",
            ("another session answered",),
        ),
        (
            {"previous_finding_ids": []},
            SESSION,
            "same_session=true prior_review_id_echoed=true recalled_findings=0/2",
            ("it recalls no finding",),
        ),
        (
            {"previous_finding_ids": ["p", "q", "x", "y"]},
            SESSION,
            "same_session=true prior_review_id_echoed=true recalled_findings=2/2",
            ("it recalls 2 findings that the last review had not",),
        ),
        (
            {"previous_review_id": "", "previous_finding_ids": []},
            SESSION,
            "same_session=true prior_review_id_echoed=false recalled_findings=0/2",
            ("it names another review before it", "it recalls no finding"),
        ),
    ],
)
def test_the_link_to_the_last_review(
    changes: dict[str, Any], session: str, line: str, broken: tuple[str, ...]
) -> None:
    """What the log's line says, and what breaks the link."""
    last = prior(known(told_as="p"), known("f-00000002", line=90, told_as="q"))
    given_answer = follow_up(told("p"), **{"previous_finding_ids": ["p", "q"], **changes})
    link = reviewed(given_answer, last, RESUMED, session=session).link
    assert link is not None
    assert str(link) == f"{line} current_findings=1"
    assert link.broken == broken


def test_a_review_without_findings_can_be_recalled_too() -> None:
    """There is nothing to recall, and that is continuous."""
    link = reviewed(follow_up(previous_finding_ids=[]), prior(), RESUMED).link
    assert link is not None
    assert (link.broken, link.share) == ((), None)


def test_findings_that_are_given_again_need_no_session() -> None:
    """Only those that were given must be echoed, and a new session is no break."""
    last = prior(known(), known("f-00000002", state=UNSEEN, unseen=1, told_as="q"))
    last = last.model_copy(update={"told": ("p", "held")})
    opening = Opening(start=Start.FINDINGS)
    assert [item.told_as for item in given_again(last)] == ["p"]
    part = taken(last, opening).review
    assert part is not None
    assert to_recall(part) == {"p"}
    link = reviewed(follow_up(told("p")), last, opening, session="another").link
    assert link is not None
    assert (link.same_session, link.broken) == (False, ())


def test_a_session_recalls_also_what_was_held() -> None:
    """It does not know that we held it."""
    last = prior(known(), told=("p", "held"))
    part = taken(last, RESUMED).review
    assert part is not None
    assert to_recall(part) == {"p", "held"}


def test_a_cold_review_has_no_link() -> None:
    """It was told of no review before it, whatever it claims."""
    assert reviewed(follow_up(told("p")), prior(known()), COLD).link is None
