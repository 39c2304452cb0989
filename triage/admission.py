"""May this attempt run?  Rows: what the ledger says of the run. Columns: is a lease live?

Every cell is a decision of the design; a combination that is not here is a bug, not a default.
The reasons are shown to people as they stand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from triage.contract import RunRecord, Status

MOST_ATTEMPTS = 5
"""Attempts of one window that may end failed-before-write."""


class RunState(StrEnum):
    """What the ledger says of a run, as admission needs it."""

    NONE = "none"
    RUNNING = "running, nothing claimed"
    CLAIMED = "running, something was claimed"
    WAITING = "waiting"
    DONE = "completed or no-change"
    FAILED_BEFORE_WRITE = "failed-before-write"
    PROOF_PENDING = "failed-after-write, proof pending"
    FAILED_AFTER_WRITE = "failed-after-write"
    NEEDS_REVIEW = "needs-review"


class LeaseState(StrEnum):
    """Is a lease live?"""

    LIVE = "live"
    FREE = "lapsed or none"


class Step(StrEnum):
    """What an admitted attempt does first."""

    START = "start"
    GO_ON = "go on from the last saved step"
    READ_BACK = "read back first"


@dataclass(frozen=True, slots=True)
class Admit:
    """Go. ``lock_delay``: only once the lock delay after the lapsed lease is over."""

    step: Step
    lock_delay: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Not now. ``until`` is when asking again may help, where that is known."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reuse:
    """It is done: give the artifact; a manual re-run verifies it read-only and prints drift."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Not before a person acts."""

    reason: str


@dataclass(frozen=True, slots=True)
class _IfDue:
    """Admit once the run's own time has come; earlier, refuse with that time."""

    then: Admit
    reason: str


@dataclass(frozen=True, slots=True)
class _IfRetryable:
    then: Admit


@dataclass(frozen=True, slots=True)
class _IfSeen:
    """Admit if a sample showed the effect; else refuse until the proof is complete."""

    then: Admit


@dataclass(frozen=True, slots=True)
class _IfResolved:
    """Admit if a person has decided; else stop."""

    then: Admit


Admission = Admit | Refuse | Reuse | Stop
_Cell = Admission | _IfDue | _IfRetryable | _IfSeen | _IfResolved

_HELD = Refuse("another worker holds the lease")
_UNRESOLVED = Stop("a person must resolve it")

ADMISSION: Mapping[tuple[RunState, LeaseState], _Cell] = {
    (RunState.NONE, LeaseState.LIVE): _HELD,
    (RunState.NONE, LeaseState.FREE): Admit(Step.START),
    (RunState.RUNNING, LeaseState.LIVE): _HELD,
    (RunState.RUNNING, LeaseState.FREE): Admit(Step.GO_ON),
    (RunState.CLAIMED, LeaseState.LIVE): _HELD,
    (RunState.CLAIMED, LeaseState.FREE): Admit(Step.READ_BACK, lock_delay=True),
    (RunState.WAITING, LeaseState.LIVE): _HELD,
    (RunState.WAITING, LeaseState.FREE): _IfDue(Admit(Step.GO_ON), "the write budget is spent"),
    (RunState.DONE, LeaseState.LIVE): Reuse(),
    (RunState.DONE, LeaseState.FREE): Reuse(),
    (RunState.FAILED_BEFORE_WRITE, LeaseState.LIVE): _HELD,
    (RunState.FAILED_BEFORE_WRITE, LeaseState.FREE): _IfRetryable(Admit(Step.GO_ON)),
    (RunState.PROOF_PENDING, LeaseState.LIVE): _HELD,
    (RunState.PROOF_PENDING, LeaseState.FREE): _IfSeen(Admit(Step.READ_BACK)),
    (RunState.FAILED_AFTER_WRITE, LeaseState.LIVE): _HELD,
    (RunState.FAILED_AFTER_WRITE, LeaseState.FREE): _IfDue(
        Admit(Step.READ_BACK), "GitHub asked to come back later"
    ),
    (RunState.NEEDS_REVIEW, LeaseState.LIVE): _UNRESOLVED,
    (RunState.NEEDS_REVIEW, LeaseState.FREE): _IfResolved(Admit(Step.READ_BACK)),
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a conditional cell looks at.

    ``by_hand``: a person asks, who may retry what the clock would not. ``seen``: a sample showed
    an unsettled effect, or its absence is proved. ``resolved``: a person has just decided what is
    under review. ``lease_until`` and ``lock_delay`` date the last holder.
    """

    now: datetime
    lease_until: datetime | None
    lock_delay: timedelta
    by_hand: bool = False
    seen: bool = False
    resolved: bool = False


def admit(run: RunRecord | None, lease: LeaseState, at: Circumstances) -> Admission:
    """Look the pair up and settle the conditional cells. Raises KeyError for an unknown pair."""
    cell = ADMISSION[state_of(run, at.now), lease]
    match cell:
        case Refuse(reason):
            return Refuse(reason, at.lease_until)
        case Admit(lock_delay=True) if at.lease_until is not None:
            free_at = at.lease_until + at.lock_delay
            return cell if at.now >= free_at else Refuse("the lock delay is running", free_at)
        case Admit() | Reuse() | Stop():
            return cell
        case _IfResolved(then):
            return then if at.resolved else _UNRESOLVED
        case _IfDue() | _IfRetryable() | _IfSeen():
            if run is None:
                raise AssertionError("a run that does not exist has no conditional cell")
            return _settle(cell, run, at)


def state_of(run: RunRecord | None, now: datetime) -> RunState:
    """The row of a run."""
    if run is None:
        return RunState.NONE
    match run.status:
        case Status.QUEUED:
            return RunState.NONE
        case Status.RUNNING:
            return RunState.CLAIMED if run.claimed else RunState.RUNNING
        case Status.WAITING:
            return RunState.WAITING
        case Status.COMPLETED | Status.NO_CHANGE:
            return RunState.DONE
        case Status.FAILED_BEFORE_WRITE:
            return RunState.FAILED_BEFORE_WRITE
        case Status.FAILED_AFTER_WRITE:
            pending = run.proof_until is not None and now < run.proof_until
            return RunState.PROOF_PENDING if pending else RunState.FAILED_AFTER_WRITE
        case Status.NEEDS_REVIEW:
            return RunState.NEEDS_REVIEW


def _settle(cell: _IfDue | _IfRetryable | _IfSeen, run: RunRecord, at: Circumstances) -> Admission:
    match cell:
        case _IfDue(then, reason):
            later = _later(run.come_back_at, at.now)
            return Refuse(reason, later) if later else then
        case _IfRetryable(then):
            if at.by_hand:
                return then
            if not run.retryable or run.attempts_charged >= MOST_ATTEMPTS:
                return Stop(run.reason or "it failed before any write and is not retried by itself")
            later = _later(run.retry_at, at.now)
            return Refuse("a pause before the next attempt", later) if later else then
        case _IfSeen(then):
            return then if at.seen else Refuse("a proof is pending", run.proof_until)


def _later(moment: datetime | None, now: datetime) -> datetime | None:
    return moment if moment is not None and now < moment else None
