"""Reading GitHub back: doubts of earlier attempts first, then what this attempt wrote, in batches.

Invariant: nothing is confirmed that was not seen on GitHub by a read.
"""

from collections.abc import Sequence

from triage.contract import Evidence, RunEffect, Skip
from triage.effects import confirmed, skipped
from triage.identifiers import EffectKind
from triage.readback import Forged, Hit, adopted
from triage.snapshot import Issue
from worker.ports import Comment, Gone
from worker.stages.attempt import Attempt
from worker.stages.converge import converge
from worker.stages.gone import GONE, comment_gone, summary_gone
from worker.stages.lookup import found_in
from worker.stages.sampling import SKEW, Absent, Pending, look
from worker.stages.sending import conflict, verify_later
from worker.stages.writing import judge_comment

FEW = 4
"""Effects up to which they are read one by one: a read by id does not lag as listings do."""

POLLS_SECONDS = (1.0, 2.0, 4.0)
"""Pauses between reads of an acknowledged effect that a lagging read does not show yet."""


async def settle_doubts(attempt: Attempt) -> None:
    """Read back first: every effect whose request may have landed unrecorded."""
    for effect in [item for item in attempt.effects.values() if item.in_doubt]:
        await attempt.keep([await settle_one(attempt, effect)])


async def settle_one(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """What one read of GitHub makes of an effect that was sent."""
    if effect.kind in (EffectKind.LABELS, EffectKind.UNLABEL):
        return await _labels_now(attempt, effect)
    if attempt.known_id(effect) is None:
        return await _looked_for(attempt, effect)
    if effect.kind is EffectKind.SUMMARY:
        return await read_summary(attempt, effect)
    return await _read_comment(attempt, effect)


async def _read_comment(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """The comment by its id."""
    known = attempt.known_id(effect) or 0
    comment = await attempt.ports.reader.comment(attempt.place, known)
    if isinstance(comment, Gone):
        return await comment_gone(attempt, effect.model_copy(update={"github_id": known}))
    await _one_of_two(attempt, effect, comment)
    return judge_comment(attempt, effect.model_copy(update={"github_id": known}), comment)


async def _one_of_two(attempt: Attempt, effect: RunEffect, first: Comment) -> None:
    """Where the run was told of a later one than this, that one goes."""
    if effect.github_id in (None, first.id):
        return
    hit = Hit(found_in([first], attempt.ports)[0])
    await _converge(attempt, effect, hit)


async def _converge(attempt: Attempt, effect: RunEffect, hit: Hit) -> None:
    inputs, place, ports = attempt.run.inputs, attempt.place, attempt.ports
    if not await converge(effect, hit, inputs, place, ports):
        await verify_later(attempt, effect)


async def _looked_for(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """A create: seen, proved absent, or still in doubt."""
    record = attempt.records.get(effect.effect_key)
    sighting = await look(effect, record, attempt.place, attempt.ports)
    match sighting:
        case Hit():
            await _converge(attempt, effect, sighting)
            seen = adopted(effect, sighting, attempt.now)
            return seen.model_copy(update={"issue": sighting.found.number or effect.issue})
        case Forged():
            return conflict(effect, "a comment of the bot bears a bad signature", attempt.now)
        case Gone():
            return skipped(effect, GONE[sighting])
        case Absent() if effect.sends > 1:
            return conflict(effect, "sent twice and never seen on GitHub", attempt.now)
        case Absent():
            reason = "proved absent by five reads"
            return effect.model_copy(
                update={"evidence": Evidence.ABSENT, "open": False, "reason": reason}
            )
        case Pending():
            return effect


async def _labels_now(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """Labels: in place, undone by a person, or still to be done."""
    issue = await attempt.ports.reader.issue(attempt.place, effect.issue)
    if isinstance(issue, Gone):
        return skipped(effect, GONE[issue])
    return await _judge_labels(attempt, effect, issue)


async def _judge_labels(attempt: Attempt, effect: RunEffect, issue: Issue) -> RunEffect:
    if _in_place(effect, issue):
        return confirmed(effect).model_copy(update={"when": attempt.now})
    undone = await _who_undid(attempt, effect)
    if undone is not None:
        return skipped(effect, undone)
    if effect.acknowledged:
        return await _acknowledged_labels(attempt, effect)
    return effect.model_copy(update={"evidence": Evidence.ABSENT, "open": False, "reason": ""})


async def _who_undid(attempt: Attempt, effect: RunEffect) -> Skip | None:
    """A person, or a later run of the bot, where the last event of a label says so."""
    events = await attempt.ports.reader.issue_events(attempt.place, effect.issue)
    bots = await attempt.ports.ledger.repositories.bot_ids()
    undoing = "unlabeled" if effect.kind is EffectKind.LABELS else "labeled"
    last = {event.label: event for event in events}
    undone = [last[name] for name in effect.labels if name in last and last[name].event == undoing]
    if any(event.actor_id not in bots for event in undone):
        return Skip.HUMAN_REMOVED
    return Skip.SUPERSEDED if undone and effect.acknowledged else None


async def _acknowledged_labels(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """Labels that no read shows yet. One that left the repository left every issue, without an
    event on any."""
    if effect.kind is EffectKind.UNLABEL:
        return effect
    there = await attempt.ports.reader.labels(attempt.place)
    lacking = [name for name in effect.labels if name not in there]
    detail = f"the repository has no label {lacking[0]!r}" if lacking else ""
    return skipped(effect, Skip.REFUSED, detail) if lacking else effect


def _in_place(effect: RunEffect, issue: Issue) -> bool:
    there = [name in issue.labels for name in effect.labels]
    return all(there) if effect.kind is EffectKind.LABELS else not any(there)


async def read_back(attempt: Attempt, *, summary: bool = False) -> None:
    """Confirm what GitHub acknowledged on the issues, or the summary: many by repository-wide
    listings, few one by one. What a later run wrote over is superseded."""
    for pause in (0.0, *POLLS_SECONDS):
        pending = _unseen(attempt, summary=summary)
        if not pending:
            return
        await attempt.know(effect.effect_key for effect in pending)
        if pause:
            await attempt.ports.clock.sleep(pause)
        if len(pending) > FEW:
            pending = await _listed(attempt, pending)
        if len(pending) <= FEW:
            await attempt.keep([await _one(attempt, effect) for effect in pending])
        await _mark_superseded(attempt, _unseen(attempt, summary=summary))


def _unseen(attempt: Attempt, *, summary: bool) -> list[RunEffect]:
    acknowledged = [effect for effect in attempt.effects.values() if effect.acknowledged]
    return [item for item in acknowledged if (item.kind is EffectKind.SUMMARY) is summary]


async def _mark_superseded(attempt: Attempt, unseen: Sequence[RunEffect]) -> None:
    """A run with a later snapshot wrote the same thing since, so it will not be seen."""
    await attempt.know(effect.effect_key for effect in unseen)
    later = [
        effect
        for effect in unseen
        for record in attempt.records_of([effect]).values()
        if record.writer_fence > attempt.fence and record.writer != attempt.lease.dedupe_key
    ]
    await attempt.keep(skipped(effect, Skip.SUPERSEDED) for effect in later)


async def _listed(attempt: Attempt, pending: Sequence[RunEffect]) -> list[RunEffect]:
    """Confirm by the repository's comments and issues; gives those that they do not show."""
    reader, place = attempt.ports.reader, attempt.place
    since = min((effect.sent_at or attempt.now) for effect in pending) - SKEW
    comments: dict[int, Comment] = {}
    issues: dict[int, Issue] = {}
    if any(effect.kind is EffectKind.COMMENT for effect in pending):
        comments = {item.id: item for item in await reader.comments(place, since)}
    if any(effect.kind is not EffectKind.COMMENT for effect in pending):
        listed = await reader.issues(place, state="all", since=since)
        issues = {issue.number: issue for issue in listed}
    seen: list[RunEffect] = []
    for effect in pending:
        comment = comments.get(attempt.known_id(effect) or 0)
        issue = issues.get(effect.issue)
        if effect.kind is EffectKind.COMMENT and comment is not None:
            seen.append(_shown(effect, judge_comment(attempt, effect, comment)))
        elif effect.kind is not EffectKind.COMMENT and issue and _in_place(effect, issue):
            seen.append(confirmed(effect).model_copy(update={"when": attempt.now}))
    await attempt.keep(seen)
    return [effect for effect in pending if attempt.effects[effect.effect_key].acknowledged]


async def _one(attempt: Attempt, effect: RunEffect) -> RunEffect:
    match effect.kind:
        case EffectKind.SUMMARY:
            return _shown(effect, await read_summary(attempt, effect))
        case EffectKind.COMMENT:
            return _shown(effect, await _read_comment(attempt, effect))
        case _:
            return await _labels_now(attempt, effect)


def _shown(effect: RunEffect, seen: RunEffect) -> RunEffect:
    """What a read makes of an acknowledged effect; an older body is a read that lags."""
    return effect if seen.evidence is Evidence.ABSENT else seen


async def read_summary(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """The summary issue by its number."""
    told, record = effect, attempt.records.get(effect.effect_key)
    if record is not None and record.github_id is not None and record.issue:
        known = {"github_id": record.github_id, "issue": record.issue, "url": record.url}
        effect = effect.model_copy(update=known)
    issue = await attempt.ports.reader.issue(attempt.place, effect.issue)
    if isinstance(issue, Gone):
        return summary_gone(attempt, effect, issue)
    as_comment = Comment(
        id=issue.id,
        issue=issue.number,
        author_id=issue.author_id,
        body=issue.body,
        url=issue.url,
        created_at=issue.created_at,
        updated_at=issue.updated_at,
    )
    await _one_of_two(attempt, told, as_comment)
    return judge_comment(attempt, effect, as_comment)
