"""What is made of a review's answer: what is held, new, still there, not seen, resolved."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.reviews import (
    COLD,
    FILES,
    RESUMED,
    SESSION,
    answer,
    follow_up,
    known,
    prior,
    reviewed,
    taken,
    told,
)
from triage.findings import (
    Finding,
    FindingState,
    Opening,
    Remembered,
    Review,
    ReviewVerdict,
    Severity,
    Start,
)
from triage.review import (
    FINDINGS_LIMIT,
    RESOLVED_KEPT,
    UnusableAnswerError,
    make_review,
    remembered,
)
from triage.tree import tree_of

NEW, STILL, UNSEEN, RESOLVED = (
    FindingState.NEW,
    FindingState.STILL,
    FindingState.UNSEEN,
    FindingState.RESOLVED,
)
OTHER = told("b", line=200, summary="A password is written into the source.", severity="high")


def states(review: Review) -> dict[str, FindingState]:
    """The state of each finding, by its id."""
    return {item.id: item.state for item in review.findings}


# --- What is held -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finding", "reason"),
    [
        ("text", "Input should be"),
        (None, "Input should be"),
        ({}, "id: Field required"),
        (told(name=""), "id: "),
        (told(name="a b"), "id: "),
        (told(name="a" * 65), "id: "),
        (told(name="<!--"), "id: "),
        (told(file="src/none.py"), "its file is not in the snapshot"),
        (told(file="/etc/passwd"), "its file is not in the snapshot"),
        (told(file="../src/app.py"), "its file is not in the snapshot"),
        (told(file=5), "file: "),
        (told(line=0), "line: "),
        (told(line=-1), "line: "),
        (told(line=True), "line: "),
        (told(line="10"), "line: "),
        (told(line=1.5), "line: "),
        (told(line=10**9), "line: "),
        (told(severity="grave"), "severity: "),
        (told(summary=""), "summary: "),
        (told(summary="a" * 241), "summary: "),
        (told(summary="Ask @ada about it."), "the text mentions somebody"),
        (told(summary="See https://evil.example/x"), "the text holds a link"),
        (told(summary="See [this](x)"), "the text holds a link"),
        (told(summary="A <b>fault</b>"), "the text holds HTML"),
        (told(summary="A <!-- retriage v1 kid=k1 -->"), "the text holds HTML"),
        (told(summary="Closes #12"), "the text refers to another issue"),
        (told(summary="One\u202ewords"), "the text holds control characters"),
        (told(summary="One\nTwo"), "the summary is longer than one line"),
        ({**told(), "@ada hunter2": 1}, "it has a field that is not asked for"),
    ],
)
def test_a_finding_that_fails_is_held_with_its_reason(finding: Any, reason: str) -> None:
    """The others go on."""
    review = reviewed(answer(finding, OTHER))
    [held] = review.held
    assert held.reason.startswith(reason) or reason in held.reason
    assert [item.told_as for item in review.findings] == ["b"]


@pytest.mark.parametrize(
    "given_answer",
    [
        {},
        {"verdict": "ok", "findings": []},
        answer(review_id=""),
        answer(review_id="a b"),
        answer(verdict="fine"),
        answer(findings={}),
        answer(findings="none"),
        follow_up(resolved="p"),
        follow_up(previous_finding_ids=[1]),
    ],
)
def test_an_answer_that_is_no_review(given_answer: dict[str, Any]) -> None:
    """It is a failure of the run, not a review without findings."""
    with pytest.raises(UnusableAnswerError):
        reviewed(given_answer)


def test_an_id_that_stands_there_twice() -> None:
    """The first keeps it; both are what the session will be asked to recall."""
    review = reviewed(answer(told("a"), told("a", line=90)))
    assert [item.line for item in review.findings] == [10]
    assert [item.reason for item in review.held] == ["its id stands there twice"]
    assert review.told == ("a",)


def test_more_findings_than_a_page_holds() -> None:
    """The rest is held, and said."""
    many = [told(f"n{n}", line=100 * n + 1) for n in range(FINDINGS_LIMIT + 2)]
    review = reviewed(answer(*many))
    assert len(review.findings) == FINDINGS_LIMIT
    assert {item.reason for item in review.held} == {f"more than {FINDINGS_LIMIT} findings"}


def test_a_path_with_a_dot_in_front_is_the_same_file() -> None:
    """Nothing else is made of it."""
    [finding] = reviewed(answer(told(file="./src/app.py"))).findings
    assert finding.file == "src/app.py"


# --- New, still there, not seen, resolved ---------------------------------------------------------


def test_a_first_review_builds_the_baseline() -> None:
    """Everything is new, gravest first, with the window and the commit that first told it."""
    review = reviewed(answer(told("a"), OTHER))
    assert [item.told_as for item in review.findings] == ["b", "a"]
    assert {item.state for item in review.findings} == {NEW}
    assert {item.since for item in review.findings} == {"2026-09-17"}
    assert {item.file_digest for item in review.findings} == {"d1"}
    assert review.link is None
    assert len({item.id for item in review.findings}) == 2


def test_the_same_answer_gives_the_same_ids() -> None:
    """A second attempt, and a ledger that was lost, name the findings alike."""
    assert reviewed(answer(told("a"), OTHER)) == reviewed(answer(told("a"), OTHER))
    shifted = reviewed(answer(told("z", line=14), {**OTHER, "id": "y", "line": 205}))
    assert states(shifted) == states(reviewed(answer(told("a"), OTHER)))


def test_a_finding_that_moved_keeps_its_id_and_its_age() -> None:
    """Other words, another severity, another id of the session: the same finding."""
    moved = told("q7", line=14, severity="high", summary="The loop goes one step past the end.")
    review = reviewed(follow_up(moved), prior(known()), RESUMED)
    [finding] = review.findings
    assert (finding.id, finding.state, finding.since) == ("f-00000001", STILL, "2026-09-10")
    assert (finding.line, finding.severity, finding.told_as) == (14, Severity.HIGH, "q7")
    assert finding.summary == known().summary


def test_a_page_does_not_rephrase_itself() -> None:
    """The words stay while they say the same or the file does; else the newer ones count."""
    other = told("q", summary="Counts an element too many.")
    [kept] = reviewed(answer(other), prior(known(file_digest="d1"))).findings
    assert (kept.state, kept.summary) == (STILL, known().summary)
    [newer] = reviewed(answer(other), prior(known(file_digest="d0"))).findings
    assert (newer.state, newer.summary) == (STILL, "Counts an element too many.")


@pytest.mark.parametrize("opening", [COLD, RESUMED, Opening(start=Start.FINDINGS)])
def test_how_it_started_changes_nothing_in_what_is_still_there(opening: Opening) -> None:
    """A cold review is compared with the ledger's last one like any other."""
    review = reviewed(follow_up(told("p")), prior(known()), opening)
    assert states(review) == {"f-00000001": STILL}


