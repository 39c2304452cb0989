"""The run as people read it: what it may write, what it was made of, the contract."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from triage.contract.record import (
    ResourceSummary,
    ReviewFigures,
    ReviewSummary,
    RunInputs,
    RunRecord,
    SnapshotSummary,
)
from triage.findings import Review
from triage.identifiers import DedupeKey, Mode
from triage.policy import JobPolicy, ReviewPolicy, Summary, WatchPolicy
from triage.snapshot import Snapshot


def write_scope(inputs: RunInputs) -> list[str]:
    """What the run may write on GitHub; the writer refuses the rest. Empty in observe mode, and
    for a watch whatever its mode."""
    match inputs.policy:
        case WatchPolicy():
            return []
        case _ if inputs.mode is Mode.OBSERVE:
            return []
        case ReviewPolicy():
            answers = [] if inputs.command_comment is None else ["reactions"]
            return ["issues: the one of the review", *answers, "own duplicates: close"]
        case JobPolicy():
            return _scope_of_triage(inputs, inputs.policy)


def _scope_of_triage(inputs: RunInputs, policy: JobPolicy) -> list[str]:
    issues = "*" if inputs.target_issue is None else str(inputs.target_issue)
    scope = [f"issues/{issues}/labels: {', '.join(policy.labels)}"]
    if inputs.mode is Mode.COMMENT:
        scope.insert(0, f"issues/{issues}/comments: the one of triage")
    if inputs.target_issue is None and policy.summary is not Summary.OFF:
        window = DedupeKey.parse(inputs.dedupe_key).window
        rolling = policy.summary is Summary.ROLLING
        scope.append(
            "issues: the rolling summary" if rolling else f"issues: the summary of {window}"
        )
    return [*scope, "reactions", "own duplicates: delete"]


def summarised(snapshot: Snapshot) -> SnapshotSummary:
    """The part of a snapshot that the contract shows."""
    return SnapshotSummary(
        source_set=snapshot.source_set,
        query_cutoff=snapshot.query_cutoff,
        base_commit=snapshot.base_commit,
        observed_at=snapshot.observed_at,
        issues=len(snapshot.issues),
        passed_over=snapshot.passed_over,
        left_over=snapshot.left_over,
        review=_summarised_review(snapshot),
        resources=_summarised_resources(snapshot),
    )


def _summarised_review(snapshot: Snapshot) -> ReviewSummary | None:
    taken = snapshot.review
    if taken is None:
        return None
    return ReviewSummary(
        start=taken.opening.start,
        why=taken.opening.why,
        files=taken.tree.files,
        files_digest=taken.tree.digest,
        previous_review_id=taken.prior.review_id if taken.prior else "",
        previous_findings=len(taken.prior.findings) if taken.prior else 0,
    )


def _summarised_resources(snapshot: Snapshot) -> tuple[ResourceSummary, ...] | None:
    if snapshot.watch is None:
        return None
    return tuple(
        ResourceSummary(
            name=item.name, url=item.address, observed_at=item.observed_at, digest=item.digest
        )
        for item in snapshot.watch.documents
    )


def figures(review: Review) -> ReviewFigures:
    """What the run's record keeps of a review."""
    return ReviewFigures(verdict=review.verdict, link=review.link)


def contract(
    run: RunRecord, *, lease_owner: str, lease_until: datetime | None, fence: int
) -> dict[str, Any]:
    """The run contract of ``retriage show``; times are local to the repository, ISO 8601."""
    zone = ZoneInfo(run.inputs.policy.schedule.timezone)
    key = run.key
    writes = bool(write_scope(run.inputs))
    shown = {
        "job_key": key.job,
        "window_key": key.window,
        "dedupe_key": str(key),
        "repository": run.inputs.repository,
        "input_snapshot": run.snapshot_summary and _shown_snapshot(run.snapshot_summary),
        "lease_owner": lease_owner,
        "lease_until": lease_until,
        "fence": fence,
        "write_scope": write_scope(run.inputs),
        "side_effect_policy": {
            "remote_write": "allowed" if writes else "denied",
            "overwrite_same_artifact": "allowed",
        },
        "result_artifact": run.result_artifact,
        "status": run.status,
        "reason": run.reason,
        "retry_at": run.retry_at,
        "proof_until": run.proof_until,
        "attempts": [
            {"owner": item.owner, "from": item.began, "to": item.until, "ended": item.ended}
            for item in run.attempts
        ],
        "effects": [
            {
                "kind": item.kind,
                "target": item.target,
                "github_id": item.github_id,
                "evidence": item.evidence + (f" ({item.reason})" if item.reason else ""),
                "when": item.when,
            }
            for item in run.effects
        ],
        **_review(run),
        **({"denials": run.denials} if run.denials else {}),
        **_resolutions(run),
        "cost": run.cost.model_dump(),
    }
    return {name: _plain(value, zone) for name, value in shown.items()}


def _shown_snapshot(taken: SnapshotSummary) -> dict[str, Any]:
    """A triage has issues, a review a tree, a watch resources: only what there is."""
    shown = taken.model_dump(exclude_none=True)
    if taken.review or taken.resources is not None:
        for name in ("issues", "passed_over", "left_over"):
            del shown[name]
    return shown


def _review(run: RunRecord) -> dict[str, Any]:
    """A review's verdict and what it shows of the one before; nothing for other runs."""
    if run.review is None:
        return {}
    link = run.review.link
    shown = {**link.pairs, "broken": link.broken} if link else None
    return {"review": {"verdict": run.review.verdict, "link": shown}}


def _resolutions(run: RunRecord) -> dict[str, Any]:
    """Who decided what, and why; nothing where nobody had to."""
    decided = [item.model_dump() for item in run.resolutions]
    return {"resolutions": decided} if decided else {}


def _plain(value: Any, zone: ZoneInfo) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(zone).isoformat(timespec="seconds")
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item, zone) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, zone) for item in value]
    return value
