"""One worker's try at a run: what it holds, and the heartbeat that keeps its lease."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from ledger.records import EffectRecord, Lease
from triage.classification import Facts, classify
from triage.contract import RunEffect, RunRecord, Status
from triage.identifiers import EffectKind
from triage.plan import Cost
from worker.ports import Clock, Denial, LeaseLost, LedgerUnavailableError, Place, Ports

T = TypeVar("T")


@dataclass(slots=True)
class Attempt:
    """The state of one try. ``effects`` keeps the order in which they are sent.

    ``deadline`` is on the monotonic clock, in seconds: past it nothing new is sent. ``given_up``
    tells the heartbeat that the lease is. ``worn_out``: why no further try is worth it.
    """

    ports: Ports
    lease: Lease
    run: RunRecord
    place: Place
    deadline: float
    given_up: asyncio.Event
    fence: int = 0
    worn_out: str = ""
    planned: bool = False
    effects: dict[str, RunEffect] = field(default_factory=dict)
    records: dict[str, EffectRecord] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """The wall-clock time, UTC."""
        return self.ports.clock.now()

    @property
    def out_of_time(self) -> bool:
        """The run's own deadline is over."""
        return self.ports.clock.monotonic() >= self.deadline

    async def keep(self, effects: Iterable[RunEffect]) -> None:
        """Save those that changed, in the ledger first."""
        changed = [effect for effect in effects if self.effects.get(effect.effect_key) != effect]
        if changed:
            save = self.ports.ledger.runs.save_effects
            await ask_twice(lambda: save(self.lease, changed), self.ports.clock)
            self.effects |= {effect.effect_key: effect for effect in changed}

    async def save(self, **changes: object) -> None:
        """Save the run with these changes."""
        self.run = self.run.model_copy(update=changes)
        save = self.ports.ledger.runs.save
        await ask_twice(lambda: save(self.lease, self.run), self.ports.clock)

    def spend(self, cost: Cost) -> None:
        """Charge the run, for good with its next save."""
        self.run = self.run.model_copy(update={"cost": self.run.cost + cost})

    def tell_denials(self, denials: Sequence[Denial]) -> None:
        """Count the calls of tools that were refused, for good with the run's next save, and say
        each kind once with how often."""
        self.run = self.run.model_copy(update={"denials": self.run.denials + len(denials)})
        run = self.run.inputs.dedupe_key
        for denial, times in Counter(denials).items():
            what = {"tool": denial.tool, "field": denial.field or None, "reason": denial.reason}
            self.ports.log("AGENT-DENIED", run=run, **what, times=times)

    async def know(self, keys: Iterable[str]) -> None:
        """Read the shared records of effects."""
        self.records |= await self.ports.ledger.effects.get(list(keys))

    def known_id(self, effect: RunEffect) -> int | None:
        """The id of the comment or issue: all runs' first, of two live ones that is the one that
        stays."""
        record = self.records.get(effect.effect_key)
        return (record.github_id if record is not None else None) or effect.github_id

    def records_of(self, effects: Iterable[RunEffect]) -> dict[str, EffectRecord]:
        """Those of the shared records that are known."""
        keys = [effect.effect_key for effect in effects]
        return {key: self.records[key] for key in keys if key in self.records}

    def facts(self, *, budget_spent: bool = False) -> Facts:
        """What the classification looks at."""
        return Facts(
            effects=list(self.effects.values()),
            now=self.now,
            planned=self.planned,
            continuations=self.run.continuations,
            budget_spent=budget_spent,
        )

    def status_so_far(self) -> Status:
        """The status that the effects on issues alone would give."""
        effects = [e for e in self.effects.values() if e.kind is not EffectKind.SUMMARY]
        facts = self.facts()
        return classify(
            Facts(effects, facts.now, planned=facts.planned, continuations=facts.continuations)
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """How the work of an attempt ended, before it is classified.

    ``retry_at``: when to come back, None for at once. ``budget_spent``: it stopped for the write
    budget.
    """

    reason: str = ""
    retry_at: datetime | None = None
    retryable: bool = True
    budget_spent: bool = False


PATIENCE_SECONDS = 0.2
"""The pause before the ledger is asked again."""


async def ask_twice(ask: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Ask the ledger once more where its reply was lost: for what is the same done twice.

    Raises LedgerUnavailableError where it does not answer again.
    """
    try:
        return await ask()
    except LedgerUnavailableError:
        await clock.sleep(PATIENCE_SECONDS)
        return await ask()


@asynccontextmanager
async def heartbeat(lease: Lease, ports: Ports, deadline: float) -> AsyncIterator[asyncio.Event]:
    """Renew the lease at a third of its length, up to the run's own deadline (monotonic seconds).
    Raises LeaseLost inside the block once it is gone.

    A ledger that is out of reach is asked again until the lease must have lapsed. Whoever gives the
    lease up sets the event first: from then on it is neither missed nor renewed, even where the
    client of the ledger swallowed the cancellation of the beat.
    """
    holder = asyncio.current_task()
    given_up = asyncio.Event()
    lost = False

    async def beat() -> None:
        nonlocal lost
        length = ports.timing.lease.total_seconds()
        good_until = ports.clock.monotonic() + length
        while not given_up.is_set() and ports.clock.monotonic() < good_until:
            await ports.clock.sleep(length / 3)
            asked = ports.clock.monotonic()
            if asked >= deadline:
                continue
            try:
                if not await ports.ledger.leases.renew(lease):
                    break
            except LedgerUnavailableError:
                continue
            good_until = asked + length
        if holder is not None and not given_up.is_set():
            lost = True
            holder.cancel()

    beating = asyncio.create_task(beat())
    try:
        yield given_up
    except asyncio.CancelledError:
        if lost and holder is not None and holder.uncancel() == 0:
            raise LeaseLost(lease.dedupe_key) from None
        raise
    finally:
        given_up.set()
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
