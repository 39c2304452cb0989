"""The writing of a run: each issue's effects in their order, against GitHub's present state.

Invariant: an issue's labels are sent only once its comment is settled or acknowledged, and a label
that the repository does not have now is never sent.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby

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
from worker.stages.intake import as_seen
from worker.stages.lookup import look_up
from worker.stages.sending import GONE, StopSending, conflict, send_once

REFRESH = timedelta(seconds=60)
"""How old the repository's labels and the changes of its issues may be when something is sent."""

SKEW = timedelta(minutes=5)
"""How far listings with ``since`` reach back: GitHub's clock is not ours."""

BREAKER = 3
"""Unknown outcomes in a row after which an attempt stops writing."""


class Writing:
    """The state of GitHub that the writing of one attempt goes by, refreshed as it goes."""

    def __init__(self, attempt: Attempt, snapshot: Snapshot, plan: Plan) -> None:
        self.attempt = attempt
        self.snapshot = snapshot
        self.decisions = {decision.issue_id: decision for decision in plan.decisions}
        self.issues: dict[int, Issue | Skip] = {
            issue.number: as_seen(issue, snapshot) for issue in snapshot.issues
        }
        self.labels: frozenset[str] = frozenset()
        self.read_at: datetime | None = None
        self.unknown_in_a_row = 0

    async def refresh(self) -> None:
        """Read the repository's labels, and what changed in its issues, unless that is fresh."""
        now = self.attempt.now
        if self.read_at is not None and now - self.read_at < REFRESH:
            return
        reader, place = self.attempt.ports.reader, self.attempt.place
        self.labels = await reader.labels(place)
        target = self.attempt.run.inputs.target_issue
        if target is not None:
            issue = await reader.issue(place, target)
            self.issues[target] = GONE[issue] if isinstance(issue, Gone) else issue
        else:
            since = (self.read_at or self.snapshot.observed_at) - SKEW
            for issue in await reader.issues(place, state="all", since=since):
                if issue.number in self.issues:
                    self.issues[issue.number] = issue
        self.read_at = now

    def groups(self) -> Iterator[tuple[int, list[RunEffect]]]:
        """The effects on issues, issue by issue, in the order of the plan."""
        on_issues = [e for e in self.attempt.effects.values() if e.kind is not EffectKind.SUMMARY]
        for number, effects in groupby(on_issues, key=lambda effect: effect.issue):
            yield number, list(effects)

    async def write_issue(self, number: int, effects: list[RunEffect]) -> None:
        """Send what is wanted on one issue. Raises StopSending."""
        if not any(effect.evidence is Evidence.ABSENT for effect in effects):
            return
        await self.refresh()
        issue = self.issues[number]
        if isinstance(issue, Issue):
            await look_up(self.attempt, issue, effects)
        records = self.attempt.records
        known = {e.effect_key: records[e.effect_key] for e in effects if e.effect_key in records}
        inputs = self.attempt.run.inputs
        await self.attempt.keep(judge(effects, issue, known, self.labels, inputs))
        for planned in effects:
            effect = self.attempt.effects[planned.effect_key]
            if effect.evidence is Evidence.ABSENT:
                effect = await self._send(effect)
            if not _lets_pass(effect):
                await self._hold_back(effects, effect)
                return

    async def _send(self, effect: RunEffect) -> RunEffect:
        match effect.kind:
            case EffectKind.COMMENT:
                effect = await self._comment(effect, self.decisions[effect.issue_id])
            case EffectKind.UNLABEL:
                effect = await self._unlabel(effect)
            case _:
                effect = await send_once(self.attempt, effect, self._add_labels)
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
        ports, place = self.attempt.ports, self.attempt.place
        body = stamp(
            render(decision),
            effect_key=effect.effect_key,
            run=self.attempt.lease.dedupe_key,
            keys=ports.keys,
        )
        record = self.attempt.records.get(effect.effect_key)
        known = effect.github_id or (record.github_id if record else None)
        if known is None:

            async def create(claim: Claim) -> Outcome:
                return await ports.writer.create_comment(claim, place, effect.issue, body)

            return await send_once(self.attempt, effect, create)
        effect = await self._before_edit(effect.model_copy(update={"github_id": known}))
        await self.attempt.keep([effect])
        if effect.evidence is not Evidence.ABSENT:
            return effect

        async def edit(claim: Claim) -> Outcome:
            return await ports.writer.edit_comment(claim, place, known, body)

        return await send_once(self.attempt, effect, edit)

    async def _before_edit(self, effect: RunEffect) -> RunEffect:
        """The comment that is there, read by its id: gone, a person's, already right, or to edit.

        A command edits what a person had edited: they asked for it.
        """
        attempt, comment_id = self.attempt, effect.github_id or 0
        comment = await attempt.ports.reader.comment(attempt.place, comment_id)
        if isinstance(comment, Gone):
            return skipped(effect, Skip.HUMAN_REMOVED)
        commanded = attempt.run.inputs.target_issue is not None
        return judge_comment(attempt, effect, comment, overwrite=commanded)

    async def _hold_back(self, effects: list[RunEffect], stopped: RunEffect) -> None:
        """What follows a skipped comment on an issue that is gone is skipped with it."""
        if stopped.evidence is not Evidence.SKIPPED:
            return
        rest = [self.attempt.effects[effect.effect_key] for effect in effects]
        await self.attempt.keep(
            item.model_copy(update={"evidence": stopped.evidence, "reason": stopped.reason})
            for item in rest
            if item.evidence is Evidence.ABSENT
        )


def judge_comment(
    attempt: Attempt, effect: RunEffect, comment: Comment, *, overwrite: bool = False
) -> RunEffect:
    """What a comment with a known id says of the effect."""
    reading = read(comment.body, attempt.ports.keys)
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
