"""The end of an attempt: classify, save, release, say it, and put what falls due next."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.records import Due, DueKind
from triage.admission import MOST_ATTEMPTS
from triage.classification import classify, row_of
from triage.contract import Evidence, RunRecord, Skip, Status
from triage.identifiers import FAMILY, EffectKind, Family, Mode
from triage.plan import Plan
from triage.readback import SAMPLES, next_sample, proof_until
from triage.snapshot import Snapshot
from worker.ports import Place, Ports, ReadFailed
from worker.stages.attempt import Attempt, Ending, ask_twice
from worker.stages.sampling import look

FIRST_PAUSE = timedelta(minutes=1)
"""The pause after a first attempt that failed before any write; each later one is twice as long."""

WORDS: Mapping[Status, str] = {
    Status.COMPLETED: "RUN-COMPLETED",
    Status.NO_CHANGE: "RUN-NO-CHANGE",
    Status.WAITING: "RUN-WAITING",
    Status.NEEDS_REVIEW: "RUN-NEEDS-REVIEW",
    Status.FAILED_BEFORE_WRITE: "RUN-FAILED",
    Status.FAILED_AFTER_WRITE: "RUN-FAILED",
}


@dataclass(frozen=True, slots=True)
class RunReport:
    """What became of one ask. ``outcome``: ran, reused, refused or stopped."""

    dedupe_key: str
    status: Status | None
    outcome: str
    reason: str = ""
    until: datetime | None = None
    artifact: str = ""
    drift: tuple[str, ...] = ()


async def settle(attempt: Attempt, ending: Ending) -> RunReport:
    """Classify by the evidence and end the attempt in one step of the ledger."""
    facts = attempt.facts(budget_spent=ending.budget_spent)
    status = classify(facts)
    reason = ending.reason or ("" if status.final else row_of(facts))
    run = attempt.run.model_copy(
        update={
            "status": status,
            "effects": tuple(attempt.effects.values()),
            "stage": "settled" if status.final else attempt.run.stage,
            "reason": reason,
            "updated_at": attempt.now,
            "result_artifact": _artifact(attempt),
            "retryable": ending.retryable,
            "attempts_charged": attempt.run.attempts_charged
            + int(status is Status.FAILED_BEFORE_WRITE),
            "proof_until": None,
        }
    )
    due: dict[Due, datetime] = {}
    if status is Status.FAILED_AFTER_WRITE:
        run = await _pending(attempt, run, due)
    soon = attempt.now + attempt.ports.timing.absence_window / (SAMPLES - 1)
    retry_at = _retry_at(run, ending, attempt.now, soon)
    asked = ending.retry_at if status in (Status.WAITING, Status.FAILED_AFTER_WRITE) else None
    run = run.model_copy(update={"retry_at": retry_at, "come_back_at": asked})
    run = _with_ended_attempt(run, attempt.now)
    if run.retry_at is not None:
        due[Due(DueKind.CONTINUE, run.inputs.dedupe_key)] = run.retry_at
    if status.final or status is Status.NEEDS_REVIEW:
        await remember(attempt, run)
    await _answer(run, attempt.ports)
    attempt.given_up.set()
    settled = attempt.ports.ledger.runs.settle
    await ask_twice(lambda: settled(attempt.lease, run, due), attempt.ports.clock)
    _say(run, attempt.ports)
    return RunReport(
        run.inputs.dedupe_key,
        status,
        "ran",
        reason=reason,
        until=run.proof_until or run.retry_at,
        artifact=run.result_artifact,
    )


async def _pending(attempt: Attempt, run: RunRecord, due: dict[Due, datetime]) -> RunRecord:
    """Take the first sample of each create in doubt: the proof of its absence counts from it."""
    place = Place(run.inputs.repository_id, run.inputs.repository, run.inputs.installation)
    window, latest = attempt.ports.timing.absence_window, None
    await attempt.know(effect.effect_key for effect in attempt.effects.values() if effect.in_doubt)
    for effect in attempt.effects.values():
        record = attempt.records.get(effect.effect_key)
        known = effect.github_id or (record.github_id if record else None)
        if not (effect.in_doubt and effect.kind.creates) or known is not None:
            continue
        if record is None or not record.samples:
            try:
                await look(effect, record, place, attempt.ports)
            except ReadFailed as failure:
                attempt.ports.log("READ-FAILED", detail=failure.detail)
        await attempt.know([effect.effect_key])
        record = attempt.records.get(effect.effect_key)
        if record is not None and record.github_id is not None:
            continue
        samples = record.samples if record is not None else ()
        until = proof_until(samples, attempt.now, window)
        latest = until if latest is None else max(latest, until)
        at = next_sample(samples, attempt.now, window) or attempt.now
        due[Due(DueKind.SAMPLE, effect.effect_key)] = at
    return run.model_copy(update={"proof_until": latest})


def _retry_at(run: RunRecord, ending: Ending, now: datetime, soon: datetime) -> datetime | None:
    """When the clock takes the run up again; None where it does not.

    ``soon``: when what GitHub told of, and no read shows yet, is read again. Continuations so far
    apart do not run out before GitHub's views agree.
    """
    match run.status:
        case Status.WAITING:
            return ending.retry_at or now
        case Status.FAILED_AFTER_WRITE if run.proof_until is not None:
            return run.proof_until
        case Status.FAILED_AFTER_WRITE:
            unseen = [e for e in run.effects if e.evidence is Evidence.UNSETTLED]
            lagging = any(effect.acknowledged or effect.kind.creates for effect in unseen)
            return ending.retry_at or (soon if lagging else now)
        case Status.FAILED_BEFORE_WRITE:
            if not run.retryable or run.attempts_charged >= MOST_ATTEMPTS:
                return None
            pause: timedelta = FIRST_PAUSE * 2 ** (run.attempts_charged - 1)
            return max(ending.retry_at or now, now + pause)
        case _:
            return None


def _with_ended_attempt(run: RunRecord, now: datetime) -> RunRecord:
    last = run.attempts[-1].model_copy(update={"until": now, "ended": str(run.status)})
    return run.model_copy(update={"attempts": (*run.attempts[:-1], last)})


def _artifact(attempt: Attempt) -> str:
    kinds = (EffectKind.SUMMARY, EffectKind.REPORT, EffectKind.COMMENT)
    single = attempt.run.inputs.target_issue is not None
    for effect in attempt.effects.values():
        if effect.kind in (kinds if single else kinds[:2]) and effect.url:
            return effect.url
    return attempt.run.result_artifact


async def remember(attempt: Attempt, run: RunRecord) -> None:
    """Remember decided contents and how far the repository was scanned: nobody pays twice. Only
    the triage is about issues."""
    runs, repositories = attempt.ports.ledger.runs, attempt.ports.ledger.repositories
    snapshot = await runs.snapshot(run.inputs.dedupe_key)
    plan = await runs.plan(run.inputs.dedupe_key)
    if snapshot is None or plan is None or FAMILY[run.key.job] is not Family.TRIAGE:
        return
    version = run.key.input_version
    decided = _decided(attempt, snapshot, plan)
    await repositories.settle(run.inputs.repository_id, version, decided)
    record = await repositories.get(run.inputs.repository_id)
    whole = snapshot.left_over == 0 and len(decided) == len(snapshot.issues)
    if record is not None and run.inputs.target_issue is None and run.status.final:
        scanned = {"scanned_until": snapshot.query_cutoff, "scan_version": version}
        blank = {"scanned_until": None, "scan_version": ""}
        await repositories.save(record.model_copy(update=scanned if whole else blank), record)


def _decided(attempt: Attempt, snapshot: Snapshot, plan: Plan) -> dict[int, str]:
    """Issues whose decision was held for good, or whose effects are all confirmed or skipped,
    `blocked` apart."""
    undone = {
        effect.issue_id
        for effect in attempt.effects.values()
        if effect.evidence not in (Evidence.CONFIRMED, Evidence.SKIPPED)
        or effect.reason == Skip.BLOCKED
    }
    unheld = {held.issue_id for held in plan.held if not held.why.settles}
    return {
        issue.id: issue.content_digest
        for issue in snapshot.issues
        if issue.id not in undone | unheld
    }


async def _answer(run: RunRecord, ports: Ports) -> None:
    """The reaction that ends a command: done, or failed for good, or left to another run that holds
    what it would have written. Idempotent at GitHub."""
    inputs = run.inputs
    over = run.status.final or run.status is Status.NEEDS_REVIEW
    failed = run.status is Status.FAILED_BEFORE_WRITE and run.retry_at is None
    if inputs.command_comment is None or inputs.mode is Mode.OBSERVE or not (over or failed):
        return
    place = Place(inputs.repository_id, inputs.repository, inputs.installation)
    blocked = any(effect.reason == Skip.BLOCKED for effect in run.effects)
    content = "+1" if run.status.final and not blocked else "confused"
    await ports.writer.react(place, inputs.command_comment, content)


def _say(run: RunRecord, ports: Ports) -> None:
    pairs: dict[str, object] = {"run": run.inputs.dedupe_key, "repository": run.inputs.repository}
    if run.status in (Status.FAILED_BEFORE_WRITE, Status.FAILED_AFTER_WRITE):
        pairs = {"stage": run.status.removeprefix("failed-"), **pairs}
    if run.reason:
        pairs["reason"] = run.reason
    until = run.proof_until or run.retry_at
    if until is not None:
        pairs["until"] = until
    ports.log(WORDS[run.status], **pairs, effects=len(run.effects))
