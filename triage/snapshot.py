"""Snapshots: the frozen input of a run, and which issues belong in it.

Invariant: a snapshot is written once; every later attempt of its run uses it unchanged.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from triage.documents import WatchInput
from triage.findings import ReviewInput
from triage.identifiers import JobKey, digest_of
from triage.policy import Backlog


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Issue(_Frozen):
    """An issue as GitHub showed it. ``id`` is global, ``number`` counts within the repository;
    ``comments`` is how many it has."""

    id: int
    number: int
    title: str
    body: str
    author: str
    author_id: int
    labels: tuple[str, ...]
    state: str
    locked: bool
    created_at: datetime
    updated_at: datetime
    url: str
    is_pull_request: bool = False
    comments: int = 0

    @property
    def content_digest(self) -> str:
        """The SHA-256, in hex, of title and body: what a decision is about."""
        return digest_of([self.title, self.body])


class SnapshotIssue(_Frozen):
    """An issue in a snapshot. ``labels_only``: it was there before the first run (backlog)."""

    id: int
    number: int
    title: str
    body: str
    author: str
    labels: tuple[str, ...]
    created_at: datetime
    content_digest: str
    labels_only: bool = False
    comments: int = 0


class Snapshot(_Frozen):
    """The frozen input of a run.

    ``fence`` is the one under which it was saved; ``left_over`` counts issues over the limit;
    ``passed_over`` counts, by reason, the candidates that were left out. A review and a watch have
    no issues, but each its own part.
    """

    dedupe_key: str
    source_set: str
    query_cutoff: datetime
    base_commit: str
    observed_at: datetime
    fence: int
    issues: tuple[SnapshotIssue, ...]
    passed_over: dict[str, int] = {}
    left_over: int = 0
    review: ReviewInput | None = None
    watch: WatchInput | None = None


def source_set(job: JobKey, target_issue: int | None = None) -> str:
    """What a run of a job looks at, as the contract shows it."""
    match job:
        case JobKey.REVIEW:
            return "files:base-commit"
        case JobKey.WATCH:
            return "resources:allow-list"
        case JobKey.DAILY | JobKey.RETRIAGE:
            return "issues:open:unlabeled" if target_issue is None else f"issue:{target_issue}"


class Selection(_Frozen):
    """What is taken out of a listing, and what was left and why."""

    issues: tuple[SnapshotIssue, ...]
    passed_over: dict[str, int]
    left_over: int


def select(
    listed: Iterable[Issue],
    *,
    bot_ids: frozenset[int],
    settled: Mapping[int, str],
    backlog: Backlog,
    backlog_until: datetime,
    max_issues: int,
    always: frozenset[int] = frozenset(),
) -> Selection:
    """Choose the issues of a run: open, unlabelled, not the bot's, not decided already.

    ``settled`` maps an issue's id to the content digest whose decision was held or carried out
    under the run's input version; ``always`` holds the ids that a command or a forced run takes
    whatever their labels, decisions and state, unless they are locked. Issues created up to
    ``backlog_until`` were there before the first run. Those of ``always`` are taken first, then the
    oldest; each id once, in the order of their numbers.
    """
    taken: list[SnapshotIssue] = []
    passed: Counter[str] = Counter()
    candidates = [
        issue
        for issue in {issue.id: issue for issue in listed}.values()
        if not issue.is_pull_request
        and issue.author_id not in bot_ids
        and (issue.state == "open" or issue.id in always)
    ]
    for issue in sorted(candidates, key=lambda issue: (issue.created_at, issue.number)):
        asked = issue.id in always
        old = issue.created_at <= backlog_until and not asked
        reason = _passed_over(issue, settled, asked=asked, skip=old and backlog is Backlog.SKIP)
        if reason is None:
            taken.append(frozen(issue, labels_only=old and backlog is Backlog.LABELS))
        else:
            passed[reason] += 1
    wanted = sorted(taken, key=lambda issue: issue.id not in always)
    kept = wanted[:max_issues]
    return Selection(
        issues=tuple(sorted(kept, key=lambda issue: issue.number)),
        passed_over=dict(passed),
        left_over=len(wanted) - len(kept),
    )


def frozen(issue: Issue, *, labels_only: bool = False) -> SnapshotIssue:
    """An issue as a snapshot holds it."""
    return SnapshotIssue(
        id=issue.id,
        number=issue.number,
        title=issue.title,
        body=issue.body,
        author=issue.author,
        labels=issue.labels,
        created_at=issue.created_at,
        content_digest=issue.content_digest,
        labels_only=labels_only,
        comments=issue.comments,
    )


def without_bodies(snapshot: Snapshot) -> Snapshot:
    """The snapshot as it is kept once its run is over: digests prove, bodies are not needed."""
    issues = tuple(issue.model_copy(update={"body": ""}) for issue in snapshot.issues)
    return snapshot.model_copy(update={"issues": issues})


def _passed_over(
    issue: Issue, settled: Mapping[int, str], *, asked: bool, skip: bool
) -> str | None:
    """Why an issue is left out, in a word."""
    if issue.labels and not asked:
        return "labelled"
    if skip:
        return "backlog"
    if issue.locked:
        return "locked"
    if settled.get(issue.id) == issue.content_digest and not asked:
        return "decided"
    return None
