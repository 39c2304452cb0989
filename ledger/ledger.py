"""The ledger, by what each part owns."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import redis.asyncio

from ledger.budget import Budgets
from ledger.counters import Counters
from ledger.due import DueSet
from ledger.effects import Effects
from ledger.epoch import Epochs
from ledger.lease import Leases
from ledger.repositories import Repositories
from ledger.reviews import Reviews
from ledger.runs import Runs
from ledger.sessions import Sessions
from ledger.timing import LedgerTiming


@dataclass(frozen=True, slots=True)
class Ledger:
    """One record, seen through its parts."""

    leases: Leases
    runs: Runs
    effects: Effects
    due: DueSet
    budgets: Budgets
    repositories: Repositories
    epochs: Epochs
    counters: Counters
    sessions: Sessions
    reviews: Reviews


def open_ledger(
    redis: redis.asyncio.Redis,
    timing: LedgerTiming,
    *,
    monotonic: Callable[[], float] = time.monotonic,
) -> Ledger:
    """The ledger behind a client of ``ledger.connection.connect``. Nothing is sent yet.

    ``monotonic`` is the clock of the claims' deadlines and of late answers, in seconds.
    """
    return Ledger(
        leases=Leases(redis, timing),
        runs=Runs(redis, timing),
        effects=Effects(redis, timing, monotonic),
        due=DueSet(redis),
        budgets=Budgets(redis, timing, monotonic),
        repositories=Repositories(redis, timing),
        epochs=Epochs(redis, timing),
        counters=Counters(redis),
        sessions=Sessions(redis),
        reviews=Reviews(redis),
    )
