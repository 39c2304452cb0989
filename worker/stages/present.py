"""GitHub's present state, as the writing of an attempt goes by: read in two requests for all
issues, and again once it is older than ``Timing.refresh``."""

from datetime import datetime

from triage.contract import RunEffect, Skip
from triage.identifiers import EffectKind
from triage.snapshot import Issue, Snapshot, SnapshotIssue
from worker.ports import Gone
from worker.stages.attempt import Attempt
from worker.stages.gone import GONE
from worker.stages.sampling import SKEW


class Present:
    """The issues of a snapshot as they are now, and the labels that the repository has now.

    An issue that no listing shows as changed is what it was in the snapshot. One that was deleted
    or transferred is not listed either: GitHub's refusal of the write tells of it.
    """

    def __init__(self, attempt: Attempt, snapshot: Snapshot) -> None:
        self.labels: frozenset[str] = frozenset()
        self._attempt = attempt
        self._issues: dict[int, Issue | Skip] = {
            issue.number: as_seen(issue, snapshot) for issue in snapshot.issues
        }
        self._seen_at = snapshot.observed_at
        self._read_at: datetime | None = None

    async def issue(self, number: int) -> Issue | Skip:
        """The issue as it is now; a Skip where it is gone."""
        now, refresh = self._attempt.now, self._attempt.ports.timing.refresh
        if self._read_at is None or now - self._read_at >= refresh:
            await self._read()
            self._read_at = now
        if number not in self._issues:
            # The plan outlived its snapshot: a replica that lacked that one was promoted meanwhile.
            self._issues[number] = await self._one(number)
        return self._issues[number]

    async def _one(self, number: int) -> Issue | Skip:
        issue = await self._attempt.ports.reader.issue(self._attempt.place, number)
        return GONE[issue] if isinstance(issue, Gone) else issue

    def wrote(self, effect: RunEffect) -> None:
        """Take in what this attempt has just written."""
        issue = self._issues.get(effect.issue)
        if not isinstance(issue, Issue) or not effect.acknowledged:
            return
        labels = [name for name in issue.labels if name not in effect.labels]
        if effect.kind is EffectKind.LABELS:
            labels += effect.labels
        if effect.kind in (EffectKind.LABELS, EffectKind.UNLABEL):
            changed = issue.model_copy(update={"labels": tuple(labels)})
            self._issues[effect.issue] = changed

    async def _read(self) -> None:
        reader, place = self._attempt.ports.reader, self._attempt.place
        self.labels = await reader.labels(place)
        target = self._attempt.run.inputs.target_issue
        if target is not None:
            self._issues[target] = await self._one(target)
            return
        since = (self._read_at or self._seen_at) - SKEW
        for issue in await reader.issues(place, state="all", since=since):
            if issue.number in self._issues:
                self._issues[issue.number] = issue


def as_seen(issue: SnapshotIssue, snapshot: Snapshot) -> Issue:
    """A snapshot's issue as it stood then: what it still is, unless a listing says otherwise."""
    return Issue(
        id=issue.id,
        number=issue.number,
        title=issue.title,
        body=issue.body,
        author=issue.author,
        author_id=0,
        labels=issue.labels,
        state="open",
        locked=False,
        created_at=issue.created_at,
        updated_at=snapshot.observed_at,
        url="",
        comments=issue.comments,
    )
