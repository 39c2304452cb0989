"""Made-up runs and effects, and the way of a run up to its lease."""

from datetime import UTC, datetime
from typing import Any

from ledger.records import Claim, Lease
from tests.ledger.places import AnyLedger
from triage.contract import RunEffect, RunInputs, RunRecord, Status
from triage.identifiers import FAMILY, EffectKind, JobKey, Mode, effect_key
from triage.policy import JobPolicy
from triage.snapshot import Snapshot, SnapshotIssue

REPOSITORY = 7
NOON = datetime(2026, 9, 16, 12, tzinfo=UTC)
RUN = f"daily-issue-triage:R{REPOSITORY}:2026-09-16:p0000000a"
OTHER_RUN = f"issue-retriage:R{REPOSITORY}:comment-5:p0000000a"


def run(key: str = RUN, *, force: bool = False, **fields: Any) -> RunRecord:
    """A running run."""
    inputs = RunInputs(
        dedupe_key=key,
        repository_id=REPOSITORY,
        repository="acme/API",
        installation="1",
        policy=JobPolicy(labels={"bug": "broken", "question": "asks"}),
        mode=Mode.COMMENT,
        by="cron",
        due_at=NOON,
        force=force,
    )
    given = {"status": Status.RUNNING, "created_at": NOON, "updated_at": NOON, **fields}
    return RunRecord(inputs=inputs, **given)


def effect(kind: EffectKind = EffectKind.COMMENT, issue: int = 1, **fields: Any) -> RunEffect:
    """An effect on issue ``issue``, whose global id is a thousand more."""
    issue_id = issue + 1000
    key = effect_key(REPOSITORY, issue_id, FAMILY[JobKey.DAILY], kind)
    labels = ("bug",) if kind in (EffectKind.LABELS, EffectKind.UNLABEL) else ()
    given = {"labels": labels, "digest": "d" * 64, **fields}
    return RunEffect(effect_key=key, kind=kind, issue=issue, issue_id=issue_id, **given)


def snapshot(key: str = RUN, fence: int = 1, body: str = "words") -> Snapshot:
    """A snapshot of one issue."""
    issue = SnapshotIssue(
        id=1001,
        number=1,
        title="It breaks",
        body=body,
        author="someone",
        labels=(),
        created_at=NOON,
        content_digest="c" * 64,
    )
    return Snapshot(
        dedupe_key=key,
        source_set="issues:open:unlabeled",
        query_cutoff=NOON,
        base_commit="",
        observed_at=NOON,
        fence=fence,
        issues=(issue,),
    )


async def start(
    ledger: AnyLedger, key: str = RUN, token: str = "token", *, force: bool = False
) -> Lease:
    """A saved run with a lease."""
    lease = await ledger.leases.acquire(key, "worker-1", token)
    assert lease is not None
    await ledger.runs.save(lease, run(key, force=force))
    return lease


async def claimed(
    ledger: AnyLedger, lease: Lease, what: RunEffect, operation: str = "op-1", **given: Any
) -> Claim:
    """A claim that must be given."""
    arguments = {"snapshot_fence": lease.fence, "resend": False, **given}
    claim = await ledger.effects.claim(lease, what, operation=operation, **arguments)
    assert isinstance(claim, Claim), claim
    return claim
