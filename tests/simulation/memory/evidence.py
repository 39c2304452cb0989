"""What the scripts on runs and effects share: the translation of ``ledger.evidence`` and of the
prelude in ``ledger.scripts``.
"""

from functools import lru_cache
from typing import Any

from ledger.codec import moment, stamp
from ledger.errors import FrozenRunError, LeaseLost, UnknownRunError
from ledger.records import Holding, Lease, Unclaimed
from tests.simulation.memory.rows import EffectRow, Placed, RunRow
from tests.simulation.memory.server import MemoryServer
from triage.contract import Evidence, RunEffect
from triage.identifiers import FAMILY, DedupeKey, EffectKind, effect_key

_LONG_ADDRESS = 64
"""Bytes of a comment's address that are kept beside a run that is over."""


def remaining(server: MemoryServer, lease: Lease) -> int | Unclaimed:
    """Milliseconds that the lease still lasts, or why it is worth nothing."""
    row = server.lease(lease.dedupe_key)
    if row is None:
        return Unclaimed.LEASE_LOST
    left = row.until - server.millis
    if row.token != lease.token or row.fence != lease.fence or left <= 0:
        return Unclaimed.LEASE_LOST
    if lease.epoch != server.epoch_id:
        return Unclaimed.EPOCH
    return left


def guarded(server: MemoryServer, lease: Lease) -> None:
    """Raise LeaseLost where the lease is gone."""
    if isinstance(remaining(server, lease), Unclaimed):
        raise LeaseLost(lease.dedupe_key)


def unfinished(server: MemoryServer, dedupe_key: str) -> RunRow:
    """A run that is saved and not over. Raises UnknownRunError, FrozenRunError."""
    run = server.run(dedupe_key)
    if run is None:
        raise UnknownRunError(dedupe_key)
    if run.status.final:
        raise FrozenRunError(dedupe_key)
    return run


def let_go(server: MemoryServer, dedupe_key: str) -> None:
    """Give a lease up. Where a claim of this holder is open, that keeps the lock delay, from now
    on."""
    lease, run = server.state.leases[dedupe_key], server.run(dedupe_key)
    ends = 0
    if run is not None and lease.fence in run.claims.values():
        ends = server.millis
    server.state.leases[dedupe_key] = lease._replace(token="", until=ends)


def stored(run: RunRow, key: str) -> tuple[Placed | None, int]:
    """An effect in its run, and how often it was sent."""
    placed = run.effects.get(key)
    return placed, 0 if placed is None else placed.effect.sends


def rounded(effect: RunEffect) -> RunEffect:
    """An effect as it comes back: what was sent has its time in whole milliseconds."""
    if effect.sent_at is None:
        return effect
    return effect.model_copy(update={"sent_at": moment(stamp(effect.sent_at))})


def put(server: MemoryServer, dedupe_key: str, effect: RunEffect) -> Placed:
    """Write an effect into its run, in its place or as the last one."""
    run = server.state.runs[dedupe_key]
    known = run.effects.get(effect.effect_key)
    places = run.places if known else run.places + 1
    placed = Placed(known.place if known else places, effect)
    server.state.runs[dedupe_key] = run._replace(
        effects={**run.effects, effect.effect_key: placed}, places=places
    )
    return placed


def change(server: MemoryServer, key: str, **fields: Any) -> None:
    """Write fields of an effect's record."""
    server.state.effects[key] = server.effect(key)._replace(**fields)


def note_seen(
    server: MemoryServer, key: str, old: EffectRow, effect: RunEffect, repository_id: int | None
) -> None:
    """Of two ids the lower wins, whoever saw it."""
    if effect.github_id is None:
        return
    if old.github_id is None or effect.github_id < old.github_id:
        change(server, key, github_id=effect.github_id, url=effect.url)
    elif effect.github_id == old.github_id and effect.url != "":
        change(server, key, url=effect.url)
    if repository_id is not None:
        server.state.github[repository_id, effect.github_id] = key


