"""Two live comments, or summary issues, with one effect key: the lowest id wins, later ones go.

This happens only where a request outlived every deadline; each time is an incident. A removal is a
run of its own, with a lease and a claim, so that people can see what was taken away and why. It is
the same however often it is done: a comment that is gone already answers 404.
"""

from dataclasses import replace
from datetime import UTC, datetime

from ledger.records import Claim, Due, DueKind, Lease, Unclaimed
from triage.classification import Facts, classify
from triage.contract import Attempt as AttemptRecord
from triage.contract import Evidence, RunEffect, RunInputs, RunRecord, Status
from triage.identifiers import FAMILY, DedupeKey, EffectKind, JobKey, Mode, effect_key
from triage.marker import unmarked
from triage.readback import SAMPLES, Found, Hit
from worker.ports import Gone, Landed, Late, Outcome, Place, Ports, Refusal, Refused
from worker.stages.epoch import quiet_until

STAGE = "converge"
"""The stage of every removal."""


async def converge(
    effect: RunEffect, hit: Hit, inputs: RunInputs, place: Place, ports: Ports
) -> bool:
    """Remove the bot's own later ones, each recorded before it is touched; the earliest is the
    effect's from now on. False where somebody else is at one of them: look again.

    ``inputs`` are those of the run whose effect it is. What is not removed at once stays due.
    """
    whole = await _with_own(effect, hit, place, ports)
    if whole is None:
        return False
    hit = whole
    reading = hit.found.reading
    digest = reading.marker.digest if reading.marker else ""
    await ports.ledger.effects.note_hit(
        effect.effect_key, hit.found.github_id, hit.found.url, digest, issue=hit.found.number
    )
    removals = [_removal(effect, extra, inputs, place) for extra in hit.others]
    begun = [await _remove(removal, ports) for removal in removals]
    return all(begun)


async def _with_own(effect: RunEffect, hit: Hit, place: Place, ports: Ports) -> Hit | None:
    """The hit together with the one that the run was told of: no view may show it yet.

    What is seen does not give way to an earlier one that is gone: a person deleted that, and asked
    for another. None where it is too early to tell. Raises ReadFailed.
    """
    seen = (hit.found, *hit.others)
    if effect.github_id is None or effect.github_id in {item.github_id for item in seen}:
        return hit
    if effect.github_id < hit.found.github_id and await _not_shown(effect, place, ports):
        since = ports.clock.now() - (effect.sent_at or datetime.min.replace(tzinfo=UTC))
        return None if since < ports.timing.absence_window else hit
    own = replace(hit.found, github_id=effect.github_id, number=effect.issue, url=effect.url)
    first, *others = sorted((*seen, own), key=lambda item: item.github_id)
    return Hit(first, tuple(others))


async def _not_shown(effect: RunEffect, place: Place, ports: Ports) -> bool:
    """Whether a read by its id does not show what the run was told of."""
    if effect.kind is EffectKind.SUMMARY:
        return isinstance(await ports.reader.issue(place, effect.issue), Gone)
    return isinstance(await ports.reader.comment(place, effect.github_id or 0), Gone)


async def remove_again(run: RunRecord, ports: Ports) -> None:
    """Go on with a removal that did not end. One that never said what it removes is taken up by
    whoever finds the duplicate again."""
    if run.effects:
        await _remove((run.inputs, run.effects[0]), ports)


def _removal(
    effect: RunEffect, extra: Found, inputs: RunInputs, place: Place
) -> tuple[RunInputs, RunEffect]:
    """What a removal is: the same whoever finds the duplicate. ``issue_id`` is 0 for an issue."""
    key = DedupeKey(JobKey.RETRIAGE, place.id, f"duplicate-{extra.github_id}", "removal")
    frozen = {
        "dedupe_key": str(key),
        "mode": Mode.COMMENT,
        "by": "verify",
        "target_issue": extra.number,
        "command_comment": None,
    }
    removal = RunEffect(
        effect_key=effect_key(place.id, extra.github_id, FAMILY[key.job], EffectKind.REMOVAL),
        kind=EffectKind.REMOVAL,
        issue=extra.number,
        issue_id=0 if effect.kind is EffectKind.SUMMARY else effect.issue_id,
        github_id=extra.github_id,
        url=extra.url,
    )
    return inputs.model_copy(update=frozen), removal


