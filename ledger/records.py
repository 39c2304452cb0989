"""The values that the ledger gives and takes. No Redis here."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from triage.contract import RunEffect, RunRecord
from triage.identifiers import FAMILY, EffectKind, Family, JobKey
from triage.policy import AnyJobPolicy, JobPolicy, ReviewPolicy, WatchPolicy


@dataclass(frozen=True, slots=True)
class LeaseView:
    """What anyone may know of a run's lease. ``now`` and ``until`` are the server's time."""

    now: datetime
    owner: str = ""
    until: datetime | None = None
    fence: int = 0

    @property
    def live(self) -> bool:
        """True while somebody may execute the run."""
        return self.until is not None and self.now < self.until


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to execute one run. Functions that write take it as an argument.

    ``token`` is the secret of this acquisition; ``epoch`` the ledger's at that moment.
    """

    dedupe_key: str
    owner: str
    token: str
    fence: int
    epoch: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Look:
    """A run and its lease, read together."""

    run: RunRecord | None
    lease: LeaseView


class Unclaimed(StrEnum):
    """Why an effect may not be sent."""

    LEASE_LOST = "lease-lost"
    LEASE_TOO_SHORT = "lease-too-short"
    EPOCH = "epoch"
    QUIET = "quiet"
    BLOCKED = "blocked"
    SUPERSEDED = "superseded"
    TOMBSTONE = "tombstone"
    UNPROVED = "unproved"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to send one effect once. ``deadline`` is on the monotonic clock, in seconds."""

    lease: Lease
    effect: RunEffect
    operation: str
    deadline: float


class Holding(StrEnum):
    """Why an effect belongs to one run for now."""

    CLAIMED = "claimed"
    UNSETTLED = "unsettled"
    REVIEW = "review"


class EffectRecord(BaseModel):
    """An effect as all runs share it.

    ``holder`` is the run that has it claimed, unsettled or under review. ``samples`` are the times
    of the empty reads since the last send. ``own_labels`` are those that the bot added and nobody
    removed; ``removed_labels`` those that a person removed: they stay removed. ``tombstone``: a
    person deleted the comment. ``writer_fence`` is the snapshot's fence of the run that wrote last.
    ``looked_up``: GitHub was asked about it since the epoch began.
    """

    model_config = ConfigDict(frozen=True)

    effect_key: str
    repository_id: int = 0
    issue_id: int = 0
    issue: int = 0
    kind: EffectKind = EffectKind.COMMENT
    github_id: int | None = None
    url: str = ""
    digest: str = ""
    holder: str = ""
    holding: Holding | None = None
    claim_fence: int = 0
    claimed_at: datetime | None = None
    sends: int = 0
    samples: tuple[datetime, ...] = ()
    writer: str = ""
    writer_fence: int = 0
    tombstone: bool = False
    own_labels: tuple[str, ...] = ()
    removed_labels: tuple[str, ...] = ()
    looked_up: bool = False


class RepositoryRecord(BaseModel):
    """What the ledger knows of a repository.

    ``policy`` (of the triage), ``review`` and ``watch`` are the last good ones, None where the
    repository has none; ``policy_notice`` says what is wrong with the newest file.
    ``backlog_until``: issues created up to then were there before the first run. ``scanned_until``
    and ``scan_version`` are the cut-off and the input version of the last completed window of the
    triage that left nothing over: a later listing may start there.
    ``last_window`` is the newest window of the triage that was started or passed, ``last_review``
    and ``last_watch`` of the others.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    full_name: str
    installation: str
    active: bool = True
    policy: JobPolicy | None = None
    review: ReviewPolicy | None = None
    watch: WatchPolicy | None = None
    policy_notice: str = ""
    backlog_until: datetime | None = None
    scanned_until: datetime | None = None
    scan_version: str = ""
    last_window: str = ""
    last_review: str = ""
    last_watch: str = ""

    def policy_of(self, job: JobKey) -> AnyJobPolicy | None:
        """The settings of a job."""
        return {Family.TRIAGE: self.policy, Family.REVIEW: self.review, Family.WATCH: self.watch}[
            FAMILY[job]
        ]

    def last_window_of(self, job: JobKey) -> str:
        """The newest window of a job that was started or passed."""
        return str(getattr(self, LAST_WINDOW[job]))


LAST_WINDOW = {
    JobKey.DAILY: "last_window",
    JobKey.RETRIAGE: "last_window",
    JobKey.REVIEW: "last_review",
    JobKey.WATCH: "last_watch",
}
"""Which field names the newest window of a job."""

LEDGER = "ledger"
"""The name of the first thing to recover after a loss: what is installed."""


class DueKind(StrEnum):
    """What falls due."""

    START = "start"  # the windows of a job and repository
    CONTINUE = "continue"  # a run
    SAMPLE = "sample"  # a read of an unsettled effect
    VERIFY = "verify"  # a look for late writers of an effect
    RECOVER = "recover"  # a read of a repository after the ledger was lost
    ASK = "ask"  # what a delivery asks for, until it is done


@dataclass(frozen=True, slots=True)
class Due:
    """One thing that falls due.

    ``name`` is a dedupe key, an effect key, ``job:R<id>``, or ``<delivery>:<n>``.
    """

    kind: DueKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @classmethod
    def parse(cls, text: str) -> "Due":
        """Read a member of the due set back."""
        kind, _, name = text.partition(" ")
        return cls(DueKind(kind), name)

    @classmethod
    def window(cls, job: JobKey, repository_id: int) -> "Due":
        """The windows of a job and repository."""
        return cls(DueKind.START, f"{job}:R{repository_id}")

    @classmethod
    def ask(cls, guid: str, index: int) -> "Due":
        """What a delivery asks for; ``index`` counts its asks."""
        return cls(DueKind.ASK, f"{guid}:{index}")


@dataclass(frozen=True, slots=True)
class Granted:
    """A write may be sent now.

    ``at`` is when it was granted, in microseconds of the server; ``asked`` when room was asked for,
    in seconds of the monotonic clock.
    """

    at: int = 0
    asked: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """The write budget has no room for ``delay``."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Epoch:
    """The ledger's own identity. Until ``quiet_until`` nothing is written to GitHub.

    ``began`` is when this epoch was set; ``first``: the ledger was made together with its App, so
    nothing signed can exist before it. ``changed``: it was set just now; ``replaces``: another one
    stood before, so this is a ledger that lost its server, not one that is new or was wiped.
    """

    id: str
    began: datetime
    quiet_until: datetime | None = None
    first: bool = False
    changed: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """An observe run's artifact as stored: the same file for the same window."""

    path: str
    text: str
    dedupe_key: str
