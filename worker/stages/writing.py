"""The writing of a run: each issue's effects in their order, against GitHub's present state.

Invariant: an issue's labels are sent only once its comment is settled or acknowledged, and a label
that the repository does not have now is never sent.
"""

from collections.abc import Iterable

from ledger.records import Claim
from triage.comment import render
from triage.contract import Evidence, RunEffect, Skip
from triage.effects import judge, skipped
from triage.identifiers import EffectKind
from triage.marker import Signature, read, stamp
from triage.plan import Decision, Plan
from triage.readback import Hit, adopted, found
from triage.snapshot import Issue, Snapshot
from worker.ports import Comment, Gone, Outcome
from worker.stages.attempt import Attempt
from worker.stages.gone import comment_gone
from worker.stages.lookup import look_up
from worker.stages.present import Present
from worker.stages.sampling import look
from worker.stages.sending import StopSending, conflict, send_once

BREAKER = 3
"""Unknown outcomes in a row after which an attempt stops writing."""


class Writing:
    """The writing of one attempt, issue by issue."""

    def __init__(self, attempt: Attempt, snapshot: Snapshot, plan: Plan) -> None:
        self.attempt = attempt
        self.present = Present(attempt, snapshot)
        self.decisions = {decision.issue_id: decision for decision in plan.decisions}
        self.unknown_in_a_row = 0

    async def write_issue(self, number: int) -> None:
        """Send what is wanted on one issue, in its order. Raises StopSending."""
        for planned in self._group(number):
            effect = self.attempt.effects[planned.effect_key]
            if effect.evidence is Evidence.ABSENT:
                effect = await self._judged(effect)
            if effect.evidence is Evidence.ABSENT:
                effect = await self._send(effect)
            if not _lets_pass(effect):
                await self._hold_back(effect)
                return

    def _group(self, number: int) -> list[RunEffect]:
        return groups(self.attempt.effects.values())[number]

    async def _judged(self, effect: RunEffect) -> RunEffect:
        """The effect by what GitHub shows of its issue, and of the repository's labels, now. An
        issue on which another run holds anything is left to it: its words are of one mind."""
        attempt, group = self.attempt, self._group(effect.issue)
        if effect.issue_id not in self.decisions:  # of a plan that a lost ledger took along
            effect = skipped(effect, Skip.SUPERSEDED)
            await attempt.keep([effect])
            return effect
        now = await self.present.issue(effect.issue)
        await attempt.know(item.effect_key for item in group)
        if isinstance(now, Issue):
            await look_up(attempt, now, group)
        group = self._group(effect.issue)
        known, labels = attempt.records_of(group), self.present.labels
        judged = {e.effect_key: e for e in judge(group, now, known, labels, attempt.run.inputs)}
        effect = judged[effect.effect_key]
        others = {record.holder for record in known.values()} - {"", attempt.lease.dedupe_key}
        if others and effect.evidence is Evidence.ABSENT:
            effect = skipped(effect, Skip.BLOCKED)
        await attempt.keep([effect])
        return effect

    async def _send(self, effect: RunEffect) -> RunEffect:
        match effect.kind:
            case EffectKind.COMMENT:
                effect = await self._comment(effect, self.decisions[effect.issue_id])
            case EffectKind.UNLABEL:
                effect = await self._unlabel(effect)
            case _:
                effect = await send_once(self.attempt, effect, self._add_labels)
        self.present.wrote(effect)
        self.unknown_in_a_row = self.unknown_in_a_row + 1 if effect.in_doubt else 0
        if self.unknown_in_a_row >= BREAKER:
            raise StopSending("GitHub did not answer several writes in a row")
        return effect

    async def _add_labels(self, claim: Claim) -> Outcome:
        effect = claim.effect
        return await self.attempt.ports.writer.add_labels(
            claim, self.attempt.place, effect.issue, effect.labels
        )

    async def _unlabel(self, effect: RunEffect) -> RunEffect:
        """Remove an own label: only if its last ``labeled`` event is the bot's, read now."""
        bots = await self.attempt.ports.ledger.repositories.bot_ids()
        events = await self.attempt.ports.reader.issue_events(self.attempt.place, effect.issue)
        label = effect.labels[0]
        last = [event for event in events if event.label == label and event.event == "labeled"]
        if not last or last[-1].actor_id not in bots:
            effect = skipped(effect, Skip.HUMAN_LABELLED)
            await self.attempt.keep([effect])
            return effect

        async def request(claim: Claim) -> Outcome:
            return await self.attempt.ports.writer.remove_label(
                claim, self.attempt.place, effect.issue, label
            )

        return await send_once(self.attempt, effect, request)

    async def _comment(self, effect: RunEffect, decision: Decision) -> RunEffect:
        """Edit the comment that is there, else create it; with force also one that was deleted."""
        body = stamp(
            render(decision),
            effect_key=effect.effect_key,
            run=self.attempt.lease.dedupe_key,
            keys=self.attempt.ports.keys,
        )
        known = self.attempt.known_id(effect)
        if known is None:
            record = self.attempt.records.get(effect.effect_key)
            deleted = record is not None and record.tombstone
            return await (self._replace if deleted else self._create)(effect, body)
        before, unmarked = await self._before_edit(effect.model_copy(update={"github_id": known}))
        if before.evidence is Evidence.ABSENT:
            # Nobody could find it without its marker: another may stand in its place.
            return await self._edit(before, known, body, joined=unmarked)
        if before.reason == Skip.HUMAN_REMOVED and self.attempt.run.inputs.force:
            return await self._replace(effect.model_copy(update={"github_id": None}), body)
        await self.attempt.keep([before])
        return before

    async def _replace(self, effect: RunEffect, body: str) -> RunEffect:
        """Create one in place of the comment that a person deleted; or edit the one that an earlier
        command has put there, which the ledger may have forgotten, or not heard of in order."""
        attempt = self.attempt
        sighting = await look(effect, None, attempt.place, attempt.ports)
        if not isinstance(sighting, Hit):
            return await self._create(effect, body)
        seen = adopted(effect, sighting, attempt.now)
        if seen.evidence is Evidence.ABSENT:
            return await self._edit(seen, sighting.found.github_id, body)
        await attempt.keep([seen])
        return seen

    async def _create(self, effect: RunEffect, body: str) -> RunEffect:
        async def request(claim: Claim) -> Outcome:
            writer = self.attempt.ports.writer
            return await writer.create_comment(claim, self.attempt.place, effect.issue, body)

        return await send_once(self.attempt, effect, request)

    async def _edit(
        self, effect: RunEffect, comment_id: int, body: str, *, joined: bool = False
    ) -> RunEffect:
        async def request(claim: Claim) -> Outcome:
            writer = self.attempt.ports.writer
            return await writer.edit_comment(claim, self.attempt.place, comment_id, body)

        return await send_once(self.attempt, effect, request, joined=joined)

    async def _before_edit(self, effect: RunEffect) -> tuple[RunEffect, bool]:
        """The comment that is there, read by its id: gone, a person's, already right, or to edit;
        and whether it bears no valid marker.

        A command edits what a person had edited: they asked for it. So does a decision to send it
        again, which also signs anew what bears a bad signature.
        """
        attempt, comment_id = self.attempt, effect.github_id or 0
        comment = await attempt.ports.reader.comment(attempt.place, comment_id)
        if isinstance(comment, Gone):
            return await comment_gone(attempt, effect), False
        resolved = effect.reason == Skip.RESOLVED
        asked = attempt.run.inputs.target_issue is not None or resolved
        judged = judge_comment(attempt, effect, comment, overwrite=asked, sign_anew=resolved)
        return judged, read(comment.body, attempt.ports.keys).signature is not Signature.VALID

    async def _hold_back(self, stopped: RunEffect) -> None:
        """What follows a skipped effect on an issue that is gone is skipped with it."""
        if stopped.evidence is not Evidence.SKIPPED:
            return
        await self.attempt.keep(
            item.model_copy(update={"evidence": stopped.evidence, "reason": stopped.reason})
            for item in self._group(stopped.issue)
            if item.evidence is Evidence.ABSENT
        )


