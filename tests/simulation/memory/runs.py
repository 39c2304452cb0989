"""The record of runs: the translation of ``ledger.runs`` and ``ledger.run_scripts``."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from ledger.codec import stamp
from ledger.errors import FrozenRunError, LeaseLost
from ledger.memory import Promotion
from ledger.records import Due, DueKind, Lease
from ledger.timing import LedgerTiming, milliseconds
from tests.simulation.memory.due import first_of, in_order
from tests.simulation.memory.evidence import (
    guarded,
    let_go,
    parsed_key,
    put,
    rounded,
    share,
    shrink,
    stored,
    unfinished,
)
from tests.simulation.memory.reviews import promote, require_whole
from tests.simulation.memory.rows import Kept, Model, Placed, RunRow, sealed
from tests.simulation.memory.server import MemoryServer
from triage.contract import Evidence, RunEffect, RunRecord, Status
from triage.identifiers import JobKey
from triage.plan import Plan
from triage.snapshot import Snapshot, without_bodies

_MOST_OF_A_WINDOW = 1000
_SWEPT_AT_ONCE = 10


def put_together(run: RunRow) -> RunRecord:
    """A run as it is read."""
    placed = sorted(run.effects.values())
    effects = tuple(item.effect for item in placed)
    return run.record.model_copy(update={"claimed": run.claimed > 0, "effects": effects})


class MemoryRuns:
    """The record of runs. Whatever takes a lease checks it, and raises LeaseLost if it is gone."""

    def __init__(self, server: MemoryServer, timing: LedgerTiming) -> None:
        self._server = server
        self._timing = timing
        self._retention = milliseconds(timing.retention)

    async def save(self, lease: Lease, run: RunRecord) -> None:
        """Write the run without its effects: new or changed. Indexes follow the status."""
        _fitting(lease, run)
        guarded(self._server, lease)
        self._write(lease.dedupe_key, run)
        self._seal(lease.dedupe_key)

    async def settle(self, lease: Lease, run: RunRecord, due: Mapping[Due, datetime]) -> None:
        """The end of an attempt, in one step."""
        server, key = self._server, lease.dedupe_key
        _fitting(lease, run)
        before = server.run(key)
        if before is not None and before.settled == lease.token:
            return
        guarded(server, lease)
        row = self._write(key, run)
        unsettled = 0 if row.over else sum(map(_is_unsettled, row.effects.values()))
        server.state.runs[key] = row._replace(settled=lease.token, claimed=unsettled)
        self._count(f"runs:{run.status}", 1)
        server.state.due.pop(str(Due(DueKind.CONTINUE, key)), None)
        server.state.due.update({str(item): stamp(at) for item, at in due.items()})
        self._seal(key)
        let_go(server, key)
        self._forget_expired()

    def _write(self, key: str, run: RunRecord) -> RunRow:
        """Record, indexes, cost; and what follows where the run is over now."""
        server, state = self._server, self._server.state
        before = server.run(key)
        old = None if before is None else before.status
        if old is not None and old.final and old is not run.status:
            raise FrozenRunError(key)
        if run.status.final and old is not run.status and not _is_whole(before, run):
            raise LeaseLost(key)
        record = sealed(run.model_copy(update={"effects": (), "claimed": False}))
        row = before or RunRow(record, run.status, run.inputs.force)
        self._index(key, run, old)
        row = row._replace(record=record, status=run.status, force=run.inputs.force)
        row = self._count_agent(self._count_cost(row, run), run)
        state.runs[key] = row
        if run.status.final and old is not run.status:
            self._strip(key)
            self._finish(key, run)
        return state.runs[key]

    def _index(self, key: str, run: RunRecord, old: Status | None) -> None:
        created = stamp(run.created_at)
        if old is None:
            for name in (*_indexes(run, ""), _window_of(run)):
                self._enter(name, key, created)
        if old is run.status:
            return
        if old is not None:
            for name in _indexes(run, old):
                self._leave(name, key)
        for name in _indexes(run, run.status):
            self._enter(name, key, created)

    def _enter(self, name: str, key: str, created: int) -> None:
        indexes = self._server.state.indexes
        indexes[name] = {**indexes.get(name, {}), key: created}

    def _leave(self, name: str, key: str) -> None:
        indexes = self._server.state.indexes
        indexes[name] = {other: at for other, at in indexes.get(name, {}).items() if other != key}

    def _count_cost(self, row: RunRow, run: RunRecord) -> RunRow:
        spent = run.cost.__dict__
        for name, value in spent.items():
            before = row.cost.get(name, 0)
            if value != before:
                self._count(f"cost:{name}", value - before)
        return row._replace(cost=dict(spent))

    def _count_agent(self, row: RunRow, run: RunRecord) -> RunRow:
        """What it was denied, and once an answer that was not continuous."""
        if run.denials != row.denials:
            self._count("denials", run.denials - row.denials)
        broken = run.review is not None and run.review.link is not None and run.review.link.broken
        if broken and not row.broken:
            self._count("links:broken", 1)
        return row._replace(denials=run.denials, broken=row.broken or bool(broken))

    def _count(self, name: str, number: float) -> None:
        counters = self._server.state.counters
        counters[name] = counters.get(name, 0) + number

    def _strip(self, key: str) -> None:
        """A run that is over keeps its snapshot without the bodies."""
        snapshots = self._server.state.snapshots
        kept = self._server.living(snapshots.get(key))
        if kept is not None:
            snapshots[key] = Kept(sealed(without_bodies(kept)))

    def _finish(self, key: str, run: RunRecord) -> None:
        """A run that is over: it expires, and the indexes forget it then."""
        server, state, now = self._server, self._server.state, self._server.millis
        expires = now + self._retention
        state.runs[key] = state.runs[key]._replace(expires=expires)
        snapshot, plan = (
            server.living(state.snapshots.get(key)),
            server.living(state.plans.get(key)),
        )
        if snapshot is not None:
            state.snapshots[key] = Kept(snapshot, expires)
        if plan is not None:
            state.plans[key] = Kept(plan, expires)
        everywhere = (_window_of(run), *_indexes(run, ""), *_indexes(run, run.status))
        state.expiring[key, everywhere] = expires
        identity = parsed_key(key)
        if not identity.window.startswith(("comment-", "opened-", "duplicate-")):
            place = f"{identity.repository_id} {identity.job}"
            state.completed[place] = (now, run.inputs.repository)
            link = run.review.link if run.review is not None else None
            if link is not None and link.share is not None:
                state.recalled[place] = (link.share, run.inputs.repository)
        effects = [placed.effect for placed in state.runs[key].effects.values()]
        for evidence in Evidence:
            number = sum(effect.evidence is evidence for effect in effects)
            self._count(f"effects:{evidence}", number)

    def _seal(self, key: str) -> None:
        """The evidence of a run that is over is frozen, and what all runs know of its effects is
        kept without what says nothing now."""
        row = self._server.state.runs[key]
        if not row.status.final or row.over:
            return
        self._server.state.runs[key] = row._replace(over=True)
        for effect_key in row.effects:
            shrink(self._server, effect_key)

    def _forget_expired(self) -> None:
        server, expiring = self._server, self._server.state.expiring
        over = sorted((at, trace) for trace, at in expiring.items() if at <= server.millis)
        for _, (key, everywhere) in over[:_SWEPT_AT_ONCE]:
            for name in everywhere:
                self._leave(name, key)
            server.state.leases.pop(key, None)
            del expiring[key, everywhere]

    async def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> Snapshot:
        """Write it once; gives back the one that stands (an earlier one wins)."""
        return self._once(lease, self._server.state.snapshots, snapshot)

    async def save_plan(self, lease: Lease, plan: Plan, staged: Promotion | None = None) -> Plan:
        """Write it once, with what the next review needs of this one, all or nothing."""
        server, key = self._server, lease.dedupe_key
        guarded(server, lease)
        if staged is not None and server.living(server.state.plans.get(key)) is None:
            require_whole(server, staged)
            promote(server, staged, self._timing)
        return self._once(lease, server.state.plans, plan)

    def _once(self, lease: Lease, table: dict[str, Kept[Model]], model: Model) -> Model:
        guarded(self._server, lease)
        stands = self._server.living(table.get(lease.dedupe_key))
        if stands is None:
            table[lease.dedupe_key] = Kept(sealed(model))
        return table[lease.dedupe_key].value

    async def snapshot(self, dedupe_key: str) -> Snapshot | None:
        """The frozen input of a run; without its issues' bodies once the run is over."""
        return self._server.living(self._server.state.snapshots.get(dedupe_key))

    async def plan(self, dedupe_key: str) -> Plan | None:
        """The frozen decisions of a run."""
        return self._server.living(self._server.state.plans.get(dedupe_key))

    async def save_effects(self, lease: Lease, effects: Sequence[RunEffect]) -> None:
        """Write evidence into the run, and what follows from it into the shared records."""
        if not effects:
            return
        server, key = self._server, lease.dedupe_key
        guarded(server, lease)
        unfinished(server, key)
        for given in effects:
            effect = rounded(given)
            placed, sends = stored(server.state.runs[key], effect.effect_key)
            # What was sent stays sent, whatever an older copy says, until a person decides.
            if effect.reason != "resolved":
                first = None if placed is None else placed.effect.sent_at
                effect = effect.model_copy(
                    update={
                        "sends": max(sends, effect.sends),
                        "sent_at": first or effect.sent_at,
                    }
                )
            put(server, key, effect)
            share(server, key, effect)

    async def of_window(self, repository_id: int, job: JobKey, window: str) -> list[RunRecord]:
        """The runs of a window, oldest first."""
        index = self._server.state.indexes.get(_window_key(repository_id, job, window), {})
        return self._read(in_order(index)[:_MOST_OF_A_WINDOW])

    async def listed(
        self,
        status: Status | None = None,
        repository: str | None = None,
        limit: int = 50,
        *,
        job: JobKey | None = None,
    ) -> list[RunRecord]:
        """Runs, newest first."""
        name = f"runs:{(repository or '').lower()}:{status or ''}"
        index = self._server.state.indexes.get(name, {})
        names = [key for key in in_order(index)[::-1] if job is None or parsed_key(key).job is job]
        return self._read(first_of(names, limit))

    def _read(self, keys: Sequence[str]) -> list[RunRecord]:
        """Those that have not expired."""
        rows = (self._server.run(key) for key in keys)
        return [put_together(row) for row in rows if row is not None]


def _fitting(lease: Lease, run: RunRecord) -> None:
    if run.inputs.dedupe_key != lease.dedupe_key:
        raise ValueError(f"the lease is for {lease.dedupe_key}, the run is {run.key}")


def _is_unsettled(placed: Placed) -> bool:
    return placed.effect.open or placed.effect.evidence is Evidence.UNSETTLED


def _is_whole(before: RunRow | None, run: RunRecord) -> bool:
    """What an end freezes has to be here."""
    placed = before.effects.values() if before is not None else ()
    over = (Evidence.CONFIRMED, Evidence.SKIPPED)
    return sum(item.effect.evidence in over for item in placed) >= len(run.effects)


def _indexes(run: RunRecord, status: Status | str) -> tuple[str, str]:
    return f"runs::{status}", f"runs:{run.inputs.repository.lower()}:{status}"


def _window_of(run: RunRecord) -> str:
    key = parsed_key(run.inputs.dedupe_key)
    return _window_key(key.repository_id, key.job, key.window)


def _window_key(repository_id: int, job: JobKey, window: str) -> str:
    return f"runs:window:R{repository_id}:{job}:{window}"
