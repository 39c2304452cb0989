"""Effects as all runs share them: the translation of ``ledger.effects`` and its scripts."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from ledger.codec import moment, stamp
from ledger.errors import LedgerUnavailableError
from ledger.records import Claim, EffectRecord, Holding, Lease, Unclaimed
from ledger.timing import LedgerTiming, milliseconds
from tests.simulation.memory.counters import MemoryCounters
from tests.simulation.memory.evidence import (
    change,
    close_claim,
    note_seen,
    parsed_key,
    put,
    remaining,
    rounded,
    share,
    stored,
    unfinished,
)
from tests.simulation.memory.rows import EffectRow, OpenClaim, RunRow
from tests.simulation.memory.server import MemoryServer
from triage.contract import Evidence, RunEffect
from triage.identifiers import EffectKind
from triage.readback import SAMPLES


class MemoryEffects:
    """Effects as all runs share them.

    ``monotonic`` must be the clock on which the writer tests a claim's deadline, in seconds.
    """

    def __init__(
        self, server: MemoryServer, timing: LedgerTiming, monotonic: Callable[[], float]
    ) -> None:
        self._server = server
        self._monotonic = monotonic
        self._margin = timing.margin.total_seconds()
        self._need = milliseconds(timing.request + timing.margin)
        self._absence_window = milliseconds(timing.absence_window)
        self._counters = MemoryCounters(server)

    async def get(self, keys: Sequence[str]) -> dict[str, EffectRecord]:
        """Those that are known, by key."""
        if not keys:
            return {}
        effects, epoch = self._server.state.effects, self._server.epoch_id
        return {key: _record(key, effects[key], epoch) for key in keys if key in effects}

    async def claim(
        self, lease: Lease, effect: RunEffect, *, snapshot_fence: int, resend: bool, operation: str
    ) -> Claim | Unclaimed:
        """The one claim before each request. FrozenRunError, UnknownRunError: the run is over, or
        was never saved."""
        deadline = self._monotonic() + self._margin
        try:
            answer = self._claim(lease, effect, snapshot_fence, resend, operation)
        except LedgerUnavailableError:
            return Unclaimed.UNSURE
        if isinstance(answer, Unclaimed):
            return answer
        return Claim(lease, answer, operation, deadline)

    def _claim(
        self, lease: Lease, effect: RunEffect, snapshot_fence: int, resend: bool, operation: str
    ) -> RunEffect | Unclaimed:
        server, run_key, key = self._server, lease.dedupe_key, effect.effect_key
        refused = self._not_now(lease)
        if refused is not None:
            return refused
        run = unfinished(server, run_key)
        old = server.effect(key)
        placed, _ = stored(run, key)
        if old.holder == run_key and _is(old.claim, operation) and placed is not None:
            return placed.effect
        if old.withdrawn == operation:
            return Unclaimed.UNSURE
        refused = self._not_this(run, old, effect, snapshot_fence, resend)
        if refused is not None:
            return refused
        return self._record_intent(lease, effect, snapshot_fence, operation)

    def _not_now(self, lease: Lease) -> Unclaimed | None:
        """Why this lease may claim nothing at all."""
        server = self._server
        left = remaining(server, lease)
        if isinstance(left, Unclaimed):
            return left
        epoch, now = server.epoch, server.millis
        if epoch is None or epoch.replid != server.replid:
            return Unclaimed.EPOCH
        if now < epoch.quiet_until:
            return Unclaimed.QUIET
        if left <= self._need:
            return Unclaimed.LEASE_TOO_SHORT
        return None

    def _not_this(
        self, run: RunRow, old: EffectRow, effect: RunEffect, snapshot_fence: int, resend: bool
    ) -> Unclaimed | None:
        """Why this run may not send this effect."""
        mine = old.holder == run.record.inputs.dedupe_key
        if old.holder and not mine:
            return Unclaimed.BLOCKED
        if (old.writer_fence or 0) > snapshot_fence:
            return Unclaimed.SUPERSEDED
        if not run.force and (old.tombstone or _removed(old, effect)):
            return Unclaimed.TOMBSTONE
        if mine and not resend:
            return Unclaimed.UNPROVED
        if not _creates(effect):
            return None
        # It is there already, or an earlier request may still make it appear.
        if old.github_id is not None:
            return Unclaimed.UNPROVED
        if old.pending and not self._proved_absent(old.samples or ()):
            return Unclaimed.UNPROVED
        return None

    def _proved_absent(self, samples: tuple[int, ...]) -> bool:
        return len(samples) >= SAMPLES and samples[-1] - samples[0] >= self._absence_window

    def _record_intent(
        self, lease: Lease, effect: RunEffect, snapshot_fence: int, operation: str
    ) -> RunEffect:
        server, run_key, key = self._server, lease.dedupe_key, effect.effect_key
        old, before, now = server.effect(key), server.state.runs[run_key], server.millis
        placed, sends = stored(before, key)
        first = None if placed is None else placed.effect.sent_at
        intent = {"evidence": Evidence.UNSETTLED, "open": True, "reason": "", "sends": sends + 1}
        sending = effect.model_copy(update={**intent, "sent_at": first or moment(now)})
        unwanted = _removed(old, effect)
        written = put(server, run_key, sending)
        run = server.state.runs[run_key]
        server.state.runs[run_key] = run._replace(
            claimed=run.claimed + 1,
            snapshot_fence=snapshot_fence,
            claims={**run.claims, key: lease.fence},
        )
        change(
            server,
            key,
            repository_id=parsed_key(run_key).repository_id,
            issue_id=effect.issue_id,
            kind=effect.kind,
            holder=run_key,
            holding=Holding.CLAIMED,
            claim=OpenClaim(
                operation=operation,
                placed=written,
                undo_placed=placed,
                undo_holding=old.holding if old.holder == run_key else None,
                undo_samples=old.samples or (),
                undo_pending=old.pending,
                undo_tombstone=bool(old.tombstone),
                undo_removed=unwanted,
            ),
            claim_fence=lease.fence,
            claimed_at=now,
            intended=effect.digest,
            sends=(old.sends or 0) + 1,
            samples=(),
            tombstone=False,
            pending=old.pending or _creates(effect),
            removed=old.removed - unwanted,
        )
        if effect.issue != 0:
            change(server, key, issue=effect.issue)
        return sending

    async def stands(self, effect_key: str, operation: str) -> bool:
        """Whether a claim was recorded and is open: for whoever only wants to know."""
        return _is(self._server.effect(effect_key).claim, operation)

    async def acknowledge(self, claim: Claim, effect: RunEffect) -> None:
        """Record the outcome of a claimed request, with or without a live lease."""
        server, run_key, key = self._server, claim.lease.dedupe_key, effect.effect_key
        old, repository_id = server.effect(key), parsed_key(run_key).repository_id
        if not _is(old.claim, claim.operation):
            # A successor settled it meanwhile; an id that GitHub gave is true all the same.
            note_seen(server, key, old, effect, repository_id)
            return
        run = server.run(run_key)
        if run is None or run.status.final:
            note_seen(server, key, old, effect, repository_id)
            change(server, key, holder=None, holding=None)
            close_claim(server, run_key, key)
            return
        _, sends = stored(run, key)
        put(server, run_key, rounded(effect))
        # A request that was refused is no send: the caller counts it back.
        change(server, key, sends=(old.sends or 0) + effect.sends - sends)
        share(server, run_key, effect)
        close_claim(server, run_key, key)
        if not effect.in_doubt:
            change(server, key, pending=False)

    async def withdraw(self, claim: Claim) -> None:
        """Undo a claim whose request was certainly not sent, or that was UNSURE."""
        server, run_key, key = self._server, claim.lease.dedupe_key, claim.effect.effect_key
        old, run = server.effect(key), server.run(run_key)
        made = old.claim
        if made is None or not _is(made, claim.operation):
            # Its script may still be on its way.
            change(server, key, withdrawn=claim.operation)
            return
        # Where a successor wrote evidence meanwhile, that stands.
        if run is not None and not run.over and run.effects.get(key) == made.placed:
            effects = {name: placed for name, placed in run.effects.items() if name != key}
            if made.undo_placed is not None:
                effects[key] = made.undo_placed
            claimed = max(run.claimed - 1, 0)
            server.state.runs[run_key] = run._replace(effects=effects, claimed=claimed)
        change(
            server,
            key,
            sends=(old.sends or 0) - 1,
            samples=made.undo_samples,
            pending=made.undo_pending,
            tombstone=made.undo_tombstone,
            holder=old.holder if made.undo_holding else None,
            holding=made.undo_holding,
            removed=old.removed | made.undo_removed,
        )
        close_claim(server, run_key, key)

    async def add_sample(self, effect_key: str, at: datetime) -> tuple[datetime, ...]:
        """Add the time of an empty read; gives all of them since the last send."""
        samples = self._server.effect(effect_key).samples or ()
        if stamp(at) not in samples:
            samples = tuple(sorted((*samples, stamp(at))))
            change(self._server, effect_key, samples=samples)
        return tuple(moment(sample) for sample in samples)

    async def note_hit(
        self, effect_key: str, github_id: int, url: str, digest: str, issue: int = 0
    ) -> None:
        """Somebody saw the effect on GitHub. Of two ids the lower one is kept."""
        server = self._server
        old = server.effect(effect_key)
        seen = RunEffect(
            effect_key=effect_key,
            kind=EffectKind.COMMENT,
            issue=issue,
            issue_id=0,
            github_id=github_id,
            url=url,
        )
        note_seen(server, effect_key, old, seen, old.repository_id)
        if server.effect(effect_key).github_id == github_id:
            if digest != "":
                change(server, effect_key, digest=digest)
            if issue != 0:
                change(server, effect_key, issue=issue)

    async def note_removed_label(self, effect_key: str, label: str) -> None:
        """A person removed a label that the bot had added. The key is the ``labels`` effect's."""
        old = self._server.effect(effect_key)
        change(self._server, effect_key, own=old.own - {label}, removed=old.removed | {label})

    async def note_tombstone(self, effect_key: str) -> None:
        """A person deleted the bot's comment: its id is forgotten, the fact is kept."""
        change(self._server, effect_key, tombstone=True, github_id=None, url=None, digest=None)

    async def by_github_id(self, repository_id: int, github_id: int) -> EffectRecord | None:
        """The effect whose comment or issue has this id."""
        found = self._server.state.github.get((repository_id, github_id))
        return None if found is None else (await self.get([found])).get(found)

    async def adopt(self, record: EffectRecord) -> None:
        """Write a record that was rebuilt from GitHub; what the ledger already knows stands."""
        server, key = self._server, record.effect_key
        old = server.effect(key)
        rebuilt = {
            name: value for name, value in _fields(record).items() if getattr(old, name) is None
        }
        own, removed = old.own | set(record.own_labels), old.removed | set(record.removed_labels)
        change(server, key, **rebuilt, own=own, removed=removed)
        if record.looked_up and server.epoch_id:
            change(server, key, looked_up=server.epoch_id)
        row = server.effect(key)
        if row.github_id is not None and row.repository_id is not None:
            server.state.github[row.repository_id, row.github_id] = key

    async def incident(self, kind: str, detail: str) -> None:
        """Count an incident, and keep its line."""
        await self._counters.incident(kind, detail)


