"""What a nightly review knows and says, as values: findings, the link to the last review, its
snapshot's part and its plan's part.

Two ids must not be confused. ``Finding.id`` is ours, derived from what is stable; people see it.
``Finding.told_as`` is the model's own name for it in the review that told it last; a session that
goes on is asked to echo those, and nothing else is known by them.
"""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Severity(StrEnum):
    """How grave a finding is, gravest first."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class ReviewVerdict(StrEnum):
    """Whether something needs a person."""

    OK = "ok"
    CONCERNS = "concerns"


class FindingState(StrEnum):
    """What a review makes of a finding, against the last review that the ledger holds."""

    NEW = "new"
    STILL = "still there"
    UNSEEN = "not seen this time"
    RESOLVED = "resolved"

    @property
    def is_open(self) -> bool:
        """It was told in this review."""
        return self in (FindingState.NEW, FindingState.STILL)


class Finding(_Frozen):
    """One finding. ``line`` counts from 1; ``since`` and ``since_commit`` are the window and commit
    of the first review that told it; ``file_digest`` is of the file's content when it was told
    last (empty: not known), ``unseen`` counts the reviews in a row that did not tell it, ``note``
    says why it is resolved."""

    id: str
    file: str
    line: int
    severity: Severity
    summary: str
    state: FindingState
    told_as: str
    since: str
    since_commit: str
    file_digest: str = ""
    unseen: int = 0
    note: str = ""


class HeldFinding(_Frozen):
    """A finding of the model that is not shown, and why. ``told_as`` is empty where it had none."""

    told_as: str
    reason: str


class Start(StrEnum):
    """How a review's session starts."""

    COLD = "cold"
    FINDINGS = "findings"
    RESUMED = "resumed"


class ColdFor(StrEnum):
    """Why a review starts cold."""

    FRESH = "fresh-memory"
    FIRST = "first-review"
    CLEARED = "session-cleared"
    NO_SESSION = "no-session"
    BROKEN = "link-broken"
    DUE = "reset-due"
    CHANGED = "tree-changed"
    RECALL = "recall-low"


class Opening(_Frozen):
    """How a review starts, and where it is cold, why; ``detail`` is one line for people."""

    start: Start
    why: ColdFor | None = None
    detail: str = ""


class Tree(_Frozen):
    """A tree of files, small enough to keep: how many, a digest over all, and a sample of them.

    ``sample`` holds ``<8 hex digits of the path's digest>:<8 of the content's>``, sorted: of all
    files up to ``triage.tree.SAMPLE``, of those with the least digests above it.
    """

    files: int = 0
    digest: str = ""
    sample: tuple[str, ...] = ()


class Link(_Frozen):
    """What an answer shows of the review before it.

    ``recalled`` of the ``prior`` findings of the last answer were echoed; ``current`` were told
    now. ``same_session`` is false of a new session that was given the last findings: that breaks
    nothing. ``broken`` has the reasons for which the answer is not continuous; empty: it is.
    """

    same_session: bool
    prior_review_id_echoed: bool
    recalled: int
    prior: int
    current: int
    broken: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """Recall, 0 to 1; None where there was nothing to recall."""
        return self.recalled / self.prior if self.prior else None

    @property
    def pairs(self) -> dict[str, str]:
        """What the log's line ``RESUME-LINK`` says, in its order."""
        return {
            "same_session": str(self.same_session).lower(),
            "prior_review_id_echoed": str(self.prior_review_id_echoed).lower(),
            "recalled_findings": f"{self.recalled}/{self.prior}",
            "current_findings": str(self.current),
        }

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.pairs.items())


REMEMBERED_VERSION = 1
"""The form of ``Remembered`` as JSON: raise it where an older one cannot be read any more."""


class Remembered(_Frozen):
    """What the next review needs of this one.

    ``findings`` are those that are open or unseen, ``resolved`` the newest resolved ones, for the
    page. ``told`` are the ids that the model gave in its answer, held findings included; ``began``
    is the tree that the session started with. ``recall`` is the share of the findings before it
    that the answer recalled, None where there was nothing to recall; ``broken`` where it was not
    continuous.
    """

    review_id: str
    window: str
    commit: str
    verdict: ReviewVerdict
    findings: tuple[Finding, ...] = ()
    resolved: tuple[Finding, ...] = ()
    told: tuple[str, ...] = ()
    began: Tree = Tree()
    recall: float | None = None
    broken: bool = False


class ReviewInput(_Frozen):
    """The review's part of a snapshot.

    ``left_out`` counts, by reason, what the checkout does not hold; ``renames`` maps the old path
    of a file with findings to its new one; ``session_id``, ``session_length`` and ``session_since``
    name the session, how much of it counts and when it ran cold, only where ``opening`` is resumed.
    """

    opening: Opening
    tree: Tree
    left_out: dict[str, int] = {}
    renames: dict[str, str] = {}
    prior: Remembered | None = None
    session_id: str | None = None
    session_length: int = Field(default=0, ge=0)
    session_since: datetime | None = None


class Review(_Frozen):
    """The review's part of a plan.

    ``findings`` stand gravest first, then by place, whatever their state; ``verdict_note`` says
    what of the model's verdict was corrected; ``ignored`` counts ids of ``resolved`` that the last
    review had not. ``instructed``: the files that speak to their reviewer, which the program found.
    """

    review_id: str
    verdict: ReviewVerdict
    verdict_note: str = ""
    findings: tuple[Finding, ...] = ()
    held: tuple[HeldFinding, ...] = ()
    told: tuple[str, ...] = ()
    link: Link | None = None
    ignored: int = 0
    instructed: tuple[str, ...] = ()

    def of(self, *states: FindingState) -> tuple[Finding, ...]:
        """The findings in these states, in their order."""
        return tuple(item for item in self.findings if item.state in states)
