"""Two live comments, or summary issues, with one effect key: the lowest id wins, later ones go.

This happens only where a request outlived every deadline; each time is an incident. A removal is a
run of its own, with a lease and a claim, so that people can see what was taken away and why.
"""

from dataclasses import replace
from datetime import datetime

from ledger.records import Claim, Lease, Unclaimed
from triage.contract import Attempt as AttemptRecord
from triage.contract import Evidence, RunEffect, RunInputs, RunRecord, Status
from triage.identifiers import FAMILY, DedupeKey, EffectKind, JobKey, Mode, effect_key
from triage.marker import unmarked
from triage.readback import Found, Hit
from worker.ports import Gone, Landed, Outcome, Place, Ports, Refused


async def converge(
    effect: RunEffect, hit: Hit, inputs: RunInputs, place: Place, ports: Ports
) -> None:
    """Remove the bot's own later ones, each recorded before it is touched. ``inputs`` are those of
    the run whose effect it is."""
    for extra in hit.others:
        detail = (
            f"{effect.kind} {effect.effect_key[:12]} on issue {extra.number}: {extra.github_id}"
        )
        await ports.ledger.effects.incident("duplicate", detail)
        ports.log("INCIDENT", kind="duplicate", effect=effect.effect_key[:12], id=extra.github_id)
        await _remove(effect, extra, inputs, place, ports)


async def _remove(
    effect: RunEffect, extra: Found, inputs: RunInputs, place: Place, ports: Ports
) -> None:
    key = DedupeKey.parse(inputs.dedupe_key)
    own = DedupeKey(JobKey.RETRIAGE, place.id, f"duplicate-{extra.github_id}", key.input_version)
    removal = RunEffect(
        effect_key=effect_key(place.id, extra.github_id, FAMILY[own.job], EffectKind.REMOVAL),
        kind=EffectKind.REMOVAL,
        issue=extra.number,
        issue_id=effect.issue_id,
        github_id=extra.github_id,
        url=extra.url,
    )
    lease = await ports.ledger.leases.acquire(str(own), ports.owner, ports.clock.token())
    if lease is None:
        return
    run = _run(inputs, own, removal, lease, ports.clock.now())
    await ports.ledger.runs.save(lease, run)
    await ports.ledger.runs.save_effects(lease, [removal])
    claim = await ports.ledger.effects.claim(
        lease,
        removal,
        snapshot_fence=lease.fence,
        resend=False,
        operation=ports.clock.token(),
    )
    if isinstance(claim, Unclaimed):
        await ports.ledger.leases.release(lease)
        return
    scoped = replace(ports, writer=ports.writer.within(run.inputs))
    outcome = await _request(claim, effect, extra, place, scoped)
    gone = isinstance(outcome, (Landed, Refused))
    evidence = Evidence.CONFIRMED if gone else Evidence.UNSETTLED
    update = {"evidence": evidence, "open": not gone, "when": ports.clock.now()}
    await ports.ledger.effects.acknowledge(claim, claim.effect.model_copy(update=update))
    status = Status.COMPLETED if gone else Status.FAILED_AFTER_WRITE
    ended = run.attempts[0].model_copy(update={"until": ports.clock.now(), "ended": str(status)})
    run = run.model_copy(update={"status": status, "attempts": (ended,)})
    await ports.ledger.runs.settle(lease, run, {})


def _run(
    inputs: RunInputs, key: DedupeKey, removal: RunEffect, lease: Lease, now: datetime
) -> RunRecord:
    frozen = inputs.model_copy(
        update={
            "dedupe_key": str(key),
            "mode": Mode.COMMENT,
            "by": "verify",
            "target_issue": removal.issue,
            "command_comment": None,
        }
    )
    return RunRecord(
        inputs=frozen,
        status=Status.RUNNING,
        stage="converge",
        created_at=now,
        updated_at=now,
        attempts=(AttemptRecord(owner=lease.owner, fence=lease.fence, began=now),),
        reason="a duplicate of the bot's own",
    )


async def _request(
    claim: Claim, effect: RunEffect, extra: Found, place: Place, ports: Ports
) -> Outcome:
    if effect.kind is not EffectKind.SUMMARY:
        return await ports.writer.delete_comment(claim, place, extra.github_id)
    issue = await ports.reader.issue(place, extra.number)
    body = "" if isinstance(issue, Gone) else unmarked(issue.body)
    return await ports.writer.edit_issue(claim, place, extra.number, body, close=True)
