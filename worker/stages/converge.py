"""Two live comments, or summary issues, with one effect key: the lowest id wins, later ones go.

This happens only where a request outlived every deadline; each time is an incident.
"""

from ledger.records import Claim, Unclaimed
from triage.contract import RunEffect
from triage.identifiers import FAMILY, EffectKind, JobKey, effect_key
from triage.marker import unmarked
from triage.readback import Found, Hit
from worker.ports import Gone, Landed, Outcome, Place, Ports, Refused


async def converge(effect: RunEffect, hit: Hit, place: Place, ports: Ports) -> None:
    """Remove the bot's own later ones, each recorded before it is touched."""
    for extra in hit.others:
        detail = (
            f"{effect.kind} {effect.effect_key[:12]} on issue {extra.number}: {extra.github_id}"
        )
        await ports.ledger.effects.incident("duplicate", detail)
        ports.log("INCIDENT", kind="duplicate", effect=effect.effect_key[:12], id=extra.github_id)
        await _remove(effect, extra, place, ports)


async def _remove(effect: RunEffect, extra: Found, place: Place, ports: Ports) -> None:
    removal = RunEffect(
        effect_key=effect_key(place.id, extra.github_id, FAMILY[JobKey.DAILY], EffectKind.REMOVAL),
        kind=EffectKind.REMOVAL,
        issue=extra.number,
        issue_id=effect.issue_id,
        github_id=extra.github_id,
    )
    token = ports.clock.token()
    lease = await ports.ledger.leases.acquire(f"verify:{removal.effect_key}", ports.owner, token)
    if lease is None:
        return
    claim = await ports.ledger.effects.claim(
        lease, removal, snapshot_fence=lease.fence, resend=False, force=True, operation=token
    )
    if not isinstance(claim, Unclaimed):
        outcome = await _request(claim, effect, extra, place, ports)
        landed = isinstance(outcome, (Landed, Refused))
        update = {"open": not landed, "reason": "removed" if landed else "not known"}
        await ports.ledger.effects.acknowledge(claim, claim.effect.model_copy(update=update))
    await ports.ledger.leases.release(lease)


async def _request(
    claim: Claim, effect: RunEffect, extra: Found, place: Place, ports: Ports
) -> Outcome:
    if effect.kind is not EffectKind.SUMMARY:
        return await ports.writer.delete_comment(claim, place, extra.github_id)
    issue = await ports.reader.issue(place, extra.number)
    body = "" if isinstance(issue, Gone) else unmarked(issue.body)
    return await ports.writer.edit_issue(claim, place, extra.number, body, close=True)
