"""Runs: ``run:{dedupe_key}``, ``snapshot:…``, ``plan:…`` and the indexes ``runs:…``.

A run is a hash: ``record`` is its JSON without effects, and each effect is a field of its own, so
that an outcome costs the same in a run of one effect and of a hundred. ``claimed`` counts the
claims of this attempt and those that an earlier one left unsettled. Once it is over, ``record`` is
all of it, sealed.

Invariant: a status changes only under the lease. A completed or no-change run never becomes
anything else, and no evidence of it changes. Only such a run expires.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import redis.asyncio

from ledger.codec import packed, packed_for_good, parsed, stamp, text, texts, unpacked
from ledger.connection import answered
from ledger.errors import StateNotSavedError
from ledger.evidence import effects_of, facts
from ledger.memory import Promotion
from ledger.records import Due, Lease
from ledger.reviews import promotion_keys, promotion_of
from ledger.run_scripts import SAVE, SAVE_EFFECTS, SAVE_PLAN, WRITE_ONCE
from ledger.scripts import Script, passed, proof
from ledger.sealing import is_sealed, seal_of, sealed, unsealed
from ledger.timing import LedgerTiming, milliseconds
from triage.contract import RunEffect, RunRecord, Status
from triage.identifiers import JobKey
from triage.plan import Plan
from triage.snapshot import Snapshot, without_bodies

_MOST_OF_A_WINDOW = 1000
"""Runs of one window: retriggers and forced runs."""

_NAMES_AT_ONCE = 1000

_NOT_WHOLE = {
    b"session-lost": "the session that was resumed is shorter than the snapshot says, or gone",
    b"copy-lost": "the attempt's copy of the session does not have as many lines as it was given",
}


def run_key(dedupe_key: str) -> str:
    """Where a run is."""
    return f"run:{dedupe_key}"


def snapshot_key(dedupe_key: str) -> str:
    """Where its snapshot is."""
    return f"snapshot:{dedupe_key}"


def plan_key(dedupe_key: str) -> str:
    """Where its plan is."""
    return f"plan:{dedupe_key}"


def put_together(fields: Mapping[str, str]) -> RunRecord | None:
    """A run from its hash; None where it has never been saved."""
    if "record" not in fields:
        return None
    claimed = {"claimed": int(fields.get("claimed", 0)) > 0}
    if is_sealed(fields["record"]):
        return unsealed(fields["record"]).model_copy(update=claimed)
    parts = {**claimed, "effects": effects_of(fields)}
    return parsed(RunRecord, fields["record"]).model_copy(update=parts)


class Runs:
    """The record of runs. Whatever takes a lease checks it, and raises LeaseLost if it is gone.

    Raises FrozenRunError where a completed or no-change run would change its status or evidence.
    """

    def __init__(self, redis: redis.asyncio.Redis, timing: LedgerTiming) -> None:
        self._redis = redis
        self._timing = timing
        self._retention = milliseconds(timing.retention)
        self._save = Script(redis, SAVE)
        self._save_effects = Script(redis, SAVE_EFFECTS)
        self._save_plan = Script(redis, SAVE_PLAN)
        self._write_once = Script(redis, WRITE_ONCE)

    async def save(self, lease: Lease, run: RunRecord) -> None:
        """Write the run without its effects: new or changed. Indexes follow the status.

        ``run.claimed`` is not written: claims are counted where they are made.
        """
        await self._write(lease, run, ending=False, due={})

    async def settle(self, lease: Lease, run: RunRecord, due: Mapping[Due, datetime]) -> None:
        """The end of an attempt, in one step: status, frozen evidence, what falls due, the lease
        released. ``run.effects`` is not written: ``save_effects`` came before. A run is completed
        only where all its evidence is there: LeaseLost on a server that has lost some of it.

        The same lease may ask again after a lost reply. A run that is completed or no-change is no
        longer due.
        """
        await self._write(lease, run, ending=True, due=due)

    async def _write(
        self, lease: Lease, run: RunRecord, *, ending: bool, due: Mapping[Due, datetime]
    ) -> None:
        key = run.key
        if str(key) != lease.dedupe_key:
            raise ValueError(f"the lease is for {lease.dedupe_key}, the run is {key}")
        scheduled = not key.window.startswith(("comment-", "opened-", "duplicate-"))
        link = run.review.link if run.review is not None else None
        share = link.share if link is not None else None
        options = {
            "key": lease.dedupe_key,
            "status": run.status,
            "created": stamp(run.created_at),
            "repository": run.inputs.repository.lower(),
            "window": _window_key(key.repository_id, key.job, key.window),
            "completes": f"{key.repository_id} {key.job}" if scheduled else "",
            "full_name": run.inputs.repository,
            "force": run.inputs.force,
            "retention": self._retention,
            "cost": run.cost.model_dump(),
            "denials": run.denials,
            "recall": "" if share is None else str(share),
            "broken": link is not None and bool(link.broken),
            "ending": ending,
            "effects": len(run.effects),
            "due": [[str(item), stamp(at)] for item, at in due.items()],
        }
        record = run.model_dump_json(exclude={"effects", "claimed"})
        rest = await self._for_good(run) if run.status.final else ()
        arguments = [*proof(lease), json.dumps(options), record, *rest]
        passed(await self._save(_keys(lease.dedupe_key), arguments), lease.dedupe_key)

    async def _for_good(self, run: RunRecord) -> tuple[bytes, bytes, str]:
        """What is kept of a run that is over: its snapshot without bodies, or nothing; all of the
        run, sealed with the evidence that stands; and what tells whether that stands still."""
        name = str(run.key)
        snapshot = await self.snapshot(name)
        with answered():
            stored: Any = await self._redis.hgetall(run_key(name))
        fields = texts(stored)
        standing = put_together(fields)
        whole = run.model_copy(update={"effects": standing.effects if standing else ()})
        bare = b"" if snapshot is None else packed_for_good(without_bodies(snapshot))
        return bare, sealed(whole), seal_of(fields)

    async def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> Snapshot:
        """Write it once; gives back the one that stands (an earlier one wins)."""
        keys = [_keys(lease.dedupe_key)[0], snapshot_key(lease.dedupe_key)]
        stands = await self._write_once(keys, [*proof(lease), packed(snapshot)])
        return unpacked(Snapshot, _standing(stands, lease))

    async def save_plan(self, lease: Lease, plan: Plan, staged: Promotion | None = None) -> Plan:
        """Write it once, with what the next review needs of this one; gives back the plan that
        stands.

        All of it is written or nothing. Where a plan stands already, nothing is promoted; where
        the state is of a newer snapshot, the plan alone is written. Raises StateNotSavedError where
        the attempt's copy of the session is not whole.
        """
        keys = [_keys(lease.dedupe_key)[0], plan_key(lease.dedupe_key)]
        stands = await self._save_plan(
            [*keys, *promotion_keys(staged)],
            [*proof(lease), packed(plan), *promotion_of(staged, self._timing)],
        )
        return unpacked(Plan, _standing(stands, lease))

    async def snapshot(self, dedupe_key: str) -> Snapshot | None:
        """The frozen input of a run; without its issues' bodies once the run is over."""
        with answered():
            blob = await self._redis.get(snapshot_key(dedupe_key))
        return None if blob is None else unpacked(Snapshot, blob)

    async def plan(self, dedupe_key: str) -> Plan | None:
        """The frozen decisions of a run."""
        with answered():
            blob = await self._redis.get(plan_key(dedupe_key))
        return None if blob is None else unpacked(Plan, blob)

    async def save_effects(self, lease: Lease, effects: Sequence[RunEffect]) -> None:
        """Write evidence into the run, and what follows from it into the shared records.

        Confirmed, absent, skipped: the run no longer holds the effect. Unsettled: it holds it so.
        Conflict: it holds it under review. A GitHub id or address that is given is kept; of two ids
        the lower one. ``sends`` and ``sent_at`` never go back: what was sent stays sent.
        The reason ``resolved`` also ends the doubt about an earlier send.
        """
        if not effects:
            return
        arguments = [*proof(lease), lease.dedupe_key, facts(effects, lease.dedupe_key)]
        passed(await self._save_effects(_keys(lease.dedupe_key)[:2], arguments), lease.dedupe_key)

    async def of_window(self, repository_id: int, job: JobKey, window: str) -> list[RunRecord]:
        """The runs of a window, oldest first."""
        with answered():
            names: Any = await self._redis.zrange(
                _window_key(repository_id, job, window), 0, _MOST_OF_A_WINDOW - 1
            )
        return await self._read(names)

    async def listed(
        self,
        status: Status | None = None,
        repository: str | None = None,
        limit: int = 50,
        *,
        job: JobKey | None = None,
    ) -> list[RunRecord]:
        """Runs, newest first. Those of one ``job`` are found by their names: all newer ones of the
        index are gone through, no record of them is read."""
        index = f"runs:{(repository or '').lower()}:{status or ''}"
        if job is None:
            with answered():
                names: Any = await self._redis.zrevrange(index, 0, limit - 1)
            return await self._read(names)
        return await self._read(await self._names(index, f"{job}:", limit))

    async def _names(self, index: str, prefix: str, limit: int) -> list[bytes]:
        """The newest names of an index that begin so."""
        found: list[bytes] = []
        for start in itertools.count(0, _NAMES_AT_ONCE):
            with answered():
                names: Any = await self._redis.zrevrange(index, start, start + _NAMES_AT_ONCE - 1)
            found += [name for name in names if name.startswith(prefix.encode())]
            if len(names) < _NAMES_AT_ONCE or len(found) >= limit:
                break
        return found[:limit]

    async def _read(self, names: Sequence[bytes]) -> list[RunRecord]:
        """Those that have not expired."""
        with answered():
            async with self._redis.pipeline(transaction=False) as reads:
                for name in names:
                    reads.hgetall(run_key(text(name)))
                hashes = await reads.execute()
        runs = (put_together(texts(fields)) for fields in hashes)
        return [run for run in runs if run is not None]


def _standing(answer: list[bytes], lease: Lease) -> bytes:
    """What stands, as a script that writes once gives it."""
    word, *stands = answer
    if word in _NOT_WHOLE:
        raise StateNotSavedError(_NOT_WHOLE[word])
    passed(word, lease.dedupe_key)
    return stands[0]


def _keys(dedupe_key: str) -> list[str]:
    return [
        f"lease:{dedupe_key}",
        run_key(dedupe_key),
        snapshot_key(dedupe_key),
        plan_key(dedupe_key),
    ]


def _window_key(repository_id: int, job: JobKey, window: str) -> str:
    return f"runs:window:R{repository_id}:{job}:{window}"