@pytest.mark.parametrize(
    ("opening", "given_answer", "before", "files", "state", "note"),
    [
        (RESUMED, follow_up(resolved=["p"]), known(), FILES, RESOLVED, "the review says so"),
        (
            RESUMED,
            follow_up(resolved=["f-00000001"]),
            known(),
            FILES,
            RESOLVED,
            "the review says so",
        ),
        (RESUMED, follow_up(resolved=[]), known(), FILES, UNSEEN, ""),
        (RESUMED, follow_up(resolved=["x"]), known(), FILES, UNSEEN, ""),
        (COLD, answer(), known(), FILES, UNSEEN, ""),
        (
            COLD,
            answer(),
            known(state=UNSEEN, unseen=1),
            FILES,
            RESOLVED,
            "not seen in 2 reviews in a row",
        ),
        (COLD, answer(), known(), {"README.md": "d3"}, RESOLVED, "its file is gone"),
        (
            RESUMED,
            follow_up(resolved=["p"], previous_review_id="other"),
            known(),
            FILES,
            UNSEEN,
            "",
        ),
        (COLD, answer(resolved=["p"]), known(), FILES, UNSEEN, ""),
    ],
)
def test_a_finding_that_was_not_told(
    opening: Opening,
    given_answer: dict[str, Any],
    before: Finding,
    files: dict[str, str],
    state: FindingState,
    note: str,
) -> None:
    """Resolved by the word of a continuous answer, by its file, or after two reviews in a row."""
    [finding] = reviewed(given_answer, prior(before), opening, files).findings
    assert (finding.state, finding.note) == (state, note)
    assert finding.id == "f-00000001"