async def _remove(what: tuple[RunInputs, RunEffect], ports: Ports) -> bool:
    """One attempt at a removal. False where somebody else has it, and where the ledger was lost
    and nothing may be written yet: waiting is no attempt."""
    inputs, removal = what
    if await quiet_until(ports) is not None:
        return False
    leases = ports.ledger.leases
    lease = await leases.acquire(inputs.dedupe_key, ports.owner, ports.clock.token())
    if lease is None:
        return False
    before = (await leases.view(inputs.dedupe_key)).run
    if before is not None and (before.status.final or before.status is Status.NEEDS_REVIEW):
        await leases.release(lease)
        return True
    run = await _opened(before, inputs, removal, lease, ports)
    effect, retry_at = await _sent(lease, run, ports)
    await _ended(lease, run, effect, retry_at, ports)
    return True


async def _opened(
    before: RunRecord | None, inputs: RunInputs, removal: RunEffect, lease: Lease, ports: Ports
) -> RunRecord:
    """A new attempt. The incident is counted before the first one is saved: rather twice than
    not at all."""
    now = ports.clock.now()
    run = before or RunRecord(
        inputs=inputs,
        stage=STAGE,
        created_at=now,
        updated_at=now,
        reason="a duplicate of the bot's own",
    )
    if before is None:
        detail = f"{removal.effect_key[:12]} on issue {removal.issue}: {removal.github_id}"
        await ports.ledger.effects.incident("duplicate", detail)
        ports.log("INCIDENT", kind="duplicate", issue=removal.issue, id=removal.github_id)
    opened = AttemptRecord(owner=lease.owner, fence=lease.fence, began=now)
    run = run.model_copy(
        update={
            "status": Status.RUNNING,
            "updated_at": now,
            "continuations": len(run.attempts),
            "attempts": (*run.attempts, opened),
            "effects": run.effects or (removal,),
        }
    )
    silent = ports.timing.lease + ports.timing.lock_delay
    await ports.ledger.due.add(Due(DueKind.CONTINUE, inputs.dedupe_key), now + silent)
    await ports.ledger.runs.save(lease, run)
    await ports.ledger.runs.save_effects(lease, run.effects)
    return run


async def _sent(lease: Lease, run: RunRecord, ports: Ports) -> tuple[RunEffect, datetime | None]:
    """The removal as GitHub's answer leaves it, saved; and when GitHub asked to come back."""
    effect, effects = run.effects[0], ports.ledger.effects
    claim = await effects.claim(
        lease,
        effect,
        snapshot_fence=lease.fence,
        resend=True,
        operation=ports.clock.token(),
    )
    if isinstance(claim, Unclaimed):
        return effect, None
    outcome = await _request(run.inputs, claim, ports)
    if isinstance(outcome, Late):
        await effects.withdraw(claim)
        return effect, None
    effect = _after(claim.effect if not isinstance(outcome, Refused) else effect, outcome)
    effect = effect.model_copy(update={"when": ports.clock.now()})
    await effects.acknowledge(claim, effect)
    return effect, outcome.retry_at if isinstance(outcome, Refused) else None


def _after(effect: RunEffect, outcome: Outcome) -> RunEffect:
    """Gone, whoever took it away; in doubt; refused for now; or for a person to decide."""
    match outcome:
        case Landed() | Refused(Refusal.GONE):
            return effect.model_copy(update={"evidence": Evidence.CONFIRMED, "open": False})
        case Refused(Refusal.FORBIDDEN | Refusal.INVALID):
            update = {"evidence": Evidence.CONFLICT, "open": False, "reason": outcome.detail}
            return effect.model_copy(update=update)
        case _:
            return effect


async def _request(inputs: RunInputs, claim: Claim, ports: Ports) -> Outcome:
    place = Place(inputs.repository_id, inputs.repository, inputs.installation)
    writer, effect = ports.writer.within(inputs), claim.effect
    if effect.issue_id:
        return await writer.delete_comment(claim, place, effect.github_id or 0)
    issue = await ports.reader.issue(place, effect.issue)
    body = "" if isinstance(issue, Gone) else unmarked(issue.body)
    return await writer.edit_issue(claim, place, effect.issue, body, close=True)


async def _ended(
    lease: Lease, run: RunRecord, effect: RunEffect, retry_at: datetime | None, ports: Ports
) -> None:
    """The status by the same table as every run's; what is not over is due again soon."""
    now = ports.clock.now()
    facts = Facts(effects=[effect], now=now, continuations=run.continuations)
    status = classify(facts)
    due = Due(DueKind.CONTINUE, run.inputs.dedupe_key)
    over = status.final or status is Status.NEEDS_REVIEW
    soon = None if over else retry_at or now + ports.timing.absence_window / (SAMPLES - 1)
    last = run.attempts[-1].model_copy(update={"until": now, "ended": str(status)})
    run = run.model_copy(
        update={
            "status": status,
            "updated_at": now,
            "retry_at": soon,
            "attempts": (*run.attempts[:-1], last),
        }
    )
    await ports.ledger.runs.settle(lease, run, {} if soon is None else {due: soon})
