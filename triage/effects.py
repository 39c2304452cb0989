"""From decisions to intended writes, and what an issue's present state makes of them.

Invariant: the order within an issue is comment, own label removed, labels added. The labels take
the issue out of the unsorted: they are the commit, so they come last.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from triage.comment import render
from triage.contract import Evidence, RunEffect, RunInputs, Skip
from triage.identifiers import FAMILY, DedupeKey, EffectKind, Mode, effect_key
from triage.marker import body_digest
from triage.plan import Decision, Plan
from triage.policy import JobPolicy
from triage.snapshot import Issue, Snapshot


class Known(Protocol):
    """What the ledger's shared record tells of an effect."""

    @property
    def github_id(self) -> int | None:
        """The comment's or issue's id, where it is known."""

    @property
    def tombstone(self) -> bool:
        """A person deleted the comment."""

    @property
    def own_labels(self) -> tuple[str, ...]:
        """Labels that the bot added and nobody removed."""

    @property
    def removed_labels(self) -> tuple[str, ...]:
        """Labels that a person removed."""


def derive(plan: Plan, snapshot: Snapshot, inputs: RunInputs) -> tuple[RunEffect, ...]:
    """The intended writes of a plan, in the order in which they are sent.

    Observe mode derives what comment mode would write: its report shows the exact writes.
    """
    labels_only = {issue.id for issue in snapshot.issues if issue.labels_only}
    effects: list[RunEffect] = []
    for decision in plan.decisions:
        comments = inputs.mode is not Mode.LABEL and decision.issue_id not in labels_only
        effects += _of_issue(decision, inputs, comments=comments)
    return tuple(effects)


def _of_issue(decision: Decision, inputs: RunInputs, *, comments: bool) -> list[RunEffect]:
    run = DedupeKey.parse(inputs.dedupe_key)

    def effect(kind: EffectKind, **fields: object) -> RunEffect:
        key = effect_key(inputs.repository_id, decision.issue_id, FAMILY[run.job], kind)
        return RunEffect.model_validate(
            {
                "effect_key": key,
                "kind": kind,
                "issue": decision.number,
                "issue_id": decision.issue_id,
                **fields,
            }
        )

    effects = []
    if comments:
        effects.append(effect(EffectKind.COMMENT, digest=body_digest(render(decision))))
    rivals = _rivals(decision.labels, inputs.triage)
    if rivals and (inputs.target_issue is not None or run.forced is not None):
        effects.append(effect(EffectKind.UNLABEL, labels=rivals))
    effects.append(effect(EffectKind.LABELS, labels=decision.labels))
    return effects


def _rivals(labels: Iterable[str], policy: JobPolicy) -> tuple[str, ...]:
    """Labels that exclude one of these."""
    chosen = set(labels)
    rivals = {name for group in policy.exclusive if chosen & set(group) for name in group}
    return tuple(name for name in policy.labels if name in rivals - chosen)


def judge(
    effects: Iterable[RunEffect],
    issue: Issue | Skip,
    known: Mapping[str, Known],
    repository_labels: frozenset[str],
    inputs: RunInputs,
) -> list[RunEffect]:
    """What the issue's present state makes of its effects that are to be sent.

    In place already: confirmed. Not wanted any more: skipped, with the reason. Otherwise as they
    are, with the labels that are still to be sent. ``issue`` is a Skip where it is gone. A comment
    whose absence was proved after a send stays wanted.
    """
    effects = list(effects)
    own = {label for record in known.values() for label in record.own_labels} - _put_back(effects)
    sent = any(effect.sends for effect in effects)
    why = issue if isinstance(issue, Skip) else _unwanted(issue, own, inputs, sent=sent)
    judged: list[RunEffect] = []
    for effect in effects:
        if effect.evidence is not Evidence.ABSENT or (effect.sends and effect.kind.creates):
            judged.append(effect)
        elif why is not None:
            judged.append(skipped(effect, why))
        elif isinstance(issue, Issue):
            judged.append(_judged(effect, issue, known, repository_labels, inputs, own))
    return judged


def _put_back(effects: Iterable[RunEffect]) -> set[str]:
    """Labels that the bot had added, and a person after it: they are the person's."""
    kept = [e for e in effects if e.kind is EffectKind.UNLABEL and e.reason == Skip.HUMAN_LABELLED]
    return {label for effect in kept for label in effect.labels}


def _unwanted(issue: Issue, own: set[str], inputs: RunInputs, *, sent: bool) -> Skip | None:
    """Why nothing should be written on an issue, or None."""
    if issue.locked:
        return Skip.LOCKED
    if inputs.target_issue is not None or sent:
        return None
    if issue.state != "open":
        return Skip.CLOSED
    foreign = set(issue.labels) - own
    return Skip.HUMAN_LABELLED if foreign and not inputs.force else None


def _judged(
    effect: RunEffect,
    issue: Issue,
    known: Mapping[str, Known],
    repository_labels: frozenset[str],
    inputs: RunInputs,
    own: set[str],
) -> RunEffect:
    record = known.get(effect.effect_key)
    match effect.kind:
        case EffectKind.COMMENT:
            gone = record is not None and record.tombstone and not inputs.force
            return skipped(effect, Skip.HUMAN_REMOVED) if gone else effect
        case EffectKind.UNLABEL:
            mine = tuple(name for name in effect.labels if name in own and name in issue.labels)
            if not mine:
                return confirmed(effect)
            return effect.model_copy(update={"labels": mine[:1]})
        case EffectKind.LABELS:
            return _labels_to_send(effect, issue, known, repository_labels, inputs, own)
        case _:
            return effect


def _labels_to_send(
    effect: RunEffect,
    issue: Issue,
    known: Mapping[str, Known],
    repository_labels: frozenset[str],
    inputs: RunInputs,
    own: set[str],
) -> RunEffect:
    """The labels that are missing, allowed by people's corrections, and exist in the repository.

    A label that the bot had added and that is not there was removed by a person, even where no
    webhook told so.
    """
    missing = [name for name in effect.labels if name not in issue.labels]
    if not missing:
        return confirmed(effect)
    removed = {name for record in known.values() for name in record.removed_labels}
    if not inputs.force:
        missing = [name for name in missing if name not in removed and name not in own]
    if not missing:
        return skipped(effect, Skip.HUMAN_REMOVED)
    theirs = set(issue.labels) - own
    missing = [name for name in missing if not theirs & set(_rivals([name], inputs.triage))]
    if not missing:
        return skipped(effect, Skip.HUMAN_LABELLED)
    sendable = tuple(name for name in missing if name in repository_labels)
    if not sendable:
        return skipped(effect, Skip.REFUSED, f"the repository has no label {missing[0]!r}")
    return effect.model_copy(update={"labels": sendable})


def skipped(effect: RunEffect, why: Skip, detail: str = "") -> RunEffect:
    """The effect, not wanted any more."""
    reason = f"{why}: {detail}" if detail else str(why)
    return effect.model_copy(update={"evidence": Evidence.SKIPPED, "reason": reason, "open": False})


def confirmed(effect: RunEffect) -> RunEffect:
    """The effect, seen on GitHub."""
    return effect.model_copy(update={"evidence": Evidence.CONFIRMED, "reason": "", "open": False})
