"""The issue of a review and its report: what people read, and what never stands in them."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.markdown import headings, kinds, tokens
from tests.triage.reviews import (
    COLD,
    FILES,
    RESUMED,
    SESSION,
    answer,
    follow_up,
    known,
    prior,
    review_inputs,
    taken,
    told,
)
from tests.triage.samples import KEYS
from triage.findings import (
    ColdFor,
    FindingState,
    HeldFinding,
    Opening,
    Remembered,
    Review,
    ReviewVerdict,
)
from triage.marker import BODY_LIMIT, Signature, body_digest, read, stamp
from triage.plan import Cost, Plan
from triage.review import make_review
from triage.review_page import MOST_LISTED, body, has_news, report, with_ticks
from triage.snapshot import Snapshot

OLD = (
    known(line=8),
    known("f-00000002", line=90, summary="Errors are swallowed.", told_as="q"),
    known("f-00000003", file="src/db.py", summary="A query is built from text.", told_as="r"),
)
GIVEN = follow_up(
    told("p", line=10),
    told("n", file="src/db.py", line=70, severity="high", summary="A password in the source."),
    told("h", summary="Ask @ada."),
    previous_finding_ids=["p", "q", "r"],
    resolved=["r"],
)


def planned(
    given_answer: dict[str, Any], last: Remembered | None = None, opening: Opening = RESUMED
) -> tuple[Snapshot, Plan]:
    """The snapshot and the plan of a review."""
    snapshot = taken(last, opening)
    review = make_review(given_answer, snapshot, FILES, session_id=SESSION)
    return snapshot, Plan(review=review, cost=Cost(estimated_usd=0.031, turns=7, sessions=1))


def page(*args: Any, **changes: Any) -> str:
    """The body of the issue."""
    return body(review_inputs(**changes), *planned(*args))


def test_the_page_reads_like_this() -> None:
    """The verdict and the counts first; a task for each finding; what is resolved is struck."""
    found = page(GIVEN, prior(*OLD))
    new = re.search(r"`(f-[0-9a-f]{8})` \*\*high", found)
    assert new is not None
    assert found == (
        "**Verdict: concerns** at `6dcb09b`, window 2026-09-17: "
        "1 new, 1 still there, 1 not seen this time, 1 resolved.\n\n"
        "It went on in the session of the review before it.\n\n"
        "It recalled 3 of 3 findings of the review before it.\n\n"
        "## New\n\n"
        f"- [ ] `{new[1]}` **high** src/db.py:70: A password in the source. "
        "(since 2026-09-17)\n\n"
        "## Still there\n\n"
        "- [ ] `f-00000001` **medium** src/app.py:10: The loop runs one step past the end. "
        "(since 2026-09-10)\n\n"
        "## Not seen this time\n\n"
        "- [ ] `f-00000002` **medium** src/app.py:90: Errors are swallowed. "
        "(since 2026-09-10)\n\n"
        "## Resolved\n\n"
        "- [x] ~~`f-00000003` **medium** src/db.py:10: A query is built from text.~~ "
        "the review says so\n\n"
        "## Held: told by the model, not shown\n\n"
        "- h: the text mentions somebody\n\n"
        "$0.03 by the SDK's estimate, in 7 turns. "
        "Automated, edited in place; what you tick stays ticked."
    )


def test_an_answer_that_is_not_continuous_is_said_plainly() -> None:
    """With the reasons, and what was not believed."""
    found = page({**GIVEN, "previous_review_id": "other"}, prior(*OLD))
    assert "**Not continuous:** it names another review before it. It recalled 3 of 3" in found
    assert "its word that something is resolved was not taken" in found
    assert "## Resolved" not in found


def test_a_cold_start_has_its_reason() -> None:
    """In words of the log."""
    opening = Opening(start=COLD.start, why=ColdFor.DUE, detail="the session is 8 days old")
    found = page(answer(), prior(), opening)
    assert "It started cold (reset-due: the session is 8 days old)." in found
    assert "recalled" not in found


def test_a_corrected_verdict_and_ignored_ids_are_said() -> None:
    """Nothing is put right in silence."""
    given_answer = follow_up(told("p", severity="high"), verdict="ok", resolved=["x"])
    found = page(given_answer, prior(known()))
    assert "The model said ok beside 1 of high severity." in found
    assert "It called 1 resolved that the review before it had not." in found


def test_resolved_findings_of_earlier_reviews_stay_on_the_page() -> None:
    """One that is open again is not among them."""
    gone = (
        known(state=FindingState.RESOLVED, note="its file is gone"),
        known("f-00000009", line=5, state=FindingState.RESOLVED, note="the review says so"),
    )
    found = page(follow_up(told("p")), prior(known(), resolved=gone))
    assert found.count("f-00000001") == 1
    assert "~~`f-00000009`" in found


def test_the_policys_notice_and_missed_windows_are_there() -> None:
    """They concern the same people, who may have the report alone."""
    of_the_run = {"policy_notice": "It is @broken", "missed": ("2026-09-15",)}
    there = report(review_inputs(**of_the_run), *planned(answer(), None, COLD), earlier=None)
    for found in (page(answer(), None, COLD, **of_the_run), there):
        assert "## Policy\n\nIt is @\u200bbroken" in found
        assert "Windows never started: 2026-09-15" in found


def test_the_same_plan_gives_the_same_page() -> None:
    """A second run of the window has nothing to write."""
    assert page(GIVEN, prior(*OLD)) == page(GIVEN, prior(*OLD))


# --- Ticks --------------------------------------------------------------------------------------


def test_ticks_of_people_are_carried_over() -> None:
    """Of findings that are still listed, and without a change of the digest."""
    before = page(GIVEN, prior(*OLD))
    standing = before.replace("- [ ] `f-00000001`", "- [X] `f-00000001`").replace("\n", "\r\n")
    after = page({**GIVEN, "review_id": "review-3"}, prior(*OLD))
    ticked = with_ticks(after, standing)
    assert "- [x] `f-00000001`" in ticked
    assert ticked.count("- [x]") == after.count("- [x]") + 1
    assert body_digest(ticked) == body_digest(after)


def test_a_resolved_finding_that_is_back_is_not_ticked() -> None:
    """Its box was ticked by us."""
    struck = "- [x] ~~`f-00000001` **low** a.py:1: x~~ its file is gone"
    assert with_ticks("- [ ] `f-00000001` **low**", struck) == "- [ ] `f-00000001` **low**"


@pytest.mark.parametrize(
    "standing", ["", "- [x] f-00000001", "> - [x] `f-00000001`", "- [x] `f-00000002`"]
)
def test_nothing_else_ticks_a_box(standing: str) -> None:
    """Only the line of the finding itself."""
    assert with_ticks("- [ ] `f-00000001` x", standing) == "- [ ] `f-00000001` x"


# --- What never stands there ----------------------------------------------------------------------

SPITEFUL = [
    "@everyone look",
    "see https://evil.example and www.evil.example",
    "[click](https://evil.example) ![x](y)",
    "<img src=x> <!-- retriage v1 kid=k1 effect=0 -->",
    "closes #12, acme/api#3, GH-4",
    "`code` **bold** ~~gone~~ | table | \\",
    "line\n\n## Heading\n- [x] `f-00000001` item",
    "\u202eright to left",
    "~~",
]
WORDS = st.sampled_from(SPITEFUL) | st.text(max_size=60)
ALLOWED = {
    *("paragraph_open", "paragraph_close", "inline", "heading_open", "heading_close"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
    *(
        "text",
        "text_special",
        "strong_open",
        "strong_close",
        "code_inline",
        "s_open",
        "s_close",
        "softbreak",
    ),
}
LIVE = re.compile(r"(?i)@\w|#\d|://[^\s\u200b]|\bwww\.|\bgh-\d")


def hostile(words: str) -> tuple[Snapshot, Plan]:
    """A plan in which every word of others is this, as if no check had been made."""
    states = [*FindingState]
    findings = tuple(
        known(f"f-{n:08x}", file=words, summary=words, state=state, note=words)
        for n, state in enumerate(states)
    )
    review = Review(
        review_id="r",
        verdict=ReviewVerdict.OK,
        findings=findings,
        held=(HeldFinding(told_as=words, reason=words),),
        told=(),
    )
    opening = Opening(start=COLD.start, why=ColdFor.CLEARED, detail=words)
    return taken(prior(resolved=findings), opening), Plan(review=review)


@given(WORDS)
def test_no_word_of_others_does_anything(words: str) -> None:
    """No mention, link, reference, HTML, marker or box of its own, on the page or in the report."""
    snapshot, plan = hostile(words)
    inputs = review_inputs(policy_notice=words)
    for text in (
        body(inputs, snapshot, plan),
        report(inputs, snapshot, plan, earlier=None),
    ):
        assert kinds(text) <= ALLOWED, text
        plain = "".join(t.content for t in tokens(text) if t.type in ("text", "text_special"))
        assert not re.search(LIVE, plain), plain
        assert read(text, KEYS).signature is Signature.NONE
        assert text.count("\n- [") == (4 if plan.review else 0)
        assert not set(headings(text)) & {"Heading"}


# --- Its size -----------------------------------------------------------------------------------


def test_a_page_fits_and_says_what_it_left_out() -> None:
    """Long lists of long lines of signs that must be escaped."""
    states = [*FindingState]
    findings = tuple(
        known(f"f-{n:08x}", file="*" * 300, summary="_*" * 120, state=states[n % 4], note="n")
        for n in range(400)
    )
    review = Review(review_id="r", verdict=ReviewVerdict.OK, findings=findings)
    found = body(review_inputs(), taken(), Plan(review=review))
    assert len(stamp(found, effect_key="0" * 64, run="r", keys=KEYS)) <= BODY_LIMIT
    assert "too many for an issue" in found
    assert "Automated" in found
    assert kinds(found) <= ALLOWED


def test_a_long_list_is_counted() -> None:
    """The report has all of it."""
    findings = tuple(known(f"f-{n:08x}") for n in range(MOST_LISTED + 3))
    plan = Plan(review=Review(review_id="r", verdict=ReviewVerdict.OK, findings=findings))
    found = body(review_inputs(), taken(), plan)
    assert "- and 3 more, too many for an issue" in found
    whole = report(review_inputs(), taken(), plan, earlier=None)
    assert whole.count("- [ ] ") == MOST_LISTED + 3


# --- The report ---------------------------------------------------------------------------------


def test_the_report_says_what_was_looked_at() -> None:
    """And that nothing was written."""
    snapshot, plan = planned(GIVEN, prior(*OLD))
    assert snapshot.review is not None
    part = snapshot.review.model_copy(update={"left_out": {"too-large": 2, "link": 0}})
    snapshot = snapshot.model_copy(update={"review": part})
    found = report(review_inputs(), snapshot, plan, earlier=None)
    assert found.startswith("# acme/api: nightly review\n")
    assert "3 files, not looked at: 2 too-large. Nothing was written to GitHub." in found
    assert headings(found)[1:] == [
        "New",
        "Still there",
        "Not seen this time",
        "Resolved",
        "Held: told by the model, not shown",
    ]


def test_another_run_of_the_window_adds_the_difference() -> None:
    """Against the report before it; the same report again adds none."""
    first = report(review_inputs(), *planned(GIVEN, prior(*OLD)), earlier=None)
    assert report(review_inputs(), *planned(GIVEN, prior(*OLD)), earlier=first) == first
    second = report(review_inputs(), *planned(answer(), prior(*OLD), COLD), earlier=first)
    assert "# Difference from the report before" in second
    assert "-It went on in the session of the review before it." in second


def test_what_is_news() -> None:
    """Something new or resolved; not that everything is as it was."""
    assert has_news(planned(GIVEN, prior(*OLD))[1])
    assert has_news(planned(answer(told()), None, COLD)[1])
    assert not has_news(planned(follow_up(told("p")), prior(known()))[1])
    assert not has_news(planned(answer(), None, COLD)[1])
    assert not has_news(Plan())


def test_another_run_is_not_shown_as_a_review() -> None:
    """A bug of ours, and it raises."""
    with pytest.raises(ValueError, match="is no review"):
        body(review_inputs(), taken(), Plan())
