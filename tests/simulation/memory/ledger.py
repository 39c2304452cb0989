"""The memory ledger, by what each part owns."""

from collections.abc import Callable
from dataclasses import dataclass

from ledger.timing import LedgerTiming
from tests.simulation.memory.budgets import MemoryBudgets
from tests.simulation.memory.counters import MemoryCounters
from tests.simulation.memory.deliveries import MemoryDeliveries
from tests.simulation.memory.due import MemoryDueSet
from tests.simulation.memory.effects import MemoryEffects
from tests.simulation.memory.epochs import MemoryEpochs
from tests.simulation.memory.leases import MemoryLeases
from tests.simulation.memory.repositories import MemoryRepositories
from tests.simulation.memory.reviews import MemoryReviews
from tests.simulation.memory.runs import MemoryRuns
from tests.simulation.memory.server import MemoryServer as MemoryServer  # noqa: PLC0414
from tests.simulation.memory.sessions import MemorySessions


@dataclass(frozen=True, slots=True)
class MemoryLedger:
    """One record, seen through its parts."""

    leases: MemoryLeases
    runs: MemoryRuns
    effects: MemoryEffects
    due: MemoryDueSet
    budgets: MemoryBudgets
    repositories: MemoryRepositories
    epochs: MemoryEpochs
    counters: MemoryCounters
    deliveries: MemoryDeliveries
    sessions: MemorySessions
    reviews: MemoryReviews


def memory_ledger(
    server: MemoryServer, timing: LedgerTiming, *, monotonic: Callable[[], float]
) -> MemoryLedger:
    """The ledger of a server. ``monotonic`` is the clock of the claims' deadlines, in seconds."""
    return MemoryLedger(
        leases=MemoryLeases(server, timing),
        runs=MemoryRuns(server, timing),
        effects=MemoryEffects(server, timing, monotonic),
        due=MemoryDueSet(server),
        budgets=MemoryBudgets(server, timing),
        repositories=MemoryRepositories(server, timing),
        epochs=MemoryEpochs(server, timing),
        counters=MemoryCounters(server),
        deliveries=MemoryDeliveries(server),
        sessions=MemorySessions(server),
        reviews=MemoryReviews(server),
    )
