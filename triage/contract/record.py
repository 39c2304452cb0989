"""The run as the ledger holds it.

Invariant: each run keeps its own evidence, and a completed or no-change run keeps it frozen: what
an earlier run proved, a later one cannot rewrite.
"""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from triage.findings import ColdFor, Link, ReviewVerdict, Start
from triage.identifiers import DedupeKey, EffectKind, Mode
from triage.plan import Cost
from triage.policy import AnyJobPolicy, JobPolicy, ReviewPolicy, WatchPolicy


class Status(StrEnum):
    """The status of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    NO_CHANGE = "no-change"
    FAILED_BEFORE_WRITE = "failed-before-write"
    FAILED_AFTER_WRITE = "failed-after-write"
    NEEDS_REVIEW = "needs-review"

    @property
    def final(self) -> bool:
        """True where GitHub has confirmed the run: its evidence is frozen."""
        return self in (Status.COMPLETED, Status.NO_CHANGE)


class Evidence(StrEnum):
    """What reading GitHub back says of an effect in a run."""

    CONFIRMED = "confirmed"
    ABSENT = "absent"
    UNSETTLED = "unsettled"
    CONFLICT = "conflict"
    SKIPPED = "skipped"


class Skip(StrEnum):
    """Why an effect is not wanted any more."""

    LOCKED = "locked"
    CLOSED = "closed"
    DELETED = "deleted"
    TRANSFERRED = "transferred"
    HUMAN_REMOVED = "human-removed"
    HUMAN_EDITED = "human-edited"
    HUMAN_LABELLED = "human-labelled"
    REFUSED = "refused"
    BLOCKED = "blocked"
    SUPERSEDED = "superseded"
    RESOLVED = "resolved"


class RunEffect(BaseModel):
    """One effect of a run with its evidence.

    ``issue`` is the number (0 for a summary not yet created); ``labels`` are those that a label
    effect adds or removes; ``digest`` is the intended body's; ``sent_at`` is the first intent's
    time, None where nothing was ever sent; ``open`` is True while a request of this run for this
    effect may still land unrecorded.
    """

    model_config = ConfigDict(frozen=True)

    effect_key: str
    kind: EffectKind
    issue: int
    issue_id: int
    labels: tuple[str, ...] = ()
    digest: str = ""
    evidence: Evidence = Evidence.ABSENT
    reason: str = ""
    github_id: int | None = None
    url: str = ""
    sent_at: datetime | None = None
    sends: int = 0
    open: bool = False
    when: datetime | None = None

    @property
    def target(self) -> str:
        """What the effect is on, in words."""
        match self.kind:
            case EffectKind.COMMENT:
                return f"issues/{self.issue}/comments"
            case EffectKind.SUMMARY:
                return f"issues/{self.issue}" if self.issue else "issues"
            case EffectKind.LABELS:
                return f"issues/{self.issue}/labels: +{', +'.join(self.labels)}"
            case EffectKind.UNLABEL:
                return f"issues/{self.issue}/labels: -{', -'.join(self.labels)}"
            case EffectKind.REMOVAL:
                return f"issues/{self.issue}: own duplicate {self.github_id}"
            case EffectKind.REPORT:
                return self.url

    @property
    def acknowledged(self) -> bool:
        """GitHub answered that it is there; reading back has not shown it yet."""
        return self.evidence is Evidence.UNSETTLED and not self.open

    @property
    def in_doubt(self) -> bool:
        """A request was claimed, and whether it landed is not known."""
        return self.evidence is Evidence.UNSETTLED and self.open


class Attempt(BaseModel):
    """One worker's try at a run. ``ended`` is a status word, or how it was cut short."""

    model_config = ConfigDict(frozen=True)

    owner: str
    fence: int
    began: datetime
    until: datetime | None = None
    ended: str = ""


class Verdict(StrEnum):
    """What a person decides about a run in needs-review."""

    DONE = "done"  # it is there, or no longer wanted
    RETRY = "retry"  # send it again, with the same marker
    ABANDON = "abandon"  # give up what is not there


