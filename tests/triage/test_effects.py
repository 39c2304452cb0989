"""From decisions to intended writes, and what an issue's present state makes of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import (
    DEDUPE_KEY,
    LABELS,
    REPOSITORY,
    Record,
    decision,
    effect,
    frozen_issue,
    inputs,
    issue,
    known,
    policy,
    snapshot,
)
from triage.comment import render
from triage.contract import Evidence, RunEffect, Skip
from triage.effects import confirmed, derive, judge, skipped
from triage.identifiers import EffectKind, Family, Mode, effect_key
from triage.marker import body_digest
from triage.plan import Cost, Plan
from triage.snapshot import Issue

COMMENT, UNLABEL, LABEL = EffectKind.COMMENT, EffectKind.UNLABEL, EffectKind.LABELS
COMMAND: dict[str, Any] = {
    "target_issue": 1,
    "dedupe_key": DEDUPE_KEY.replace("daily-issue-", "issue-re"),
}


def derived(*decisions: Any, labels_only: bool = False, **changes: Any) -> tuple[RunEffect, ...]:
    """The effects of these decisions; of one on issue 1 where none is given."""
    made = decisions or (decision(),)
    taken = snapshot(*(frozen_issue(item.number, labels_only=labels_only) for item in made))
    return derive(Plan(decisions=made, held=(), cost=Cost()), taken, inputs(**changes))


def kinds(effects: tuple[RunEffect, ...]) -> list[tuple[int, EffectKind]]:
    """What is written, in its order."""
    return [(item.issue, item.kind) for item in effects]


# --- Deriving -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.COMMENT, [COMMENT, LABEL]),
        (Mode.LABEL, [LABEL]),
        (Mode.OBSERVE, [COMMENT, LABEL]),
    ],
)
def test_the_mode_says_what_is_written(mode: Mode, expected: list[EffectKind]) -> None:
    """Observe thinks of what comment would write: its report shows the exact writes."""
    assert kinds(derived(mode=mode)) == [(1, kind) for kind in expected]


def test_issues_come_one_after_the_other_with_the_labels_last() -> None:
    """The label takes an issue out of the untriaged: it is the commit."""
    assert kinds(derived(decision(1), decision(2))) == [
        (1, COMMENT),
        (1, LABEL),
        (2, COMMENT),
        (2, LABEL),
    ]


@pytest.mark.parametrize("mode", Mode)
def test_the_backlog_gets_labels_only(mode: Mode) -> None:
    """Silence about what was there before the first run."""
    assert kinds(derived(mode=mode, labels_only=True)) == [(1, LABEL)]


def test_an_effect_says_what_it_is_on_and_what_is_intended() -> None:
    """Its key is of the repository, the issue and the family; nothing is sent yet."""
    comment, labels = derived()
    assert comment == RunEffect(
        effect_key=effect_key(REPOSITORY, 1001, Family.TRIAGE, COMMENT),
        kind=COMMENT,
        issue=1,
        issue_id=1001,
        digest=body_digest(render(decision())),
    )
    assert labels == RunEffect(
        effect_key=effect_key(REPOSITORY, 1001, Family.TRIAGE, LABEL),
        kind=LABEL,
        issue=1,
        issue_id=1001,
        labels=("bug",),
    )


def test_a_command_means_the_same_effects() -> None:
    """Whichever job: the same comment, the same labels."""
    mine = {item.kind: item.effect_key for item in derived()}
    commanded = {item.kind: item.effect_key for item in derived(**COMMAND)}
    assert mine.items() <= commanded.items()


def test_an_own_label_is_taken_away_only_where_somebody_asks() -> None:
    """By a command, or by a run that is forced: those that exclude a chosen one, before the new
    ones are added."""
    effects = derived(**COMMAND)
    assert kinds(effects) == [(1, COMMENT), (1, UNLABEL), (1, LABEL)]
    assert effects[1].labels == ("enhancement", "question")
    assert kinds(derived(force=True)) == kinds(derived())


def test_a_forced_run_of_a_window_takes_own_labels_away_too() -> None:
    """It is a command for all of its issues."""
    forced = derived(dedupe_key=f"{DEDUPE_KEY}:forced-812")
    assert kinds(forced) == [(1, COMMENT), (1, UNLABEL), (1, LABEL)]


def test_where_nothing_is_excluded_nothing_is_taken_away() -> None:
    """A label outside the groups has no rivals."""
    assert kinds(derived(decision(labels=["docs"]), **COMMAND)) == [(1, COMMENT), (1, LABEL)]


# --- Judging ------------------------------------------------------------------------------------

REPOSITORY_LABELS = frozenset([*LABELS, "wontfix"])


def judged(
    now: Issue | Skip,
    *,
    labels: tuple[str, ...] = ("bug",),
    records: dict[EffectKind, dict[str, Any]] | None = None,
    repository: frozenset[str] = REPOSITORY_LABELS,
    update: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[EffectKind, RunEffect]:
    """What becomes of a decision for ``labels`` on an issue that is now so."""
    effects = derived(decision(labels=list(labels)), **changes)
    effects = tuple(item.model_copy(update=update or {}) for item in effects)
    shared: dict[str, Record] = {}
    for kind, fields in (records or {}).items():
        shared |= known(effects, kind, **fields)
    found = judge(effects, now, shared, repository, inputs(**changes))
    assert [item.effect_key for item in found] == [item.effect_key for item in effects]
    return {item.kind: item for item in found}


def outcome(effects: dict[EffectKind, RunEffect]) -> dict[EffectKind, str]:
    """Evidence and reason, as one word."""
    return {
        kind: str(item.evidence) + (f" {item.reason}" if item.reason else "")
        for kind, item in effects.items()
    }


def test_an_untouched_issue_gets_everything() -> None:
    """As it was intended."""
    found = judged(issue())
    assert outcome(found) == {COMMENT: "absent", LABEL: "absent"}
    assert found[LABEL].labels == ("bug",)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (issue(locked=True), "locked"),
        (issue(state="closed"), "closed"),
        (issue(labels=("wontfix",)), "human-labelled"),
        (issue(labels=("bug",)), "human-labelled"),
        (Skip.DELETED, "deleted"),
        (Skip.TRANSFERRED, "transferred"),
        (Skip.LOCKED, "locked"),
    ],
)
def test_an_issue_that_changed_since_is_skipped(now: Issue | Skip, why: str) -> None:
    """All of its effects, with the reason: it does not keep the run from being completed."""
    assert outcome(judged(now)) == {COMMENT: f"skipped {why}", LABEL: f"skipped {why}"}


@pytest.mark.parametrize(
    "now", [issue(state="closed"), issue(labels=("wontfix",))], ids=["closed", "labelled"]
)
def test_a_command_goes_on_all_the_same(now: Issue) -> None:
    """Somebody asks for this issue as it is."""
    assert set(outcome(judged(now, **COMMAND)).values()) == {"absent", "confirmed"}
    assert judged(issue(locked=True), **COMMAND)[LABEL].reason == "locked"


def test_what_was_begun_is_finished() -> None:
    """Once its comment is there, a label that somebody adds does not stop an issue half way."""
    sent = derived()[0].model_copy(
        update={"sends": 1, "evidence": Evidence.CONFIRMED, "github_id": 5}
    )
    for now in (issue(labels=("wontfix",)), issue(state="closed")):
        found = judge([sent, derived()[1]], now, {}, REPOSITORY_LABELS, inputs())
        assert [item.evidence for item in found] == [Evidence.CONFIRMED, Evidence.ABSENT]
    [_, label] = judge([sent, derived()[1]], Skip.DELETED, {}, REPOSITORY_LABELS, inputs())
    assert label.reason == Skip.DELETED


@pytest.mark.parametrize(
    "update",
    [
        {"evidence": Evidence.UNSETTLED, "open": True, "sends": 1},
        {"evidence": Evidence.CONFLICT, "reason": "422"},
        {"evidence": Evidence.CONFIRMED},
    ],
)
def test_what_is_sent_or_settled_is_not_judged_anew(update: dict[str, Any]) -> None:
    """Its evidence stands until GitHub says otherwise."""
    for now in (issue(locked=True), Skip.DELETED, issue(labels=("bug",))):
        found = judged(now, update=update)
        assert [item for item in found.values() if item != item.model_copy(update=update)] == []


def test_an_effect_of_no_issue_is_none_of_its_business() -> None:
    """A summary is judged where it is written."""
    summary = effect(EffectKind.SUMMARY)
    assert judge([summary], issue(), {}, REPOSITORY_LABELS, inputs()) == [summary]


def test_what_was_sent_and_proved_absent_is_still_wanted() -> None:
    """A comment is sent once more; labels are, unless people have decided since."""
    again = {"evidence": Evidence.ABSENT, "sends": 1, "reason": "proved absent by five reads"}
    assert outcome(judged(issue(labels=("enhancement",)), update=again)) == {
        COMMENT: "absent proved absent by five reads",
        LABEL: "skipped human-labelled",
    }
    assert judged(issue(), update=again)[LABEL].evidence is Evidence.ABSENT


# --- Labels -------------------------------------------------------------------------------------


def test_the_bots_own_labels_are_not_a_persons() -> None:
    """The run was killed after it labelled: its successor goes on."""
    found = judged(issue(labels=("bug",)), records={LABEL: {"own_labels": ("bug",)}})
    assert outcome(found) == {COMMENT: "absent", LABEL: "confirmed"}


def test_only_labels_that_are_missing_are_sent() -> None:
    """No difference, no write."""
    found = judged(
        issue(labels=("docs",)),
        labels=("bug", "docs"),
        records={LABEL: {"own_labels": ("docs",)}},
    )
    assert (outcome(found)[LABEL], found[LABEL].labels) == ("absent", ("bug",))


@pytest.mark.parametrize(
    "record",
    [{"removed_labels": ("bug",)}, {"own_labels": ("bug",)}],
    ids=["a webhook told so", "the bot had added it and it is gone"],
)
def test_a_label_that_a_person_removed_stays_removed(record: dict[str, Any]) -> None:
    """Until somebody forces it; other labels are added all the same."""
    records = {LABEL: record}
    assert outcome(judged(issue(), records=records))[LABEL] == "skipped human-removed"
    both = judged(issue(), labels=("bug", "docs"), records=records)[LABEL]
    assert (both.evidence, both.labels) == (Evidence.ABSENT, ("docs",))
    forced = judged(issue(), records=records, force=True)[LABEL]
    assert (forced.evidence, forced.labels) == (Evidence.ABSENT, ("bug",))
    again = judged(issue(), records=records, **COMMAND)
    assert outcome(again)[LABEL] == "skipped human-removed"


def test_a_label_that_the_repository_does_not_have_is_not_sent() -> None:
    """GitHub would create it."""
    assert outcome(judged(issue(), repository=frozenset(["docs"])))[LABEL] == (
        "skipped refused: the repository has no label 'bug'"
    )
    both = judged(issue(), labels=("bug", "docs"), repository=frozenset(["docs"]))[LABEL]
    assert (both.evidence, both.labels) == (Evidence.ABSENT, ("docs",))


@pytest.mark.parametrize("force", [False, True])
def test_a_persons_label_wins_over_one_that_it_excludes(force: bool) -> None:
    """Of a group an issue gets one at most, and theirs is there already."""
    theirs = issue(labels=("enhancement",))
    found = judged(theirs, labels=("bug",), force=force, **COMMAND)
    assert outcome(found)[LABEL] == "skipped human-labelled"
    both = judged(theirs, labels=("bug", "docs"), force=force, **COMMAND)[LABEL]
    assert (both.evidence, both.labels) == (Evidence.ABSENT, ("docs",))


def test_forcing_goes_over_a_persons_labels_that_exclude_nothing() -> None:
    """They stay; the decided ones are added."""
    found = judged(issue(labels=("wontfix",)), force=True)
    assert outcome(found) == {COMMENT: "absent", LABEL: "absent"}


# --- Comments and own labels --------------------------------------------------------------------


def test_a_comment_that_a_person_deleted_is_not_posted_again() -> None:
    """The labels are added all the same; forcing posts it."""
    records = {COMMENT: {"tombstone": True}}
    assert outcome(judged(issue(), records=records)) == {
        COMMENT: "skipped human-removed",
        LABEL: "absent",
    }
    assert outcome(judged(issue(), records=records, force=True))[COMMENT] == "absent"
    assert outcome(judged(issue(), records={COMMENT: {"github_id": 5}}))[COMMENT] == "absent"


def test_a_command_removes_the_own_label_that_excludes_the_new_one() -> None:
    """It had said enhancement, now it says bug."""
    own = {LABEL: {"own_labels": ("enhancement",)}}
    found = judged(issue(labels=("enhancement",)), records=own, **COMMAND)
    assert outcome(found) == {COMMENT: "absent", UNLABEL: "absent", LABEL: "absent"}
    assert found[UNLABEL].labels == ("enhancement",)


@pytest.mark.parametrize(
    ("labels", "own"),
    [((), ()), (("enhancement",), ()), ((), ("enhancement",)), (("wontfix",), ("wontfix",))],
)
def test_no_label_of_a_person_is_taken_away(labels: tuple[str, ...], own: tuple[str, ...]) -> None:
    """Neither is one that is not there, or that excludes nothing: there is nothing to do."""
    records = {LABEL: {"own_labels": own}}
    found = judged(issue(labels=labels), records=records, **COMMAND)
    assert outcome(found)[UNLABEL] == "confirmed"


def test_a_label_that_a_person_put_back_is_theirs() -> None:
    """The bot was about to take its own label away, and finds that a person set it since."""
    effects = derived(**COMMAND)
    theirs = skipped(
        effects[1].model_copy(update={"labels": ("enhancement",)}), Skip.HUMAN_LABELLED
    )
    shared = known(effects, LABEL, own_labels=("enhancement",))
    now = issue(labels=("enhancement",))
    [label] = judge([theirs, effects[2]], now, shared, REPOSITORY_LABELS, inputs(**COMMAND))[1:]
    assert (label.evidence, label.reason) == (Evidence.SKIPPED, Skip.HUMAN_LABELLED)


def test_one_label_is_taken_away_at_a_time() -> None:
    """A request removes one: the first in the order of the policy."""
    own = ("enhancement", "question")
    found = judged(issue(labels=own), records={LABEL: {"own_labels": own}}, **COMMAND)
    assert found[UNLABEL].labels == ("enhancement",)


# --- What holds of all of them ------------------------------------------------------------------

NAMES = st.sets(st.sampled_from([*LABELS, "wontfix"])).map(lambda names: tuple(sorted(names)))
CHOICES = st.sampled_from([("bug",), ("docs",), ("bug", "docs"), ("docs", "question")])


@given(CHOICES, NAMES, NAMES, NAMES, NAMES, st.booleans(), st.booleans())
def test_no_label_is_sent_that_may_not_be(
    labels: tuple[str, ...],
    there: tuple[str, ...],
    own: tuple[str, ...],
    removed: tuple[str, ...],
    repository: tuple[str, ...],
    force: bool,
    command: bool,
) -> None:
    """Whatever the state: none that is there, that the repository lacks, that a person removed
    (unless forced), or that a person's label excludes."""
    found = judged(
        issue(labels=there),
        labels=labels,
        records={LABEL: {"own_labels": own, "removed_labels": removed}},
        repository=frozenset(repository),
        force=force,
        **(COMMAND if command else {}),
    )[LABEL]
    if found.evidence is not Evidence.ABSENT:
        return
    theirs = set(there) - set(own)
    group = set(policy().exclusive[0])
    assert found.labels
    for name in found.labels:
        assert name in labels
        assert name not in there
        assert name in repository
        assert force or name not in removed
        assert name not in group or not theirs & (group - {name})


def test_what_skips_and_what_confirms_closes_the_effect() -> None:
    """No request of it is open any more."""
    open_one = effect(COMMENT, open=True, evidence=Evidence.UNSETTLED, reason="502")
    assert skipped(open_one, Skip.REFUSED, "403").reason == "refused: 403"
    assert skipped(open_one, Skip.LOCKED).reason == "locked"
    assert not skipped(open_one, Skip.LOCKED).open
    assert confirmed(open_one) == effect(COMMENT, evidence=Evidence.CONFIRMED)