def groups(effects: Iterable[RunEffect]) -> dict[int, list[RunEffect]]:
    """The effects on issues by the issue's number, in the order of the plan."""
    found: dict[int, list[RunEffect]] = {}
    for effect in effects:
        if effect.kind is not EffectKind.SUMMARY:
            found.setdefault(effect.issue, []).append(effect)
    return found


def judge_comment(
    attempt: Attempt,
    effect: RunEffect,
    comment: Comment,
    *,
    overwrite: bool = False,
    sign_anew: bool = False,
) -> RunEffect:
    """What a comment with a known id says of the effect."""
    reading = read(comment.body, attempt.ports.keys)
    if reading.signature is Signature.INVALID and sign_anew:
        return effect
    if reading.signature is Signature.INVALID:
        return conflict(effect, "the bot's comment bears a bad signature", attempt.now)
    if overwrite and (reading.signature is Signature.NONE or reading.edited_by_person):
        return effect
    if reading.signature is Signature.NONE:
        return skipped(effect, Skip.HUMAN_EDITED)
    seen = found(
        comment.id,
        comment.issue,
        comment.author_id,
        comment.body,
        comment.url,
        attempt.ports.keys,
    )
    return adopted(effect, Hit(seen), attempt.now)


def _lets_pass(effect: RunEffect) -> bool:
    """Whether the issue's next effect may follow this one."""
    if effect.evidence is Evidence.SKIPPED:
        word = effect.reason.partition(":")[0]
        return word in (Skip.HUMAN_REMOVED, Skip.HUMAN_EDITED, Skip.HUMAN_LABELLED)
    return effect.evidence is Evidence.CONFIRMED or effect.acknowledged