class Resolution(BaseModel):
    """A person's decision about a run in needs-review. ``by`` names them."""

    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    by: str
    why: str
    at: datetime


class RunInputs(BaseModel):
    """What a run was started with, frozen: a continuation uses these and no newer ones.

    ``target_issue`` is the issue of a command, None for a window; ``command_comment`` the comment
    that holds it; ``by`` says who asked, in a word (cron, webhook, command, hand).
    """

    model_config = ConfigDict(frozen=True)

    dedupe_key: str
    repository_id: int
    repository: str
    installation: str
    policy: AnyJobPolicy
    mode: Mode
    by: str
    due_at: datetime
    target_issue: int | None = None
    command_comment: int | None = None
    force: bool = False
    policy_notice: str = ""
    missed: tuple[str, ...] = ()

    @property
    def triage(self) -> JobPolicy:
        """The settings of a triage run. Raises TypeError for a run of another family."""
        if not isinstance(self.policy, JobPolicy):
            raise TypeError(f"{self.dedupe_key} is no triage")
        return self.policy

    @property
    def review(self) -> ReviewPolicy:
        """The settings of a review. Raises TypeError for a run of another family."""
        if not isinstance(self.policy, ReviewPolicy):
            raise TypeError(f"{self.dedupe_key} is no review")
        return self.policy

    @property
    def watch(self) -> WatchPolicy:
        """The settings of a watch. Raises TypeError for a run of another family."""
        if not isinstance(self.policy, WatchPolicy):
            raise TypeError(f"{self.dedupe_key} is no watch")
        return self.policy


class ReviewSummary(BaseModel):
    """The part of a review's snapshot that the contract shows."""

    model_config = ConfigDict(frozen=True)

    start: Start
    why: ColdFor | None
    files: int
    files_digest: str
    previous_review_id: str
    previous_findings: int


class ResourceSummary(BaseModel):
    """The part of a fetched document that the contract shows. ``url`` is where it really was."""

    model_config = ConfigDict(frozen=True)

    name: str
    url: str
    observed_at: datetime
    digest: str


class ReviewFigures(BaseModel):
    """What a review came to, in the run's record; ``link`` is None where it had none before it."""

    model_config = ConfigDict(frozen=True)

    verdict: ReviewVerdict
    link: Link | None = None


class SnapshotSummary(BaseModel):
    """The part of a snapshot that the contract shows; ``issues`` counts them."""

    model_config = ConfigDict(frozen=True)

    source_set: str
    query_cutoff: datetime
    base_commit: str
    observed_at: datetime
    issues: int
    passed_over: dict[str, int] = {}
    left_over: int = 0
    review: ReviewSummary | None = None
    resources: tuple[ResourceSummary, ...] | None = None


class RunRecord(BaseModel):
    """A run as the ledger holds it, without its snapshot and plan.

    ``retry_at`` is when the clock comes back, ``come_back_at`` before when nobody should, because
    GitHub or the write budget said so; ``proof_until`` when an unsettled effect's absence is proved
    at the latest; ``denials`` counts calls of tools that the agent was not allowed;
    ``attempts_charged`` counts those that ended failed-before-write, or died before
    any claim, ``continuations`` the times that the run was taken up again after a write.
    """

    model_config = ConfigDict(frozen=True)

    inputs: RunInputs
    status: Status = Status.QUEUED
    created_at: datetime
    updated_at: datetime
    stage: str = "queued"
    claimed: bool = False
    attempts: tuple[Attempt, ...] = ()
    attempts_charged: int = 0
    continuations: int = 0
    retryable: bool = True
    retry_at: datetime | None = None
    come_back_at: datetime | None = None
    proof_until: datetime | None = None
    reason: str = ""
    result_artifact: str = ""
    effects: tuple[RunEffect, ...] = ()
    cost: Cost = Cost()
    denials: int = 0
    resolutions: tuple[Resolution, ...] = ()
    snapshot_summary: SnapshotSummary | None = None
    review: ReviewFigures | None = None

    @property
    def key(self) -> DedupeKey:
        """The run's identity."""
        return DedupeKey.parse(self.inputs.dedupe_key)