def close_claim(server: MemoryServer, dedupe_key: str, key: str) -> None:
    """The claim has its outcome."""
    run = server.run(dedupe_key)
    if run is not None and key in run.claims:
        claims = {other: fence for other, fence in run.claims.items() if other != key}
        server.state.runs[dedupe_key] = run._replace(claims=claims)
    row = server.state.effects.get(key)
    if row is not None and row.claim is not None:
        server.state.effects[key] = row._replace(claim=None)


def share(server: MemoryServer, dedupe_key: str, effect: RunEffect) -> None:
    """What a run's evidence means for the record that all runs share."""
    key = effect.effect_key
    old = server.effect(key)
    mine = old.holder == dedupe_key
    repository_id = parsed_key(dedupe_key).repository_id
    change(server, key, repository_id=repository_id, issue_id=effect.issue_id, kind=effect.kind)
    if effect.issue != 0:
        change(server, key, issue=effect.issue)
    note_seen(server, key, old, effect, repository_id)
    if effect.in_doubt or effect.evidence is Evidence.CONFLICT:
        _hold(server, dedupe_key, old, effect)
        return
    if mine:
        change(server, key, holder=None, holding=None)
        close_claim(server, dedupe_key, key)
    if effect.reason == "resolved":
        change(server, key, pending=False, samples=())
    # Acknowledged by GitHub, or seen there.
    if effect.evidence in (Evidence.CONFIRMED, Evidence.UNSETTLED):
        _note_written(server, dedupe_key, old, effect)


def _hold(server: MemoryServer, dedupe_key: str, old: EffectRow, effect: RunEffect) -> None:
    key, mine = effect.effect_key, old.holder == dedupe_key
    if mine or not old.holder:
        holding = Holding.UNSETTLED if effect.in_doubt else Holding.REVIEW
        change(server, key, holder=dedupe_key, holding=holding)
    # A doubt may still be ended by whoever sent it; what a person must decide may not.
    if mine and not effect.in_doubt:
        close_claim(server, dedupe_key, key)


def _note_written(server: MemoryServer, dedupe_key: str, old: EffectRow, effect: RunEffect) -> None:
    key = effect.effect_key
    change(server, key, pending=False)
    if effect.digest != "":
        change(server, key, digest=effect.digest)
    if effect.sends == 0:
        return
    run = server.run(dedupe_key)
    fence = 0 if run is None else run.snapshot_fence
    if fence >= (old.writer_fence or 0):
        change(server, key, writer=dedupe_key, writer_fence=fence)
    _note_labels(server, dedupe_key, old, effect)


def _note_labels(server: MemoryServer, dedupe_key: str, old: EffectRow, effect: RunEffect) -> None:
    labels = frozenset(effect.labels)
    if effect.kind is EffectKind.UNLABEL:
        where = _labels_key(dedupe_key, effect.issue_id)
        if where in server.state.effects:
            change(server, where, own=server.effect(where).own - labels)
    elif effect.kind is EffectKind.LABELS:
        key = effect.effect_key
        change(server, key, own=server.effect(key).own | (labels - old.removed))


def shrink(server: MemoryServer, key: str) -> None:
    """Take away of an effect that nobody holds what says nothing now, and a comment's long
    address."""
    row = server.effect(key)
    if row.holder is not None or row.kind is None:
        return
    long = row.kind is EffectKind.COMMENT and len((row.url or "").encode()) > _LONG_ADDRESS
    server.state.effects[key] = row._replace(
        tombstone=row.tombstone or None,
        samples=row.samples or None,
        url=None if long else row.url,
    )


parsed_key = lru_cache(maxsize=1024)(DedupeKey.parse)


@lru_cache(maxsize=1024)
def _labels_key(dedupe_key: str, issue_id: int) -> str:
    run = parsed_key(dedupe_key)
    return effect_key(run.repository_id, issue_id, FAMILY[run.job], EffectKind.LABELS)