def test_a_finding_that_is_seen_again_is_counted_anew() -> None:
    """Once not seen, then there: it is still there, and two more reviews must miss it."""
    [finding] = reviewed(answer(told("z")), prior(known(state=UNSEEN, unseen=1))).findings
    assert (finding.state, finding.unseen) == (STILL, 0)


def test_of_two_under_one_name_the_last_told_is_resolved() -> None:
    """Each new session begins its names anew: an older finding may bear the same one."""
    older = known("f-00000002", line=900, summary="Errors are swallowed.", state=UNSEEN)
    review = reviewed(follow_up(resolved=["p"]), prior(known(), older), RESUMED)
    assert {item.id: item.note for item in review.of(RESOLVED)} == {
        "f-00000001": "the review says so"
    }


def test_what_is_resolved_and_told_is_still_there() -> None:
    """The code speaks louder than the list."""
    review = reviewed(follow_up(told("p"), resolved=["p"]), prior(known()), RESUMED)
    assert states(review) == {"f-00000001": STILL}


def test_a_finding_that_was_told_and_held_was_seen() -> None:
    """Words that we cannot show do not resolve it, however often."""
    before = prior(known(state=UNSEEN, unseen=1))
    [finding] = reviewed(follow_up(told("p", summary="Ask @ada.")), before, RESUMED).findings
    assert (finding.state, finding.unseen) == (UNSEEN, 1)


def test_a_renamed_file_carries_its_findings() -> None:
    """Told or not, they are where it went."""
    files = {"src/main.py": "d1", "src/db.py": "d2"}
    renames = {"src/app.py": "src/main.py"}
    last = prior(known(), known("f-00000002", line=90, summary="Errors are swallowed."))
    review = reviewed(answer(told("z", file="src/main.py")), last, files=files, renames=renames)
    assert states(review) == {"f-00000001": STILL, "f-00000002": UNSEEN}
    assert {item.file for item in review.findings} == {"src/main.py"}


# --- The verdict --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_answer", "verdict", "corrected"),
    [
        (answer(verdict="ok"), ReviewVerdict.OK, False),
        (answer(told(), verdict="ok"), ReviewVerdict.OK, False),
        (answer(told(severity="high"), verdict="ok"), ReviewVerdict.CONCERNS, True),
        (answer(told(severity="high"), verdict="concerns"), ReviewVerdict.CONCERNS, False),
        (answer(verdict="concerns"), ReviewVerdict.CONCERNS, True),
        (answer(told(summary="Ask @ada"), verdict="concerns"), ReviewVerdict.CONCERNS, False),
    ],
)
def test_the_verdict_fits_the_findings(
    given_answer: dict[str, Any], verdict: ReviewVerdict, corrected: bool
) -> None:
    """It is made graver where it must be, never milder, and what was corrected is said."""
    review = reviewed(given_answer)
    assert (review.verdict, bool(review.verdict_note)) == (verdict, corrected)


def test_an_unseen_finding_does_not_make_the_verdict() -> None:
    """It was not told this time."""
    review = reviewed(answer(verdict="ok"), prior(known(severity="high")))
    assert review.verdict is ReviewVerdict.OK


def test_ids_that_the_last_review_had_not_are_counted() -> None:
    """They resolve nothing."""
    review = reviewed(follow_up(told("p"), resolved=["x", "y", "x"]), prior(known()), RESUMED)
    assert review.ignored == 2


# --- What is remembered -------------------------------------------------------------------------


