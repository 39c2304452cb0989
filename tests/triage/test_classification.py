"""The status of a run from the evidence of its effects: every row, and which one comes first."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import NOON, effect
from triage.classification import CLASSIFICATION, MOST_CONTINUATIONS, Facts, classify, row_of
from triage.contract import Evidence, RunEffect, Status

CONFIRMED, ABSENT, UNSETTLED, CONFLICT, SKIPPED = (
    Evidence.CONFIRMED,
    Evidence.ABSENT,
    Evidence.UNSETTLED,
    Evidence.CONFLICT,
    Evidence.SKIPPED,
)
DAY = timedelta(hours=24)


def an(evidence: Evidence, *, sends: int = 0, open: bool = False, hours: float = 0) -> RunEffect:
    """An effect, first sent ``hours`` ago if it was."""
    sent_at = NOON - timedelta(hours=hours) if sends else None
    return effect(evidence=evidence, sends=sends, open=open, sent_at=sent_at)


IN_PLACE = an(CONFIRMED)
WRITTEN = an(CONFIRMED, sends=1)
LEFT = an(SKIPPED)
LEFT_AFTER_SEND = an(SKIPPED, sends=1)
TO_DO = an(ABSENT)
PROVED_ABSENT = an(ABSENT, sends=1)
ACKNOWLEDGED = an(UNSETTLED, sends=1)
IN_DOUBT = an(UNSETTLED, sends=1, open=True)
OVERDUE = an(UNSETTLED, sends=1, open=True, hours=24)
CONTRADICTED = an(CONFLICT, sends=1)
REFUSED = an(CONFLICT)  # a refused request is no send

KINDS = [
    IN_PLACE,
    WRITTEN,
    LEFT,
    LEFT_AFTER_SEND,
    TO_DO,
    PROVED_ABSENT,
    ACKNOWLEDGED,
    IN_DOUBT,
    OVERDUE,
    CONTRADICTED,
    REFUSED,
]


def facts(
    *effects: RunEffect, planned: bool = True, continuations: int = 0, budget_spent: bool = False
) -> Facts:
    """The facts at noon."""
    return Facts(effects, NOON, planned, continuations, budget_spent)


# --- Each row -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_the_end", "status"),
    [
        (facts(WRITTEN, CONTRADICTED), Status.NEEDS_REVIEW),
        (facts(TO_DO, REFUSED), Status.NEEDS_REVIEW),
        (facts(WRITTEN, OVERDUE), Status.NEEDS_REVIEW),
        (facts(), Status.NO_CHANGE),
        (facts(IN_PLACE, IN_PLACE), Status.NO_CHANGE),
        (facts(WRITTEN, IN_PLACE), Status.COMPLETED),
        (facts(WRITTEN, LEFT), Status.COMPLETED),
        (facts(LEFT, IN_PLACE), Status.COMPLETED),
        (facts(LEFT), Status.COMPLETED),
        (facts(LEFT_AFTER_SEND), Status.COMPLETED),
        (facts(IN_DOUBT, continuations=6), Status.NEEDS_REVIEW),
        (facts(TO_DO, continuations=6), Status.NEEDS_REVIEW),
        (facts(IN_DOUBT, continuations=5), Status.FAILED_AFTER_WRITE),
        (facts(ACKNOWLEDGED, WRITTEN), Status.FAILED_AFTER_WRITE),
        (facts(IN_DOUBT, budget_spent=True), Status.FAILED_AFTER_WRITE),
        (facts(TO_DO, budget_spent=True), Status.WAITING),
        (facts(WRITTEN, TO_DO, budget_spent=True), Status.WAITING),
        (facts(TO_DO), Status.FAILED_BEFORE_WRITE),
        (facts(TO_DO, PROVED_ABSENT, LEFT), Status.FAILED_BEFORE_WRITE),
        (facts(planned=False), Status.FAILED_BEFORE_WRITE),
        (facts(WRITTEN, TO_DO), Status.FAILED_AFTER_WRITE),
        (facts(IN_PLACE, TO_DO), Status.FAILED_AFTER_WRITE),
        (facts(WRITTEN, PROVED_ABSENT), Status.FAILED_AFTER_WRITE),
        (facts(LEFT_AFTER_SEND, TO_DO), Status.FAILED_AFTER_WRITE),
    ],
)
def test_each_row(at_the_end: Facts, status: Status) -> None:
    """Told from the evidence alone."""
    assert classify(at_the_end) is status


def test_an_effect_is_overdue_a_day_after_its_intent() -> None:
    """Not a second earlier."""
    assert classify(facts(an(UNSETTLED, sends=1, hours=23.999))) is Status.FAILED_AFTER_WRITE
    assert classify(facts(an(UNSETTLED, sends=1, hours=24))) is Status.NEEDS_REVIEW


def test_the_sixth_continuation_is_the_last() -> None:
    """A run that did complete in it is completed all the same."""
    assert MOST_CONTINUATIONS == 6
    assert classify(facts(WRITTEN, continuations=6)) is Status.COMPLETED
    assert classify(facts(WRITTEN, TO_DO, continuations=6)) is Status.NEEDS_REVIEW


def test_without_a_plan_nothing_is_in_place() -> None:
    """No effect is planned yet: that is no empty plan."""
    assert classify(facts(planned=False)) is Status.FAILED_BEFORE_WRITE
    assert classify(facts(planned=True)) is Status.NO_CHANGE


def test_why_a_status_is_what_it_is_is_said_in_the_words_of_its_row() -> None:
    """They are shown to people."""
    assert row_of(facts(IN_DOUBT)) == "an effect is unsettled"
    assert row_of(facts(WRITTEN, TO_DO)) == "the rest"


# --- The order ----------------------------------------------------------------------------------


def everything() -> Iterator[Facts]:
    """All facts of up to two effects."""
    for count in range(3):
        for effects in combinations_with_replacement(KINDS, count):
            for planned, continuations, spent in product((True, False), (0, 5, 6), (True, False)):
                yield facts(
                    *effects, planned=planned, continuations=continuations, budget_spent=spent
                )


def fitting(at_the_end: Facts) -> list[int]:
    """The rows that fit, by their place."""
    return [n for n, (_, fits, _) in enumerate(CLASSIFICATION) if fits(at_the_end)]


def test_of_two_rows_that_fit_the_earlier_wins() -> None:
    """For every pair that can meet; the pairs that cannot are listed."""
    met: set[tuple[int, int]] = set()
    for at_the_end in everything():
        rows = fitting(at_the_end)
        assert row_of(at_the_end) == CLASSIFICATION[rows[0]][0]
        assert classify(at_the_end) is CLASSIFICATION[rows[0]][2]
        met |= {(rows[0], later) for later in rows[1:]}
    conflict, no_change, completed, sixth, unsettled, waiting, before, rest = range(8)
    never_together = {
        (conflict, no_change),
        (conflict, completed),
        (no_change, unsettled),
        (completed, unsettled),
        (unsettled, before),  # what is unsettled was sent
    }
    pairs = {(a, b) for a in range(8) for b in range(a + 1, 8)}
    assert pairs - met == never_together
    assert {sixth, waiting, before, rest} <= {row for pair in met for row in pair}


def test_every_row_decides_something() -> None:
    """None is hidden by those before it."""
    assert {fitting(at_the_end)[0] for at_the_end in everything()} == set(range(8))


# --- Against the text of the design -------------------------------------------------------------


def by_the_design(at_the_end: Facts) -> Status:
    """The design's list, sentence by sentence."""
    effects, now = at_the_end.effects, at_the_end.now
    seen = {item.evidence for item in effects}
    sent = [item for item in effects if item.sends > 0]
    late = [
        item
        for item in effects
        if item.evidence is UNSETTLED and item.sent_at is not None and item.sent_at + DAY <= now
    ]
    if CONFLICT in seen or late:
        return Status.NEEDS_REVIEW
    if at_the_end.planned and seen <= {CONFIRMED} and not sent:
        return Status.NO_CHANGE
    if at_the_end.planned and seen <= {CONFIRMED, SKIPPED}:
        return Status.COMPLETED
    if at_the_end.continuations >= 6:
        return Status.NEEDS_REVIEW
    if UNSETTLED in seen:
        return Status.FAILED_AFTER_WRITE
    if at_the_end.budget_spent and not any(item.open for item in effects):
        return Status.WAITING
    if CONFIRMED not in seen and {item.evidence for item in sent} <= {ABSENT}:
        return Status.FAILED_BEFORE_WRITE
    return Status.FAILED_AFTER_WRITE