def _is(claim: OpenClaim | None, operation: str) -> bool:
    return claim is not None and claim.operation == operation


def _creates(effect: RunEffect) -> bool:
    return effect.kind.creates and effect.github_id is None


def _removed(old: EffectRow, effect: RunEffect) -> frozenset[str]:
    """Labels of the effect that a person removed."""
    if effect.kind is not EffectKind.LABELS:
        return frozenset()
    return old.removed.intersection(effect.labels)


def _record(key: str, row: EffectRow, epoch: str) -> EffectRecord:
    return EffectRecord(
        effect_key=key,
        repository_id=row.repository_id or 0,
        issue_id=row.issue_id or 0,
        issue=row.issue or 0,
        kind=row.kind or EffectKind.COMMENT,
        github_id=row.github_id,
        url=row.url or "",
        digest=row.digest or "",
        holder=row.holder or "",
        holding=row.holding,
        claim_fence=row.claim_fence or 0,
        claimed_at=moment(row.claimed_at) if row.claimed_at else None,
        sends=row.sends or 0,
        samples=tuple(moment(sample) for sample in row.samples or ()),
        writer=row.writer or "",
        writer_fence=row.writer_fence or 0,
        tombstone=bool(row.tombstone),
        own_labels=tuple(sorted(row.own)),
        removed_labels=tuple(sorted(row.removed)),
        looked_up=bool(epoch) and row.looked_up == epoch,
    )


def _fields(record: EffectRecord) -> dict[str, Any]:
    """A rebuilt record as the row holds it. Nobody holds it, and no claim of it is open."""
    numbers = ("repository_id", "issue_id", "issue", "claim_fence", "sends", "writer_fence")
    fields = {name: getattr(record, name) for name in numbers if getattr(record, name)}
    fields["kind"] = record.kind
    if record.github_id is not None:
        fields |= {"github_id": record.github_id, "url": record.url, "digest": record.digest}
    if record.writer:
        fields["writer"] = record.writer
    if record.samples:
        fields["samples"] = tuple(stamp(at) for at in record.samples)
    if record.tombstone:
        fields["tombstone"] = True
    return fields
