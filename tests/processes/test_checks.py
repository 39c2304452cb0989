"""What is checked after a round can fail: each invariant, broken on purpose, is told."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sandbox.github import GitHub
from tests.processes.checks import DUPLICATE, Stood, violated
from tests.processes.faults import NAMED, Kind, Meanwhile, Planned
from tests.processes.fleet import REPOSITORY
from tests.processes.proxies import Journal
from tests.processes.stage import KEYS
from triage.contract import Attempt, Evidence, RunEffect, RunInputs, RunRecord, Status
from triage.identifiers import EffectKind, Mode
from triage.marker import stamp
from triage.policy import JobPolicy

NOON = datetime(2026, 9, 16, 12, tzinfo=UTC)
RUN = "daily-issue-triage:R7:2026-09-16:p1"
COMMENT, SUMMARY = "a" * 64, "b" * 64
EFFECTS = {COMMENT: (EffectKind.COMMENT, 1), SUMMARY: (EffectKind.SUMMARY, 2)}
PLANNED = Planned(
    seed=0,
    number=0,
    kind=Kind.WORKER,
    boundary=NAMED["comment"],
    after=True,
    occurrence=1,
    issues=1,
    lost=False,
    meanwhile=Meanwhile.NOBODY,
)


def world() -> GitHub:
    """An issue with its comment and its label, and the summary."""
    github = GitHub()
    github.add_organization("acme")
    github.add_repository(REPOSITORY)
    github.add_app("retriage", 42)
    github.install("retriage", "acme", [REPOSITORY])
    github.add_issue(REPOSITORY, "It crashes", "Always.", labels=["bug"])
    bot = github.as_app("retriage")
    bot.comment(REPOSITORY, 1, stamp("A bug.", effect_key=COMMENT, run=RUN, keys=KEYS))
    body = stamp("One issue.", effect_key=SUMMARY, run=RUN, keys=KEYS)
    bot.open_issue(REPOSITORY, "Summary", body)
    return github


def passed() -> Journal:
    """A comment and a summary, each claimed before it was sent; and a status that was saved."""
    journal = Journal()
    for kind, path in (("comment", "/issues/1/comments"), ("summary", "/issues")):
        claim(journal, kind)
        sent = journal.asked("github", f"POST /repositories/7{path} {{}}")
        journal.answered(sent, "HTTP/1.1 201")
    save(journal, fence=2)
    return journal


def claim(journal: Journal, kind: str) -> None:
    """A claim that is granted."""
    fact = json.dumps({"key": COMMENT, "kind": kind})
    noted = journal.asked("ledger", f"CLAIM lease run effect token 1 epoch key {fact} 1 0 op 5 9")
    journal.answered(noted, "*2\r\n$7\r\nclaimed\r\n")


def save(journal: Journal, fence: int) -> None:
    """A status that the ledger takes."""
    text = f"SAVE lease run:{RUN} snapshot plan token {fence} epoch {{}} {{}}"
    journal.answered(journal.asked("ledger", text), "$2\r\nok\r\n")


def run(status: Status = Status.COMPLETED, *fences: int, **fields: object) -> RunRecord:
    """A run whose effects are all confirmed, unless ``fields`` say else of them."""
    inputs = RunInputs(
        dedupe_key=RUN,
        repository_id=7,
        repository=REPOSITORY,
        installation="1",
        policy=JobPolicy(labels={"bug": "broken"}),
        mode=Mode.COMMENT,
        by="clock",
        due_at=NOON,
    )
    confirmed = {"evidence": Evidence.CONFIRMED, **fields}
    effects = [
        RunEffect(effect_key=key, kind=kind, issue=number, issue_id=number)
        for key, (kind, number) in EFFECTS.items()
    ]
    return RunRecord(
        inputs=inputs,
        status=status,
        created_at=NOON,
        updated_at=NOON,
        attempts=tuple(Attempt(owner="w", fence=fence, began=NOON) for fence in fences or (1, 2)),
        effects=tuple(effect.model_copy(update=confirmed) for effect in effects),
    )


def stood() -> Stood:
    """What stands after a round in which all went well."""
    epoch = {"id": "one", "quiet_until": "0"}
    return Stood(PLANNED, world(), [run()], passed(), {}, epoch, epoch)


def told(what: Stood) -> str:
    """The names of the invariants that do not hold."""
    return " ".join(sorted({item.partition(":")[0] for item in violated(what)}))


def test_nothing_is_told_where_all_went_well() -> None:
    """The ground on which the others stand."""
    assert list(violated(stood())) == []


def _twice(what: Stood) -> Stood:
    body = stamp("Again.", effect_key=COMMENT, run=RUN, keys=KEYS)
    what.github.as_app("retriage").comment(REPOSITORY, 1, body)
    return what


def _unclaimed(what: Stood) -> Stood:
    what.journal.asked("github", "POST /repositories/7/issues/1/comments {}")
    return what


def _claimed_too_late(what: Stood) -> Stood:
    _unclaimed(what)
    claim(what.journal, "comment")
    return what


def _out_of_scope(what: Stood) -> Stood:
    claim(what.journal, "labels")
    what.journal.asked("github", 'POST /repositories/7/issues/1/labels {"labels": ["wontfix"]}')
    return what


def _under_an_old_fence(what: Stood) -> Stood:
    save(what.journal, fence=1)
    return what


def _asked_again(what: Stood) -> Stood:
    noted = what.journal.asked("ledger", f"SAVE_PLAN lease:{RUN} plan:{RUN} token 1 epoch blob")
    what.journal.answered(noted, "*2\r\n$2\r\nok\r\n")
    what.journal.asked("model", "POST /v1/messages {}")
    return what


def _deleted(what: Stood) -> Stood:
    [comment] = what.github.comments(REPOSITORY, 1)
    what.github.as_user("maintainer").delete_comment(REPOSITORY, comment.id)
    return what


def _promoted(what: Stood) -> Stood:
    return replace(what, planned=replace(PLANNED, kind=Kind.PROMOTED))


BROKEN: dict[str, tuple[str, Callable[[Stood], Stood]]] = {
    "two comments of one effect": ("I1", _twice),
    "an incident": ("I1", lambda what: replace(what, incidents={DUPLICATE: 1})),
    "a write without a claim": ("I2", _unclaimed),
    "a claim after the write": ("I2", _claimed_too_late),
    "completed, and unsettled": (
        "I3",
        lambda what: replace(what, runs=[run(evidence=Evidence.UNSETTLED)]),
    ),
    "completed, and not there": ("I1 I3", _deleted),
    "failed before a write, and there": (
        "I4 I7",
        lambda what: replace(what, runs=[run(Status.FAILED_BEFORE_WRITE)]),
    ),
    "a label of no allow-list": ("I2 I5", _out_of_scope),
    "a status under an old fence": ("I6", _under_an_old_fence),
    "attempts with one fence": (
        "I6",
        lambda what: replace(what, runs=[run(Status.COMPLETED, 2, 2)]),
    ),
    "a run that does not end": ("I7", lambda what: replace(what, runs=[run(Status.RUNNING)])),
    "no run": ("I7", lambda what: replace(what, runs=[])),
    "a new epoch for nothing": (
        "epoch",
        lambda what: replace(what, after={"id": "two", "quiet_until": "9"}),
    ),
    "no new epoch": ("epoch", _promoted),
    "a new epoch without a quiet": (
        "epoch",
        lambda what: replace(_promoted(what), after={"id": "two", "quiet_until": "0"}),
    ),
    "a plan that was not frozen": ("plan", _asked_again),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_told(name: str) -> None:
    """The invariant's name, and no other's."""
    invariants, broken = BROKEN[name]
    assert told(broken(stood())) == invariants


def test_one_incident_is_allowed_where_a_request_outlives_all_deadlines() -> None:
    """And no second one."""
    late = replace(stood(), planned=replace(PLANNED, kind=Kind.LATE))
    assert told(replace(late, incidents={DUPLICATE: 1})) == ""
    assert told(replace(late, incidents={DUPLICATE: 2})) == "I1"