EFFECTS = st.builds(
    an,
    st.sampled_from(Evidence),
    sends=st.integers(0, 2),
    open=st.booleans(),
    hours=st.sampled_from([0, 1, 23.99, 24, 48]),
)


@given(st.lists(EFFECTS, max_size=6), st.booleans(), st.integers(0, 7), st.booleans())
def test_any_evidence_is_classified_as_the_design_says(
    effects: list[RunEffect], planned: bool, continuations: int, budget_spent: bool
) -> None:
    """Also combinations that no run should come to."""
    found = facts(*effects, planned=planned, continuations=continuations, budget_spent=budget_spent)
    assert classify(found) is by_the_design(found)


@given(st.lists(EFFECTS, max_size=6), st.booleans(), st.integers(0, 7), st.booleans())
def test_the_promises_of_the_statuses(
    effects: list[RunEffect], planned: bool, continuations: int, budget_spent: bool
) -> None:
    """Completed: all seen, or skipped. No-change: nothing sent. Failed before any write: nothing
    of the run is on GitHub."""
    status = classify(
        facts(*effects, planned=planned, continuations=continuations, budget_spent=budget_spent)
    )
    evidence = {item.evidence for item in effects}
    if status is Status.COMPLETED:
        assert evidence <= {CONFIRMED, SKIPPED}
    if status is Status.NO_CHANGE:
        assert evidence <= {CONFIRMED}
        assert not any(item.sends for item in effects)
    if status is Status.FAILED_BEFORE_WRITE:
        assert not evidence & {CONFIRMED, UNSETTLED, CONFLICT}
        assert all(item.evidence is ABSENT for item in effects if item.sends)
    if status is Status.WAITING:
        assert budget_spent
        assert not any(item.open for item in effects)
