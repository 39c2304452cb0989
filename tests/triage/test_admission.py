"""May this attempt run? Every cell of the table, against the table of the design."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from tests.triage.samples import NOON, run
from triage.admission import (
    ADMISSION,
    MOST_ATTEMPTS,
    Admission,
    Admit,
    Circumstances,
    LeaseState,
    Refuse,
    Reuse,
    RunState,
    Step,
    Stop,
    admit,
    state_of,
)
from triage.contract import RunRecord, Status

EARLIER, LATER = NOON - timedelta(minutes=1), NOON + timedelta(minutes=1)
LOCK_DELAY = timedelta(seconds=60)

RUNS: Mapping[RunState, RunRecord | None] = {
    RunState.NONE: None,
    RunState.RUNNING: run(status=Status.RUNNING),
    RunState.CLAIMED: run(status=Status.RUNNING, claimed=True),
    RunState.WAITING: run(status=Status.WAITING),
    RunState.DONE: run(status=Status.COMPLETED),
    RunState.FAILED_BEFORE_WRITE: run(status=Status.FAILED_BEFORE_WRITE),
    RunState.PROOF_PENDING: run(status=Status.FAILED_AFTER_WRITE, proof_until=LATER),
    RunState.FAILED_AFTER_WRITE: run(status=Status.FAILED_AFTER_WRITE),
    RunState.NEEDS_REVIEW: run(status=Status.NEEDS_REVIEW),
}
"""A run in each row, nothing of it standing in the way."""

# What the design says, row by row: while a lease is live, and once it is lapsed or there is none
# and all that was to be waited for is over.
DESIGN = """
none                             | refuse | start
running, nothing claimed         | refuse | go on
running, something was claimed   | refuse | read back after the lock delay
waiting                          | refuse | go on
completed or no-change           | reuse  | reuse
failed-before-write              | refuse | go on
failed-after-write, proof pending| refuse | read back
failed-after-write               | refuse | read back
needs-review                     | stop   | stop
"""

WORDS: Mapping[str, Admission] = {
    "refuse": Refuse("another worker holds the lease", until=LATER),
    "start": Admit(Step.START),
    "go on": Admit(Step.GO_ON),
    "read back": Admit(Step.READ_BACK),
    "read back after the lock delay": Admit(Step.READ_BACK, lock_delay=True),
    "reuse": Reuse(),
    "stop": Stop("a person must resolve it"),
}


def of_the_design() -> dict[tuple[RunState, LeaseState], Admission]:
    """The table above, as data."""
    table: dict[tuple[RunState, LeaseState], Admission] = {}
    for line in DESIGN.strip().splitlines():
        row, live, free = (cell.strip() for cell in line.split("|"))
        table[RunState(row), LeaseState.LIVE] = WORDS[live]
        table[RunState(row), LeaseState.FREE] = WORDS[free]
    return table


def at(
    now: datetime = NOON,
    lease_until: datetime | None = None,
    *,
    by_hand: bool = False,
    seen: bool = False,
    resolved: bool = False,
) -> Circumstances:
    """The circumstances of an attempt."""
    return Circumstances(now, lease_until, LOCK_DELAY, by_hand, seen, resolved)


CELLS = list(product(RunState, LeaseState))


@pytest.mark.parametrize(("state", "lease"), CELLS, ids=[f"{s}-{lease}" for s, lease in CELLS])
def test_every_cell_is_the_designs(state: RunState, lease: LeaseState) -> None:
    """The run in that state, everything over that there was to wait for."""
    until = LATER if lease is LeaseState.LIVE else NOON - LOCK_DELAY
    asked = at(NOON, until, seen=True)
    assert admit(RUNS[state], lease, asked) == of_the_design()[state, lease]


def test_the_table_is_complete() -> None:
    """Every row and column of it stands in the code, and nothing else."""
    assert set(ADMISSION) == set(CELLS) == set(of_the_design())


# --- The conditional cells ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "admitted"),
    [(NOON + LOCK_DELAY - timedelta(microseconds=1), False), (NOON + LOCK_DELAY, True)],
    ids=["running", "over"],
)
def test_a_run_with_a_claim_is_not_taken_over_within_the_lock_delay(
    now: datetime, admitted: bool
) -> None:
    """An old request must have died by itself first: GitHub compares no fence."""
    found = admit(RUNS[RunState.CLAIMED], LeaseState.FREE, at(now, NOON))
    refused = Refuse("the lock delay is running", NOON + LOCK_DELAY)
    assert found == (Admit(Step.READ_BACK, lock_delay=True) if admitted else refused)


def test_a_run_without_a_claim_is_taken_over_at_once() -> None:
    """Nothing of it can still land."""
    found = admit(RUNS[RunState.RUNNING], LeaseState.FREE, at(NOON, NOON))
    assert found == Admit(Step.GO_ON)


def test_a_claimed_run_whose_lease_is_not_known_is_taken_over() -> None:
    """There is nothing to count the delay from; the ledger counts it as well."""
    found = admit(RUNS[RunState.CLAIMED], LeaseState.FREE, at())
    assert found == Admit(Step.READ_BACK, lock_delay=True)


@pytest.mark.parametrize(
    ("status", "reason", "then"),
    [
        (Status.WAITING, "the write budget is spent", Admit(Step.GO_ON)),
        (
            Status.FAILED_AFTER_WRITE,
            "GitHub asked to come back later",
            Admit(Step.READ_BACK),
        ),
        (
            Status.FAILED_BEFORE_WRITE,
            "a pause before the next attempt",
            Admit(Step.GO_ON),
        ),
    ],
)
def test_who_comes_too_early_is_told_when(status: Status, reason: str, then: Admission) -> None:
    """At the time itself it is not too early."""
    early = run(status=status, retry_at=LATER, come_back_at=LATER)
    assert admit(early, LeaseState.FREE, at()) == Refuse(reason, LATER)
    assert admit(early, LeaseState.FREE, at(LATER)) == then
    assert admit(run(status=status), LeaseState.FREE, at()) == then


def test_a_pending_proof_is_waited_for_unless_the_effect_is_seen() -> None:
    """Any single hit wins; the time of the fifth read admits by itself."""
    pending = RUNS[RunState.PROOF_PENDING]
    assert admit(pending, LeaseState.FREE, at()) == Refuse("a proof is pending", LATER)
    assert admit(pending, LeaseState.FREE, at(seen=True)) == Admit(Step.READ_BACK)
    assert admit(pending, LeaseState.FREE, at(LATER)) == Admit(Step.READ_BACK)
    assert admit(pending, LeaseState.FREE, at(by_hand=True)) == Refuse("a proof is pending", LATER)


@pytest.mark.parametrize(
    "changes",
    [{"retryable": False}, {"attempts_charged": MOST_ATTEMPTS}],
    ids=["not retryable", "exhausted"],
)
def test_what_is_not_retried_by_itself_a_person_may_retry(changes: dict[str, Any]) -> None:
    """The clock stops; the reason is shown."""
    failed = run(status=Status.FAILED_BEFORE_WRITE, **changes)
    assert admit(failed, LeaseState.FREE, at()) == Stop(
        "it failed before any write and is not retried by itself"
    )
    told = run(status=Status.FAILED_BEFORE_WRITE, reason="the model's key was refused", **changes)
    assert admit(told, LeaseState.FREE, at()) == Stop("the model's key was refused")
    assert admit(told, LeaseState.FREE, at(by_hand=True)) == Admit(Step.GO_ON)


def test_the_last_attempt_but_one_is_retried() -> None:
    """At most five a window."""
    failed = run(status=Status.FAILED_BEFORE_WRITE, attempts_charged=MOST_ATTEMPTS - 1)
    assert MOST_ATTEMPTS == 5
    assert admit(failed, LeaseState.FREE, at()) == Admit(Step.GO_ON)


def test_a_person_need_not_wait_for_the_pause() -> None:
    """It is there to spare GitHub and the model from a clock, not from a person."""
    failed = run(status=Status.FAILED_BEFORE_WRITE, retry_at=LATER)
    assert admit(failed, LeaseState.FREE, at(by_hand=True)) == Admit(Step.GO_ON)


@pytest.mark.parametrize("status", [Status.WAITING, Status.FAILED_AFTER_WRITE])
def test_a_person_waits_for_github_like_everybody(status: Status) -> None:
    """The budget and GitHub's limits are not ours to skip."""
    early = run(status=status, retry_at=LATER, come_back_at=LATER)
    assert isinstance(admit(early, LeaseState.FREE, at(by_hand=True)), Refuse)


