"""One side of a comparison: a ledger, what its workers hold, and all that can be done with it.

A step's answer, and what can be read after it, are given as plain values without what must differ:
the ledger's ids have numbers, and moments of the server's clock are only that. Moments that a step
gives are of the year 2001.
"""

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from pydantic import BaseModel

from ledger.errors import (
    FrozenRunError,
    LeaseLost,
    LedgerCorruptError,
    StateNotSavedError,
    UnknownRunError,
)
from ledger.memory import Promotion, StagedSession
from ledger.records import Claim, Due, EffectRecord, Lease, RepositoryRecord
from ledger.timing import LedgerTiming
from tests.ledger.nights import COLD, OTHER_SESSION, SESSION, lines, plan, recall, resumed, state
from tests.ledger.places import Place
from tests.ledger.samples import OTHER_RUN, REPOSITORY, RUN, effect, run, snapshot
from triage.contract import ReviewFigures, RunEffect, RunRecord, Status
from triage.findings import Link, ReviewVerdict
from triage.identifiers import DedupeKey, EffectKind, JobKey
from triage.plan import Cost, Plan

DAWN = datetime(2001, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RUNS = (RUN, OTHER_RUN, f"{RUN}:forced-1")
EFFECTS = (
    effect(),
    effect(EffectKind.LABELS),
    effect(EffectKind.UNLABEL),
    effect(EffectKind.SUMMARY, issue=0),
)
KEYS = tuple(what.effect_key for what in EFFECTS)
IDS = (3, 5, 9)
COPIES = (
    COLD,
    StagedSession(REPOSITORY, "cold too"),
    *(resumed(length, f"warm {length}") for length in (1, 2, 3, 5)),
    *(resumed(length, f"other {length}", OTHER_SESSION) for length in (1, 2)),
)


_REFUSALS = (LeaseLost, FrozenRunError, UnknownRunError, LedgerCorruptError, StateNotSavedError)


class Side:
    """A ledger and the leases and claims that its workers hold, newest last."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._ledger = place.open(LedgerTiming(), monotonic=lambda: 0.0)
        self._leases: dict[str, list[Lease]] = defaultdict(list)
        self._claims: list[Claim] = []
        self._operations = itertools.count(1)
        self._names: dict[str, str] = {}

    async def begin(self) -> None:
        """An epoch stands, and each run is saved by a worker that holds its lease."""
        await self._ledger.epochs.ensure(first=True)
        for key in RUNS:
            await self.acquire(key, "first", False)
            await self.save(key, 0, Status.RUNNING, 0)

    async def take(self, step: tuple[Any, ...]) -> object:
        """Do one step. What it gave or raised."""
        name, *args = step
        try:
            return self.plain(await getattr(self, name)(*args))
        except _REFUSALS as error:
            return type(error).__name__, str(error)

    def _lease(self, key: str, back: int) -> Lease:
        held = self._leases[key]
        return held[max(0, len(held) - 1 - back)]

    # The steps

    async def acquire(self, key: str, owner: str, again: bool) -> Lease | None:
        """A new token, or the last one once more."""
        token = f"{key} {len(self._leases[key])}"
        if again and self._leases[key]:
            token = self._leases[key][-1].token
        lease = await self._ledger.leases.acquire(key, owner, token)
        if lease is not None:
            self._leases[key].append(lease)
        return lease

    async def renew(self, key: str, back: int) -> bool:
        return await self._ledger.leases.renew(self._lease(key, back))

    async def release(self, key: str, back: int) -> None:
        await self._ledger.leases.release(self._lease(key, back))

    async def lapse(self, key: str, seconds: int) -> None:
        await self._place.lapse(key, timedelta(seconds=seconds))

    async def take_over(self, key: str, seconds: int) -> object:
        """The lease lapsed so long ago, and somebody else asks for it."""
        await self.lapse(key, seconds)
        return await self.acquire(key, "other", False)

    async def save(self, key: str, back: int, status: Status, turns: int, whole: int = 0) -> None:
        saved = self._run(key, status, turns, whole)
        await self._ledger.runs.save(self._lease(key, back), saved)

    async def settle(
        self,
        key: str,
        back: int,
        status: Status,
        turns: int,
        whole: int,
        due: Mapping[Due, int],
    ) -> None:
        moments = {item: DAWN + at * MINUTE for item, at in due.items()}
        ended = self._run(key, status, turns, whole)
        await self._ledger.runs.settle(self._lease(key, back), ended, moments)

    def _run(self, key: str, status: Status, turns: int, whole: int) -> RunRecord:
        """A record of a worker that knows of so many effects."""
        at = DAWN + RUNS.index(key) * MINUTE
        cost = Cost(turns=turns, estimated_usd=turns / 4)
        force = DedupeKey.parse(key).forced is not None
        given = {"status": status, "cost": cost, "created_at": at, "updated_at": at}
        given |= {"denials": turns % 3, "review": _figures(turns)}
        return run(key, force=force, effects=EFFECTS[:whole], **given)

    async def freeze(self, key: str, back: int, fence: int) -> object:
        lease = self._lease(key, back)
        plan = Plan(decisions=(), held=(), cost=Cost(turns=fence))
        stands = await self._ledger.runs.save_snapshot(lease, snapshot(key, fence))
        return stands, await self._ledger.runs.save_plan(lease, plan)

    async def say(self, copy: StagedSession, words: list[str], gap: int) -> int:
        """Add lines where the copy ends, or as if it ended elsewhere."""
        stand = await self._ledger.sessions.length(copy) - copy.length
        said = lines(*words, session=copy.session_id or SESSION)
        await self._ledger.sessions.append(copy, said, after=max(0, stand + gap))
        return await self._ledger.sessions.length(copy)

    async def promote(
        self, copy: StagedSession | None, session: str, missing: int, told: bool, ahead: int
    ) -> object:
        """A run of its own keeps what was said."""
        key = f"{RUN}:forced-9{next(self._operations)}"
        lease = await self._ledger.leases.acquire(key, "other", key)
        assert lease is not None
        fields: dict[str, Any] = {"fence": lease.fence + ahead, "at": DAWN}
        if copy is not None:
            length = await self._ledger.sessions.length(copy) + missing
            fields["session_id"] = copy.session_id or session
            fields["session_length"] = max(copy.length + 1, length)
        figures = recall(lease).model_copy(update={"at": DAWN}) if told else None
        given = Promotion(state(lease, **fields), copy, figures)
        return await self._ledger.runs.save_plan(lease, plan(), staged=given)

    async def give_up(self, key: str, back: int, copy: StagedSession | None, reason: str) -> object:
        """A session of which the attempt has this copy; None: the last review's."""
        lease, last = self._lease(key, back), await self._ledger.reviews.last(REPOSITORY)
        if copy is None and last is not None and last.session_id is not None:
            copy = StagedSession(REPOSITORY, "last", last.session_id, last.session_length)
        if copy is None:
            return None
        return await self._ledger.reviews.clear_session(lease, copy, reason)

    async def discard(self, copy: StagedSession) -> None:
        await self._ledger.sessions.discard(copy)

    async def save_effects(
        self, key: str, back: int, changes: list[tuple[RunEffect, dict[str, Any]]]
    ) -> None:
        effects = [what.model_copy(update=fields) for what, fields in changes]
        await self._ledger.runs.save_effects(self._lease(key, back), effects)

    async def claim(
        self, key: str, back: int, what: RunEffect, fields: dict[str, Any], resend: bool, ahead: int
    ) -> object:
        operation = f"op-{next(self._operations)}"
        return await self._ask(key, back, what.model_copy(update=fields), resend, ahead, operation)

    async def claim_again(self, number: int, resend: bool, withdrawn: bool) -> object:
        """The same operation again; ``withdrawn`` first, as if its reply had been lost."""
        if not self._claims:
            return None
        old = self._claims[number % len(self._claims)]
        if withdrawn:
            await self._ledger.effects.withdraw(old)
        key = old.lease.dedupe_key
        return await self._ask(key, 0, old.effect, resend, 0, old.operation)

    async def _ask(
        self, key: str, back: int, what: RunEffect, resend: bool, ahead: int, operation: str
    ) -> object:
        lease = self._lease(key, back)
        given = await self._ledger.effects.claim(
            lease, what, snapshot_fence=lease.fence + ahead, resend=resend, operation=operation
        )
        if isinstance(given, Claim):
            self._claims.append(given)
        return given

    async def acknowledge(self, number: int, fields: dict[str, Any]) -> None:
        if self._claims:
            claim = self._claims[number % len(self._claims)]
            outcome = claim.effect.model_copy(update=fields)
            await self._ledger.effects.acknowledge(claim, outcome)

    async def withdraw(self, number: int) -> None:
        if self._claims:
            await self._ledger.effects.withdraw(self._claims[number % len(self._claims)])

    async def prove_absent(self, key: str, reads: list[int]) -> object:
        for minute in reads:
            given = await self._ledger.effects.add_sample(key, DAWN + minute * MINUTE)
        return given

    async def note_hit(self, key: str, github_id: int, url: str, digest: str, issue: int) -> None:
        await self._ledger.effects.note_hit(key, github_id, url, digest, issue)

    async def note_removed_label(self, key: str, label: str) -> None:
        await self._ledger.effects.note_removed_label(key, label)

    async def note_tombstone(self, key: str) -> None:
        await self._ledger.effects.note_tombstone(key)

    async def adopt(self, record: EffectRecord) -> None:
        await self._ledger.effects.adopt(record)

    async def add_due(self, due: Due, at: int) -> None:
        await self._ledger.due.add(due, DAWN + at * MINUTE)

    async def remove_due(self, due: Due, was: int | None) -> None:
        await self._ledger.due.remove(due, None if was is None else DAWN + was * MINUTE)

    async def take_due(self, now: int, limit: int) -> object:
        return await self._ledger.due.take(DAWN + now * MINUTE, limit, MINUTE)

    async def save_repository(self, changed: dict[str, Any], known: bool) -> None:
        was = RepositoryRecord(id=REPOSITORY, full_name="acme/API", installation="1")
        record = was.model_copy(update=changed)
        await self._ledger.repositories.save(record, was if known else None)

    async def incident(self, kind: str) -> None:
        await self._ledger.counters.incident(kind, "told")
        await self._ledger.counters.requests(kind, 2)

    async def ensure(self, first: bool) -> object:
        return await self._ledger.epochs.ensure(first=first)

    async def lose_epoch(self) -> object:
        await self._place.forget_epoch()
        return await self.ensure(False)

    async def another_server(self) -> None:
        await self._place.set_epoch(replid="0" * 40)

    async def recover(self) -> object:
        """The epoch is put right, its quiet time is over, and the runs have new leases."""
        await self.ensure(False)
        await self._place.set_epoch(quiet_until=0)
        return [await self.take_over(key, 61) for key in RUNS]

    # What can be read

    async def seen(self) -> object:
        """What a worker reads."""
        ledger = self._ledger
        looks = [await ledger.leases.view(key) for key in RUNS]
        effects = await ledger.effects.get(KEYS)
        claims = self._claims[-3:]
        stand = [await ledger.effects.stands(it.effect.effect_key, it.operation) for it in claims]
        return self.plain([looks, effects, stand, await ledger.due.upcoming()])

    async def remembered(self) -> object:
        """What a reviewer reads."""
        reviews, sessions = self._ledger.reviews, self._ledger.sessions
        last, recalls = await reviews.last(REPOSITORY), await reviews.recalls(REPOSITORY)
        kept = [await sessions.kept(REPOSITORY, name) for name in (SESSION, OTHER_SESSION)]
        return self.plain([last, recalls, kept, [await sessions.read(copy) for copy in COPIES]])

    async def all_seen(self) -> object:
        """What anybody reads."""
        ledger = self._ledger
        reads: list[Awaitable[object]] = [
            ledger.runs.listed(),
            *(ledger.runs.listed(status) for status in Status),
            ledger.runs.listed(repository="acme/api", limit=2),
            ledger.runs.listed(limit=2, job=JobKey.DAILY),
            ledger.runs.of_window(REPOSITORY, JobKey.DAILY, "2026-09-16"),
            *(ledger.runs.snapshot(key) for key in RUNS),
            *(ledger.runs.plan(key) for key in RUNS),
            *(ledger.effects.by_github_id(REPOSITORY, github_id) for github_id in IDS),
            ledger.counters.snapshot(),
            ledger.counters.incidents(),
        ]
        repository = await self.take(("repository",))
        return [*[self.plain(await read) for read in reads], repository]

    async def repository(self) -> object:
        return await self._ledger.repositories.get(REPOSITORY)

    def plain(self, value: object) -> object:
        """A value without what must differ."""
        if isinstance(value, datetime):
            return value if value.year == DAWN.year else "now"
        if isinstance(value, str) and not isinstance(value, Enum):
            return self._names.get(value, value)
        if isinstance(value, Lease) or type(value).__name__ == "Epoch":
            name = getattr(value, "epoch", "") or getattr(value, "id", "")
            self._names.setdefault(name, f"epoch {len(self._names)}")
        if isinstance(value, BaseModel):
            return {name: self.plain(part) for name, part in value.__dict__.items()}
        if dataclasses.is_dataclass(value):
            parts = dataclasses.fields(value)
            return {part.name: self.plain(getattr(value, part.name)) for part in parts}
        if isinstance(value, Mapping):
            return {str(name): self.plain(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(part) for part in value]
        return value


def _figures(turns: int) -> ReviewFigures:
    """Now continuous, now not, and now with nothing to recall."""
    broken = ("another id",) if turns % 3 == 0 else ()
    link = Link(
        same_session=True,
        prior_review_id_echoed=not broken,
        recalled=turns % 2,
        prior=turns % 4,
        current=1,
        broken=broken,
    )
    return ReviewFigures(verdict=ReviewVerdict.OK, link=link)
