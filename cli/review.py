"""What a person has to decide: what is undecided, what was tried, when it was read, what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cli.terminal import at, clean
from ledger.records import EffectRecord
from triage.contract import Evidence, RunEffect, RunRecord
from worker.ports import Effects

_UNDECIDED = (Evidence.CONFLICT, Evidence.UNSETTLED)
_MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Doubt:
    """One undecided effect of a run. ``empty_reads``: when GitHub did not show it."""

    effect: RunEffect
    empty_reads: tuple[datetime, ...]

    def plain(self) -> dict[str, object]:
        """For JSON."""
        effect = self.effect
        return {
            "target": effect.target,
            "kind": effect.kind,
            "evidence": effect.evidence,
            "reason": effect.reason,
            "sends": effect.sends,
            "sent_at": effect.sent_at and effect.sent_at.isoformat(),
            "empty_reads": [read.isoformat() for read in self.empty_reads],
            "read_at": effect.when and effect.when.isoformat(),
            "url": effect.url,
        }


async def doubts_of(run: RunRecord, effects: Effects) -> tuple[Doubt, ...]:
    """Read what the ledger knows of a run's undecided effects."""
    undecided = [effect for effect in run.effects if effect.evidence in _UNDECIDED]
    records = await effects.get([effect.effect_key for effect in undecided])
    return tuple(Doubt(effect, _samples(records.get(effect.effect_key))) for effect in undecided)


def _samples(record: EffectRecord | None) -> tuple[datetime, ...]:
    return record.samples if record is not None else ()


def lines_of(run: RunRecord, doubts: Sequence[Doubt]) -> list[str]:
    """The same for people."""
    zone = run.inputs.policy.schedule.timezone
    lines = [f"why        {clean(run.reason)}"] if run.reason else []
    for doubt in doubts[:_MOST_SHOWN]:
        lines += _lines(doubt, zone)
    if len(doubts) > _MOST_SHOWN:
        lines.append(f"           and {len(doubts) - _MOST_SHOWN} more")
    return [
        *lines,
        "do         look on GitHub whether it is there as planned, then decide; until then the",
        "           run writes nothing more",
        f"planned    retriage show {run.inputs.dedupe_key}",
        f"decide     retriage resolve {run.inputs.dedupe_key} --as done --reason '…'",
    ]


def _lines(doubt: Doubt, zone: str) -> list[str]:
    effect = doubt.effect
    why = f": {clean(effect.reason)}" if effect.reason else ""
    lines = [
        f"undecided  {clean(effect.target)}, {effect.evidence}{why}",
        f"tried      {_tried(effect, zone)}",
        f"read       {_read(doubt, zone)}",
    ]
    return [*lines, f"see        {clean(effect.url)}"] if effect.url else lines


def _tried(effect: RunEffect, zone: str) -> str:
    if effect.sent_at is None:
        return "nothing was sent"
    times = "once," if effect.sends <= 1 else f"{effect.sends} times, first"
    return f"sent {times} {at(effect.sent_at, zone)}"


def _read(doubt: Doubt, zone: str) -> str:
    reads = doubt.empty_reads
    if reads:
        count = "once" if len(reads) == 1 else f"{len(reads)} times"
        return f"{count} without finding it, last {at(reads[-1], zone)}"
    return at(doubt.effect.when, zone) if doubt.effect.when is not None else "not yet"