def test_what_the_next_review_needs() -> None:
    """It goes through JSON, as the ledger keeps it."""
    last = prior(
        known(), known("f-00000002", line=90, summary="Errors are swallowed.", told_as="q")
    )
    snapshot = taken(last, RESUMED)
    given_answer = follow_up(OTHER, resolved=["p"], previous_finding_ids=["p", "q"])
    review = make_review(given_answer, snapshot, FILES, session_id=SESSION)
    kept = remembered(review, snapshot)
    assert Remembered.model_validate_json(kept.model_dump_json()) == kept
    assert json.loads(kept.model_dump_json())["review_id"] == "review-2"
    assert {item.state for item in kept.findings} == {NEW, UNSEEN}
    assert [item.id for item in kept.resolved] == ["f-00000001"]
    assert (kept.told, kept.recall, kept.broken) == (("b",), 1.0, False)
    assert (kept.window, kept.commit) == ("2026-09-17", snapshot.base_commit)


def test_a_session_remembers_the_tree_that_it_began_with() -> None:
    """Through every night that it goes on; a cold review begins anew."""
    old = tree_of({"old.py": "1"})
    for opening, began in ((RESUMED, old), (COLD, tree_of(FILES))):
        snapshot = taken(prior(known(), began=old), opening)
        review = make_review(follow_up(told("p")), snapshot, FILES, session_id=SESSION)
        assert remembered(review, snapshot).began == began


def test_resolved_findings_stay_for_a_while() -> None:
    """The newest first; one that is back is not among them."""
    earlier = tuple(known(f"f-{n:08x}", state=RESOLVED) for n in range(RESOLVED_KEPT + 5))
    snapshot = taken(prior(known("f-0000ffff"), resolved=earlier), RESUMED)
    review = make_review(follow_up(resolved=["p"]), snapshot, FILES, session_id=SESSION)
    kept = remembered(review, snapshot).resolved
    assert len(kept) == RESOLVED_KEPT
    assert [item.id for item in kept[:2]] == ["f-0000ffff", "f-00000000"]


def test_a_finding_that_comes_back_is_new_and_no_longer_resolved() -> None:
    """Under the id that it had."""
    first = reviewed(answer(told()))
    gone = prior(resolved=tuple(i.model_copy(update={"state": RESOLVED}) for i in first.findings))
    snapshot = taken(gone)
    review = make_review(answer(told()), snapshot, FILES, session_id=SESSION)
    assert states(review) == {first.findings[0].id: NEW}
    assert remembered(review, snapshot).resolved == ()


SUMMARIES = st.sampled_from(
    ["The loop runs past the end.", "A password in the source.", "Errors are swallowed."]
)
ANSWERED = st.lists(
    st.builds(told, st.sampled_from("abcdef"), line=st.integers(1, 90), summary=SUMMARIES),
    max_size=6,
)


@given(ANSWERED, ANSWERED)
def test_no_finding_is_lost_and_none_is_doubled(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    """Whatever two reviews in a row tell: each id once, and every open one of the first is still
    accounted for in the second."""
    snapshot = taken()
    before = make_review(answer(*first), snapshot, FILES, session_id=SESSION)
    after = reviewed(answer(*second), remembered(before, snapshot))
    ids = [item.id for item in after.findings]
    assert len(set(ids)) == len(ids)
    assert {item.id for item in before.findings} <= set(ids)
    assert len(after.held) + sum(item.state.is_open for item in after.findings) == len(second)


@given(ANSWERED, st.integers(0, 3))
def test_ids_are_stable_when_lines_shift(findings: list[dict[str, Any]], shift: int) -> None:
    """Some lines put in at the top of the file change no id and make nothing new."""
    snapshot = taken()
    before = make_review(answer(*findings), snapshot, FILES, session_id=SESSION)
    moved = [{**item, "line": item["line"] + shift} for item in findings]
    after = reviewed(answer(*moved), remembered(before, snapshot))
    assert {item.id: item.line for item in after.findings} == {
        item.id: item.line + shift for item in before.findings
    }
    assert {item.state for item in after.findings} <= {STILL}