def test_our_own_pause_after_a_write_keeps_nobody_from_reading_back() -> None:
    """Only GitHub and the budget do: the clock comes when it comes, a person may ask at once."""
    paused = run(status=Status.FAILED_AFTER_WRITE, retry_at=LATER)
    assert admit(paused, LeaseState.FREE, at()) == Admit(Step.READ_BACK)


def test_what_needs_review_goes_on_once_a_person_decided() -> None:
    """Reading back first; asking by hand alone decides nothing."""
    run_to_review = RUNS[RunState.NEEDS_REVIEW]
    stop = Stop("a person must resolve it")
    assert admit(run_to_review, LeaseState.FREE, at(resolved=True)) == Admit(Step.READ_BACK)
    assert admit(run_to_review, LeaseState.FREE, at(by_hand=True, seen=True)) == stop
    assert admit(run_to_review, LeaseState.LIVE, at(resolved=True)) == stop


@pytest.mark.parametrize("state", RunState)
def test_nobody_by_hand_passes_a_live_lease(state: RunState) -> None:
    """One worker at a time, whoever asks."""
    found = admit(RUNS[state], LeaseState.LIVE, at(NOON, LATER, by_hand=True, seen=True))
    assert not isinstance(found, Admit)


def test_a_refusal_without_a_known_end_gives_no_time() -> None:
    """The lease may have just been released."""
    assert admit(None, LeaseState.LIVE, at()) == Refuse("another worker holds the lease")


# --- The rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", RunState)
def test_each_row_has_its_run(state: RunState) -> None:
    """The runs above are what they are called."""
    assert state_of(RUNS[state], NOON) is state


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.QUEUED, RunState.NONE),
        (Status.RUNNING, RunState.RUNNING),
        (Status.WAITING, RunState.WAITING),
        (Status.COMPLETED, RunState.DONE),
        (Status.NO_CHANGE, RunState.DONE),
        (Status.FAILED_BEFORE_WRITE, RunState.FAILED_BEFORE_WRITE),
        (Status.FAILED_AFTER_WRITE, RunState.FAILED_AFTER_WRITE),
        (Status.NEEDS_REVIEW, RunState.NEEDS_REVIEW),
    ],
)
@pytest.mark.parametrize("claimed", [False, True])
@pytest.mark.parametrize("proof_until", [None, EARLIER, NOON, LATER])
def test_every_status_has_its_row(
    status: Status, state: RunState, claimed: bool, proof_until: datetime | None
) -> None:
    """A claim counts while it runs, a proof while it is pending; elsewhere neither does."""
    if status is Status.RUNNING and claimed:
        state = RunState.CLAIMED
    if status is Status.FAILED_AFTER_WRITE and proof_until == LATER:
        state = RunState.PROOF_PENDING
    assert state_of(run(status=status, claimed=claimed, proof_until=proof_until), NOON) is state
